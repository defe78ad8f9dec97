"""``rocwheel targets flags``: a tool's settings for targets."""

from __future__ import annotations

from typing import Annotated

import typer

from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.parsing.completion import complete_targets
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.cli.targets.group import targets_app
from rocwheel.cli.targets.options import TargetCommand, Words, read_targets
from rocwheel.core.errors import InputError
from rocwheel.targets.spelling.tool_settings import WITH_OPTIONAL, Tool, flags_for

__all__ = ["flags"]


@targets_app.command(cls=TargetCommand)
def flags(
    words: Words,
    tool: Annotated[
        Tool,
        typer.Option(
            "--for",
            metavar="TOOL",
            help=f"Print the settings for this tool: one of {', '.join(tool.value for tool in Tool)}.",
        ),
    ],
    optional: Annotated[
        list[str] | None,
        typer.Option(
            "--optional",
            metavar="TARGETS",
            autocompletion=complete_targets,
            help="With --for gentoo or ebuild: give these targets a flag that is off by default.",
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print a tool's settings for the targets, ready to paste.

    Example: rocwheel targets flags --for cmake gfx90a gfx1100
    """
    setup_logging(quiet=quiet, verbose=verbose)
    targets = read_targets(words)
    others = read_targets(optional or [], required=False)
    if optional and tool not in WITH_OPTIONAL:
        source, found = "--optional", f"{tool.value} has no optional targets"
        raise InputError(source, found, expected=" or ".join(f"--for {one.value}" for one in WITH_OPTIONAL))
    text = flags_for(tool, targets, others)
    if as_json:
        print_json("target-flags", 1, {"for": tool.value, "targets": targets.words, "text": text})
    else:
        typer.echo(text, nl=False)
