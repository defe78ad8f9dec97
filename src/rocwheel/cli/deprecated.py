"""Deprecated spellings of commands and options: the one place that knows them. Each runs as what replaces it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "version": "--version",
    "help": "--help",
    "plan": "build --dry-run",
    "index unyank": "index yank --undo",
    "cache verify": "cache info --verify",
    "artifacts from-deb": "artifacts import",
    "artifacts from-prefix": "artifacts import",
    "targets expand": "targets list --format targets",
    "targets check": "targets detect --check",
}
"""Deprecated commands, and the words that replace them."""

_HELP, _VERSION, _EXPAND = "help", "version", "targets expand"


def replace_deprecated(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command line with the words of today in place of deprecated ones, and a notice for each of these."""
    for length in (2, 1):
        command, rest = " ".join(words[:length]), list(words[length:])
        if command not in COMMANDS:
            continue
        now = COMMANDS[command]
        if command == _VERSION:  # which has nothing to be quiet about
            rest = [word for word in rest if word == "--json"]
        if command == _EXPAND:
            rest = ["--format" + word.removeprefix("--to") if _is_to(word) else word for word in rest]
        replaced = [*rest, now] if command == _HELP else [*now.split(), *rest]
        return replaced, [_notice(command, now)]
    return list(words), []


def _is_to(word: str) -> bool:
    return word == "--to" or word.startswith("--to=")


def _notice(old: str, now: str) -> str:
    return f"rocwheel: {old!r} is deprecated; use {now!r}."
