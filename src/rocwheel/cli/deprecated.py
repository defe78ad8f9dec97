"""Deprecated spellings of commands and options: the one place that knows them. Each runs as what replaces it."""

from __future__ import annotations

import re
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

_OUTPUT = {"--dest-dir": "--output", "-d": "-o"}
OPTIONS: dict[str, dict[str, str]] = {
    "build": {"--compression": "--level"},
    "index": {"--yank": "", "--unyank": ""},
    "index mirror": {**_OUTPUT, "--platform": "--platform-tag"},
    "repair": _OUTPUT,
    "wheel": _OUTPUT,
    "artifacts list": {"--target": "--targets", "--component": "--components", "--files": "--verbose"},
    "artifacts fetch": _OUTPUT,
    "artifacts import": _OUTPUT,
    "artifacts merge": _OUTPUT,
    "artifacts archive": _OUTPUT,
    "artifacts extract": _OUTPUT,
    "device extract": {**_OUTPUT, "--target": "--targets"},
    "device prune": {"--keep": "--targets"},
    "device split": _OUTPUT,
    "device join": _OUTPUT,
    "runpath set": _OUTPUT,
    "targets list": {"--to": "--format"},
    "jax commands": _OUTPUT,
    "jax wheel": _OUTPUT,
}
"""Deprecated options by their command, and those that replace them; empty where another command does, as below."""
_OTHER_COMMANDS = {"--yank": "index yank", "--unyank": "index yank --undo"}

_HELP, _VERSION = "help", "version"
_CLUSTER = re.compile(r"(?:(-d)(.+)|-([qv]+)d(.*))", re.DOTALL)
"""A short option with its value, or behind flags."""


def replace_deprecated(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command line with the words of today in place of deprecated ones, and a notice for each of these."""
    replaced, notices = _replace_command(words)
    options = next((OPTIONS[name] for name in _names(replaced) if name in OPTIONS), {})
    end = replaced.index("--") if "--" in replaced else len(replaced)
    found: dict[str, str] = {}
    current = [_replace_option(word, options, found) for word in replaced[:end]]
    notices += [_notice(old, now or f"rocwheel {_OTHER_COMMANDS[old]}") for old, now in found.items() if old != "--to"]
    return [*current, *replaced[end:]], notices


def _names(words: Sequence[str]) -> tuple[str, str]:
    """Return what a command's name may be, the longer first."""
    return " ".join(words[:2]), " ".join(words[:1])


def _replace_command(words: Sequence[str]) -> tuple[list[str], list[str]]:
    old = next((name for name in _names(words) if name in COMMANDS), None)
    if old is None:
        return list(words), []
    now, rest = COMMANDS[old], list(words[len(old.split()) :])
    if old == _VERSION:  # which has nothing to be quiet about
        rest = [word for word in rest if word == "--json"]
    replaced = [*rest, now] if old == _HELP else [*now.split(), *rest]
    return replaced, [_notice(old, now)]


def _replace_option(word: str, options: dict[str, str], found: dict[str, str]) -> str:
    """Return the word of today, and note in ``found`` what it replaces."""
    name, equals, value = word.partition("=")
    if name in options and name.startswith("--"):
        found[name] = options[name]
        return f"{options[name] or name}{equals}{value}"
    if "-d" not in options or word.startswith("--"):
        return word
    match = _CLUSTER.fullmatch(word)
    if word != "-d" and match is None:
        return word
    found["-d"] = options["-d"]
    if match is None:
        return options["-d"]
    return f"-o{match[2]}" if match[1] else f"-{match[3]}o{match[4]}"


def _notice(old: str, now: str) -> str:
    return f"rocwheel: {old!r} is deprecated; use {now!r}."
