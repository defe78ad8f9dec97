"""JAX's own wheel rules, ``wheel_sources`` and ``jax_wheel`` of ``//jaxlib:jax.bzl``: targets and commands for ROCm."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.commands import Command, commit_of, python_option
from rocwheel.frameworks.jax.settings import BazelSettings
from rocwheel.frameworks.jax.words import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.frameworks.jax.commands import BuildOptions

__all__ = ["TARGETS", "WheelTool", "make_wheel_tool", "render_wheel_targets", "wheel_rule_commands"]

_PACKAGE = "//jaxlib/tools"
_OUTPUTS = "bazel-bin/jaxlib/tools/dist"
TARGETS = {"pjrt": f"{_PACKAGE}:jax_rocm_pjrt_wheel", "plugin": f"{_PACKAGE}:jax_rocm_plugin_wheel"}
"""JAX's own targets for the wheels of ROCm."""


_DEFAULT = BazelSettings(1, "", (), ())
_DEFAULTS = (_DEFAULT.pjrt_targets, _DEFAULT.plugin_targets)


class WheelTool(msgspec.Struct, frozen=True):
    """rocwheel as the ``wheel_binary`` of the rule."""

    rules: str = "//rocm_wheel"
    """The package that ``rocwheel jax starlark`` wrote."""
    library: str = "@pypi//rocwheel"
    """The Python library that has rocwheel."""


_RULES_OPTION = "--rules"
_LIBRARY_OPTION = "--library"
_PACKAGE_LABEL = re.compile(r"(@[\w.~-]*)?//[\w./+=,@~-]*")
_TARGET_LABEL = re.compile(rf"{_PACKAGE_LABEL.pattern}(:[\w./+=,@~-]+)?|:[\w./+=,@~-]+")


def make_wheel_tool(rules: str, library: str) -> WheelTool:
    """Return the tool that two options name; raise `InputError` for what is no label."""
    if not _PACKAGE_LABEL.fullmatch(rules):
        raise InputError(_RULES_OPTION, f"is {rules!r}", expected="the label of a package, such as //rocm_wheel")
    if not _TARGET_LABEL.fullmatch(library):
        raise InputError(_LIBRARY_OPTION, f"is {library!r}", expected="a label, such as @pypi//rocwheel")
    return WheelTool(rules, library)


class _Wheel(msgspec.Struct, frozen=True):
    """What makes one of the wheels, as labels of JAX's workspace."""

    tool: str
    """JAX's own."""
    no_abi: bool
    data: tuple[str, ...]
    texts: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    """What JAX's own tool runs."""


_SUPPORT = "//jaxlib/rocm:rocm_gpu_support"
_LICENSE = "LICENSE.txt"
_WHEELS: dict[str, _Wheel] = {
    "pjrt": _Wheel(
        ":build_gpu_plugin_wheel_tool",
        no_abi=True,
        data=("//jax_plugins/rocm:rocm_plugin", _SUPPORT),
        texts=("//jax_plugins/rocm:__init__.py",),
        setup=("//jax_plugins/rocm:pyproject.toml", "//jax_plugins/rocm:setup.py"),
    ),
    "plugin": _Wheel(
        ":build_gpu_kernels_wheel_tool",
        no_abi=False,
        data=(_SUPPORT, "//jaxlib/rocm:rocm_plugin_extension"),
        setup=("//jax_plugins/rocm:plugin_pyproject.toml", "//jax_plugins/rocm:plugin_setup.py"),
    ),
}


def render_wheel_targets(settings: BazelSettings, tool: WheelTool | None) -> str:
    """Return lines for ``jaxlib/tools/BUILD.bazel``: both wheels for the settings' version of ROCm.

    JAX's own targets name one version of ROCm; these, ``jax_rocmMAJOR_pjrt_wheel`` and ``jax_rocmMAJOR_plugin_wheel``,
    stand beside them. The file has loaded both rules already. Without a ``tool``, JAX's own make the wheels.
    """
    load = f'load("{tool.rules}:jax_wheel_binary.bzl", "jax_wheel_binary")\n\n' if tool else ""
    return load + "\n".join(_targets(kind, wheel, settings, tool) for kind, wheel in _WHEELS.items())


