"""Every command of the command line, as the library holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocwheel.cli import load_commands
from rocwheel.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["COMMANDS", "GROUPS"]


def _below(command: Any, words: str = "") -> Iterator[tuple[str, Any]]:
    yield words.strip(), command
    for name, part in getattr(command, "commands", {}).items():
        yield from _below(part, f"{words} {name}")


load_commands()
_ALL = dict(_below(app))

COMMANDS: dict[str, Any] = {words: command for words, command in _ALL.items() if not hasattr(command, "commands")}
"""The commands by the words that call them."""

GROUPS: dict[str, Any] = {words: command for words, command in _ALL.items() if words not in COMMANDS}
"""The root, by no word, and the groups of commands."""
