"""``rocwheel jax wheel-targets``: targets for JAX's own wheel rules."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli.jax.group import jax_app
from rocwheel.cli.jax.options import SettingsOption
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.core.errors import InputError
from rocwheel.core.workers import raise_all
from rocwheel.frameworks.jax.settings import read_settings
from rocwheel.frameworks.jax.starlark import WheelTool, make_wheel_tool, render_wheel_targets

__all__ = ["ToolChoice", "wheel_targets"]

_TOOL = WheelTool()


class ToolChoice(str, Enum):
    """What makes the wheels for the rules."""

    ROCWHEEL = "rocwheel"
    JAX = "jax"


@jax_app.command("wheel-targets")
def wheel_targets(
    settings: SettingsOption = Path("rocm.toml"),
    tool: Annotated[
        ToolChoice, typer.Option("--tool", help="Have rocwheel make the wheels, or JAX's own programs.")
    ] = ToolChoice.ROCWHEEL,
    rules: Annotated[
        str, typer.Option("--rules", metavar="LABEL", help="Load the rules of rocwheel jax starlark from this package.")
    ] = _TOOL.rules,
    library: Annotated[
        str, typer.Option("--library", metavar="LABEL", help="Take rocwheel from this Python library.")
    ] = _TOOL.library,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print targets for jaxlib/tools/BUILD.bazel: JAX's own wheel rules, for the settings' version of ROCm.

    Example: rocwheel jax wheel-targets --settings rocm.toml >> jaxlib/tools/BUILD.bazel
    """
    setup_logging(quiet=quiet, verbose=verbose)
    if tool is ToolChoice.JAX:
        _check_unused(rules, library)
    given = make_wheel_tool(rules, library) if tool is ToolChoice.ROCWHEEL else None
    text = render_wheel_targets(read_settings(settings), given)
    if json:
        print_json("jax.wheel_targets", 1, {"text": text})
    else:
        typer.echo(text, nl=False)


def _check_unused(rules: str, library: str) -> None:
    """Raise `InputError` for a label that JAX's own programs have no use for, `ProblemsError` for both."""
    given = {"--rules": (rules, _TOOL.rules), "--library": (library, _TOOL.library)}
    remedy = "Leave it out, or give --tool rocwheel."
    unused = [
        InputError(option, f"is {value!r}, but --tool jax doesn't use rocwheel", remedy=remedy)
        for option, (value, default) in given.items()
        if value != default
    ]
    raise_all("options", unused)