def _targets(kind: str, wheel: _Wheel, settings: BazelSettings, tool: WheelTool | None) -> str:
    name = f"jax_rocm{settings.rocm_version}_{kind}"
    static = (*wheel.texts, *(() if tool else wheel.setup), _LICENSE)
    sources = [
        f'    name = "{name}_sources",',
        f"    data_srcs = {_list(wheel.data)},",
        f"    py_srcs = {_list((':version', _SUPPORT))},",
        f"    static_srcs = {_list(static)},",
    ]
    made = [
        f'    name = "{name}_wheel",',
        "    enable_rocm = True,",
        f"    no_abi = {wheel.no_abi},",
        f'    platform_version = "{settings.rocm_version}",',
        f'    source_files = [":{name}_sources"],',
        f'    wheel_binary = "{f":{name}_wheel_binary" if tool else wheel.tool}",',
        f'    wheel_name = "{name}",',
    ]
    binary = _binary(f"{name}_wheel_binary", kind, settings, tool) if tool else []
    return "\n".join([*binary, "wheel_sources(", *sources, ")", "", "jax_wheel(", *made, ")", ""])


def _binary(name: str, kind: str, settings: BazelSettings, tool: WheelTool) -> list[str]:
    spec = settings.pjrt_spec if kind == "pjrt" else settings.plugin_spec
    return [
        "jax_wheel_binary(",
        f'    name = "{name}",',
        f'    kind = "{kind}",',
        *([f"    spec = {json.dumps(_label(spec))},"] if spec else []),
        *([f"    system_run_paths = {_list(settings.system_run_paths)},"] if settings.system_run_paths else []),
        f'    deps = ["{tool.library}"],',
        ")",
        "",
    ]


def _label(path: str) -> str:
    """Return the label of a file of the source tree, as one of its folder's package."""
    folder, _, name = path.rpartition("/")
    return f"//{folder}:{name}"


def _list(labels: Iterable[str]) -> str:
    return "[\n" + "".join(f"        {json.dumps(label)},\n" for label in labels) + "    ]"


def wheel_rule_commands(settings: BazelSettings, options: BuildOptions) -> list[Command]:
    """Return the commands that build wheels by JAX's rules, audit them and copy them to the destination.

    The targets are JAX's own unless the settings name others. The version is JAX's own, of a release;
    ``options.version`` has no part in it.
    """
    commands = []
    if "pjrt" in options.kinds:
        python = options.python or settings.python_versions[0]
        commands += _wheel("jax-rocm-pjrt", python, _chosen("pjrt", settings.pjrt_targets), options)
    pythons = (options.python,) if options.python else settings.python_versions
    for python in pythons if "plugin" in options.kinds else ():
        targets = _chosen("plugin", settings.plugin_targets)
        commands += _wheel(f"jax-rocm-plugin-{python}", python, targets, options)
    return commands


def _chosen(kind: str, targets: tuple[str, ...]) -> tuple[str, ...]:
    """Return the settings' targets; JAX's own in place of those of rocm-jax, which are the default."""
    return (TARGETS[kind],) if targets in _DEFAULTS else targets


def _wheel(wheel: str, python: str, targets: tuple[str, ...], options: BuildOptions) -> list[Command]:
    flags = (
        f"--config={options.config}",
        python_option(python),
        "--repo_env=ML_WHEEL_TYPE=release",
        f"--{_PACKAGE}:jaxlib_git_hash={commit_of()}",
    )
    beside = ("--with", options.sdk) if options.sdk else ()
    build = (*options.bazel, "build", *flags, *options.bazel_options, *targets)
    return [
        Command(f"Build {shown(wheel)}", build, wheel),
        Command("Audit what is built", ("rocwheel", "audit", _OUTPUTS, *beside), wheel),
        Command("Make the destination", ("mkdir", "-p", options.dest_dir), wheel),
        # Bazel's outputs are read-only.
        Command("Copy what is built", ("cp", "-rf", f"{_OUTPUTS}/.", options.dest_dir), wheel),
    ]
