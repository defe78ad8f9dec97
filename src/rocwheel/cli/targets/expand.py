"""``rocwheel targets expand``: the targets that words stand for."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.cli.targets.group import targets_app
from rocwheel.cli.targets.options import TargetCommand, Words, read_targets
from rocwheel.cli.targets.text import print_target_set
from rocwheel.targets.spelling.shorten import fold_to_families, fold_to_generics

__all__ = ["Form", "expand"]


class Form(str, Enum):
    """What `expand` turns targets into."""

    TARGETS = "targets"
    FAMILIES = "families"
    GENERICS = "generics"


@targets_app.command(cls=TargetCommand)
def expand(
    words: Words,
    to: Annotated[
        Form, typer.Option(help="Print single targets, the families that hold exactly these, or generic processors.")
    ] = Form.TARGETS,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print the GPU targets that each word means, one per line.

    With --to: print families or generic processors instead.

    Example: rocwheel targets expand gfx94X-dcgpu official@6.4 --to generics
    """
    setup_logging(quiet=quiet, verbose=verbose)
    targets = read_targets(words)
    if to is Form.FAMILIES:
        lines = fold_to_families(targets)
    else:
        lines = (fold_to_generics(targets) if to is Form.GENERICS else targets).words
    print_target_set(to.value, lines, as_json=as_json)
