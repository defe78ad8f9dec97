"""JAX's own wheel rules, ``wheel_sources`` and ``jax_wheel`` of ``//jaxlib:jax.bzl``: targets and commands for ROCm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.frameworks.jax.commands import Command, commit_of, python_option
from rocwheel.frameworks.jax.settings import BazelSettings
from rocwheel.frameworks.jax.words import shown

if TYPE_CHECKING:
    from rocwheel.frameworks.jax.commands import BuildOptions

__all__ = ["TARGETS", "render_wheel_targets", "wheel_rule_commands"]

_PACKAGE = "//jaxlib/tools"
_OUTPUTS = "bazel-bin/jaxlib/tools/dist"
TARGETS = {"pjrt": f"{_PACKAGE}:jax_rocm_pjrt_wheel", "plugin": f"{_PACKAGE}:jax_rocm_plugin_wheel"}
"""JAX's own targets for the wheels of ROCm."""


_DEFAULT = BazelSettings(1, "", (), ())
_DEFAULTS = (_DEFAULT.pjrt_targets, _DEFAULT.plugin_targets)


class _Wheel(msgspec.Struct, frozen=True):
    """What makes one of the wheels, as labels of JAX's workspace."""

    tool: str
    no_abi: bool
    data: tuple[str, ...]
    static: tuple[str, ...]


_SUPPORT = "//jaxlib/rocm:rocm_gpu_support"
_WHEELS: dict[str, _Wheel] = {
    "pjrt": _Wheel(
        ":build_gpu_plugin_wheel_tool",
        no_abi=True,
        data=("//jax_plugins/rocm:rocm_plugin", _SUPPORT),
        static=("//jax_plugins/rocm:__init__.py", "//jax_plugins/rocm:pyproject.toml", "//jax_plugins/rocm:setup.py"),
    ),
    "plugin": _Wheel(
        ":build_gpu_kernels_wheel_tool",
        no_abi=False,
        data=(_SUPPORT, "//jaxlib/rocm:rocm_plugin_extension"),
        static=("//jax_plugins/rocm:plugin_pyproject.toml", "//jax_plugins/rocm:plugin_setup.py"),
    ),
}


def render_wheel_targets(settings: BazelSettings) -> str:
    """Return lines for ``jaxlib/tools/BUILD.bazel``: both wheels for the settings' version of ROCm.

    JAX's own targets name one version of ROCm; these, ``jax_rocmMAJOR_pjrt_wheel`` and ``jax_rocmMAJOR_plugin_wheel``,
    stand beside them. The file has loaded both rules, and has the tools, already.
    """
    return "\n".join(_targets(kind, wheel, settings.rocm_version) for kind, wheel in _WHEELS.items())


def _targets(kind: str, wheel: _Wheel, rocm: str) -> str:
    name = f"jax_rocm{rocm}_{kind}"
    sources = [
        f'    name = "{name}_sources",',
        f"    data_srcs = {_list(wheel.data)},",
        f"    py_srcs = {_list((':version', _SUPPORT))},",
        f"    static_srcs = {_list((*wheel.static, 'LICENSE.txt'))},",
    ]
    made = [
        f'    name = "{name}_wheel",',
        "    enable_rocm = True,",
        f"    no_abi = {wheel.no_abi},",
        f'    platform_version = "{rocm}",',
        f'    source_files = [":{name}_sources"],',
        f'    wheel_binary = "{wheel.tool}",',
        f'    wheel_name = "{name}",',
    ]
    return "\n".join(["wheel_sources(", *sources, ")", "", "jax_wheel(", *made, ")", ""])


def _list(labels: tuple[str, ...]) -> str:
    return "[\n" + "".join(f'        "{label}",\n' for label in labels) + "    ]"


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
