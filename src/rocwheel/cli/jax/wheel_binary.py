"""``rocwheel jax wheel-binary``: rocwheel as the ``wheel_binary`` of JAX's own rule, ``jax_wheel``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from rocwheel.cli.jax.group import jax_app
from rocwheel.cli.jax.wheel import WheelKind
from rocwheel.cli.parsing.shared_options import shared, takes
from rocwheel.cli.wheel.options import Assembly, Sources, read_checks
from rocwheel.frameworks.jax.starlark import jax_wheel_description, parse_cpu_tags, read_rule_call
from rocwheel.frameworks.wheel_spec import read_spec, settable_values

__all__ = ["wheel_binary"]

_CPU_TAG = "--cpu-tag"
_PLACES = {"init": "jax_plugins/rocm/__init__.py"}
"""Where JAX itself has what rocm-jax has elsewhere."""


@jax_app.command("wheel-binary")
@takes(checks=read_checks)
def wheel_binary(
    kind: Annotated[
        WheelKind,
        typer.Argument(
            metavar="KIND", help="Make the wheel of the extension modules (plugin) or of the PJRT plugin (pjrt)."
        ),
    ],
    call: Annotated[
        list[str], typer.Argument(metavar="CALL", help="Make what this call of the rule asks for; put -- before it.")
    ],
    version: Annotated[str, shared("--version", "Set the wheel's version, that of JAX.")],
    python: Annotated[
        str, typer.Option("--python", metavar="3.X", help="Set the Python that the extension modules are for.")
    ] = "",
    cpu_tags: Annotated[
        list[str] | None,
        typer.Option(_CPU_TAG, metavar="CPU=TAG", help="Give a wheel for this CPU this platform tag."),
    ] = None,
    spec: Annotated[
        Path | None,
        shared("--spec", "Read the description from this file, in place of the one for ROCm's JAX."),
    ] = None,
    *,
    checks: Assembly,
) -> None:
    """Make a wheel as the wheel_binary of JAX's rule jax_wheel, by the command line that the rule gives it.

    The rules of rocwheel jax starlark call it (jax_wheel_binary), with the version and the tags of the file name that
    the rule declares.

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
