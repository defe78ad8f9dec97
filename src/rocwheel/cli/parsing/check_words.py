"""A command line that is looked at before anything is fetched for it: nobody waits for that only to correct a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typer.main import get_command

from rocwheel.cli.parsing.app import app

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["check_words", "is_help_wanted"]

_HELP = frozenset({"--help", "-h"})


def is_help_wanted(words: Sequence[str]) -> bool:
    """Return whether a command line asks for help, for which nothing is to be fetched."""
    return bool(_HELP & {*words})


def check_words(words: Sequence[str]) -> None:
    """Raise what is wrong with the options and arguments of a command line, as the command itself would.

    They are parsed, and the values that `takes` makes of them are made; the command is not run.
    """
    group: Any = get_command(app)
    context = group.make_context("rocwheel", [*words])
    while hasattr(context.command, "resolve_command"):
        rest = [*context._protected_args, *context.args]  # noqa: SLF001  # Typer's own way to them
        if not rest:
            return
        name, command, rest = context.command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    make = getattr(context.command.callback, "make", None)
    if make is not None:
        make(dict(context.params))
