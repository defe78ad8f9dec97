"""``rocwheel jax wheel``, ``wheel-binary``, and ``wheel-targets``: build JAX's wheels from Bazel's outputs."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import click
import msgspec

from rocwheel.cli.jax import SettingsOption, jax_app
from rocwheel.cli.options import Output, shared, takes
from rocwheel.cli.output import print_json
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.wheel import Assembly, Sources, read_assembly, read_checks, read_sources
from rocwheel.core.errors import InputError
from rocwheel.core.workers import raise_all
from rocwheel.frameworks.jax.settings import read_settings
from rocwheel.frameworks.jax.starlark import (
    WheelTool,
    jax_wheel_description,
    make_wheel_tool,
    parse_cpu_tags,
    read_rule_call,
    render_wheel_targets,
    rocm_major,
)
from rocwheel.frameworks.wheel_spec import read_spec, settable_values


class WheelKind(str, Enum):
    """A kind of JAX wheel."""

    PLUGIN = "plugin"
    PJRT = "pjrt"


@jax_app.command("wheel")
@takes(sources=read_sources, assembly=read_assembly)
def jax_wheel(
    kind: Annotated[
        WheelKind,
        argument(
            metavar="KIND", help="The wheel to assemble: plugin for the extension modules, or pjrt for the PJRT plugin."
        ),
    ],
    version: Annotated[str, shared("--version", "Set the version of the wheel, which is the JAX version.")],
    sources: Sources,
    rocm: Annotated[
        str, shared("--rocm", "Set the ROCm version. Package and module names contain its major version.")
    ] = "7",
    spec: Annotated[
        Path | None,
        shared("--spec", "Read the wheel description (TOML) from this file."),
    ] = None,
    *,
    assembly: Assembly,
) -> None:
    """Assemble a JAX wheel from Bazel outputs.

    The command checks that the files in the wheel can find their libraries.

    Example: rocwheel jax wheel pjrt --version 0.12.0 --src bazel-bin/pjrt --src LICENSE --with packages/dist
    """
    description = read_spec(spec) if spec else jax_wheel_description(kind.value)
    options = {"rocm": rocm_major(rocm), "version": version}
    assembly.run(str(spec or f"jax {kind.value}"), description, sources, options)


_CPU_TAG = "--cpu-tag"
_PLACES = {"init": "jax_plugins/rocm/__init__.py"}
"""JAX's paths for files that have different paths in rocm-jax."""


@jax_app.command("wheel-binary", hidden=True)
@takes(checks=read_checks)
def wheel_binary(
    kind: Annotated[
        WheelKind,
        argument(
            metavar="KIND", help="The wheel to assemble: plugin for the extension modules, or pjrt for the PJRT plugin."
        ),
    ],
    call: Annotated[list[str], argument(metavar="CALL", help="The arguments from the rule. Write -- before them.")],
    version: Annotated[str, shared("--version", "Set the version of the wheel, which is the JAX version.")],
    python: Annotated[
        str,
        option("--python-version", "--python", metavar="X.Y", help="Set the Python version of the extension modules."),
    ] = "",
    cpu_tags: Annotated[
        list[str] | None,
        option(_CPU_TAG, metavar="CPU=TAG", help="Set the platform tag of wheels for this CPU."),
    ] = None,
    spec: Annotated[
        Path | None,
        shared("--spec", "Read the wheel description (TOML) from this file."),
    ] = None,
    *,
    checks: Assembly,
) -> None:
    """Build a wheel for JAX's jax_wheel rule.

    The jax_wheel_binary rule from `rocwheel jax starlark` calls this command. The rule passes the version and
    the tags that the output file's name must contain.

    Example: rocwheel jax wheel-binary pjrt --version 0.12.0 -- @bazel-out/k8-opt/bin/jaxlib/tools/jax_wheel-0.params
    """
    asked = read_rule_call(call)
    description = read_spec(spec) if spec else _description(kind)
    build = msgspec.structs.replace(
        checks.build,
        commits=asked.commits,
        python=python if kind is WheelKind.PLUGIN else "",
        platform_tag=parse_cpu_tags(cpu_tags or (), _CPU_TAG).get(asked.cpu, ""),
    )
    known = {"rocm": asked.rocm, "version": version}
    options = {name: value for name, value in known.items() if name in settable_values(description)}
    assembly = msgspec.structs.replace(checks, build=build, dest_dir=asked.folder)
    assembly.run(str(spec or f"jax {kind.value}"), description, Sources(asked.sources, None), options)


def _description(kind: WheelKind) -> dict[str, Any]:
    description = jax_wheel_description(kind.value)
    return {**description, "values": {**description.get("values", {}), **_PLACES}}


_TOOL = WheelTool()


class ToolChoice(str, Enum):
    """The tool that builds the wheels for the rules."""

    ROCWHEEL = "rocwheel"
    JAX = "jax"


@jax_app.command("wheel-targets", hidden=True)
def wheel_targets(
    settings: SettingsOption = Path("rocm.toml"),
    tool: Annotated[
        ToolChoice, option("--tool", help="Make the wheels with rocwheel or with JAX's own programs.")
    ] = ToolChoice.ROCWHEEL,
    rules: Annotated[
        str, option("--rules", metavar="LABEL", help="Load the rocwheel jax starlark rules from this package.")
    ] = _TOOL.rules,
    library: Annotated[
        str, option("--library", metavar="LABEL", help="Use rocwheel from this Python library.")
    ] = _TOOL.library,
    *,
    out: Output,
) -> None:
    """Print Bazel targets for jaxlib/tools/BUILD.bazel.

    The targets are JAX's own wheel rules for the ROCm version in the settings.

    Example: rocwheel jax wheel-targets --settings rocm.toml >> jaxlib/tools/BUILD.bazel
    """
    if tool is ToolChoice.JAX:
        _check_unused(rules, library)
    given = make_wheel_tool(rules, library) if tool is ToolChoice.ROCWHEEL else None
    text = render_wheel_targets(read_settings(settings), given)
    if out.json:
        print_json("jax.wheel_targets", 1, {"text": text})
    else:
        click.echo(text, nl=False)


def _check_unused(rules: str, library: str) -> None:
    """Raise `InputError` for a label that JAX's own programs can't use, or `ProblemsError` for both labels."""
    given = {"--rules": (rules, _TOOL.rules), "--library": (library, _TOOL.library)}
    remedy = "Remove the option, or add --tool rocwheel."
    unused = [
        InputError(option, f"is {value!r}, but --tool jax doesn't use rocwheel", remedy=remedy)
        for option, (value, default) in given.items()
        if value != default
    ]
    raise_all("options", unused)
