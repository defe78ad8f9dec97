"""``rocwheel jax wheel``: make one of JAX's wheels from Bazel's outputs."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli.jax.group import jax_app
from rocwheel.cli.parsing.shared_options import shared, takes
from rocwheel.cli.wheel.options import Assembly, Sources, read_assembly, read_sources
from rocwheel.frameworks.jax.starlark import jax_wheel_description, rocm_major
from rocwheel.frameworks.wheel_spec import read_spec

__all__ = ["WheelKind", "jax_wheel"]


class WheelKind(str, Enum):
    """Which of JAX's wheels."""

    PLUGIN = "plugin"
    PJRT = "pjrt"


@jax_app.command("wheel")
@takes(sources=read_sources, assembly=read_assembly)
def jax_wheel(
    kind: Annotated[
        WheelKind,
        typer.Argument(
            metavar="KIND", help="Make the wheel of the extension modules (plugin) or of the PJRT plugin (pjrt)."
        ),
    ],
    version: Annotated[str, shared("--version", "Set the wheel's version, that of JAX.")],
    sources: Sources,
    rocm: Annotated[
        str, shared("--rocm", metavar="VERSION", help="Set the version of ROCm; its first number stands in the names.")
    ] = "7",
    spec: Annotated[
        Path | None,
        shared("--spec", "Read the description from this file, in place of the one for ROCm's JAX."),
    ] = None,
    *,
    assembly: Assembly,
) -> None:
    """Assemble one of JAX's two wheels from Bazel's outputs, and check that its files find their libraries.

    Example: rocwheel jax wheel pjrt --version 0.12.0 --src bazel-bin/pjrt --src LICENSE --with packages/dist
    """
    description = read_spec(spec) if spec else jax_wheel_description(kind.value)
    options = {"rocm": rocm_major(rocm), "version": version}
    assembly.run(str(spec or f"jax {kind.value}"), description, sources, options)
