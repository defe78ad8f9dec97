"""Calls of ``build/build.py`` as they stand in a file."""

from __future__ import annotations

import msgspec

from rocwheel.frameworks.jax.spelling import CommandForm
from rocwheel.frameworks.jax_migration.build_py import SUBCOMMANDS, TOOL

__all__ = ["OldCall", "OldCalls", "OptionalWords", "UndecidedCall", "UndecidedError", "call_start"]


class OptionalWords(msgspec.Struct, frozen=True):
    """Arguments that a call has under a condition alone."""

    line: int
    condition: str
    """As it is written, such as ``if rbe``."""
    words: tuple[str, ...]


class OldCall(msgspec.Struct, frozen=True):
    """A call of the old tool, with the variables of the environment that stand before it."""

    first_line: int
    last_line: int
    words: tuple[str, ...]
    """Literal, but for the references of `rocwheel.frameworks.jax.words`."""
    form: CommandForm
    """How commands are spelled where the call stands."""
    template: bool = False
    """Whether it stands in a text of Python's that ``%`` fills in."""
    optional: tuple[OptionalWords, ...] = ()


class UndecidedCall(msgspec.Struct, frozen=True):
    """A call that the file alone does not decide."""

    first_line: int
    last_line: int
    reason: str
    is_broken: bool = False
    """Whether no shell reads the file from there on, so that nothing behind it is certain."""


class OldCalls(msgspec.Struct, frozen=True):
    """The calls of a file, in the order of their lines."""

    calls: tuple[OldCall, ...]
    undecided: tuple[UndecidedCall, ...]


class UndecidedError(Exception):
    """A call can't be decided, for the reason that is the text."""


def call_start(words: list[str]) -> int | None:
    """Return where a command names the old tool with a subcommand behind it; None for other commands."""
    for index, word in enumerate(words):
        if word.rpartition("/")[2] == TOOL:
            behind = words[index + 1 :]
            return index if any(item in SUBCOMMANDS or "\0" in item for item in behind) else None
    return None
