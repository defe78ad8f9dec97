"""Deprecated forms of commands and options, each with its replacement."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import click

from rocwheel.cli.app import app
from rocwheel.cli.commands import load_commands

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
    "index mirror": {**_OUTPUT, "--platform": "--platform-tag", "--requirements": "--with-requirements"},
    "audit": {"--expect-runpath": "--expect runpath=", "--expect-tag": "--expect tag="},
    "repair": {**_OUTPUT, "--runpath": "--no-rpath"},
    "publish": {"--files": "--dist"},
    "promote": _OUTPUT,
    "selector merge": _OUTPUT,
    "diff": {"--all": "--verbose"},
    "wheel": {**_OUTPUT, "--python": "--python-version"},
    "artifacts list": {"--target": "--targets", "--component": "--components", "--files": "--verbose"},
    "artifacts fetch": _OUTPUT,
    "artifacts import": _OUTPUT,
    "artifacts merge": {**_OUTPUT, "--hard-links": "--files hardlink"},
    "artifacts archive": _OUTPUT,
    "artifacts extract": _OUTPUT,
    "device extract": {**_OUTPUT, "--target": "--targets"},
    "device prune": {"--keep": "--targets", "--allow-empty": "--allow-missing"},
    "device split": _OUTPUT,
    "device join": _OUTPUT,
    "runpath for": {"--spell": "--tool"},
    "runpath set": _OUTPUT,
    "targets list": {
        "--to": "--format",
        "--official": "--rocm",
        **{f"--{name}": f"--filter {name}=" for name in ("family", "kind", "feature", "product")},
    },
    "targets flags": {"--for": "--tool"},
    "targets coherent": {"--require": "--targets"},
    "jax commands": {**_OUTPUT, "--form": "--format"},
    "jax wheel": {**_OUTPUT, "--python": "--python-version"},
    "torch init": {"--sdk-version": "--rocm", "--lock": "--pin"},
    "torch requirements": {"--sdk-version": "--rocm", "--lock": "--pin"},
    "torch runpath": {"--folder": "--at", "--spell": "--tool"},
}
"""Deprecated options of each command, and the words that replace them.

The words are empty if another command replaces the option, as below. Words that end with ``=`` receive the option's
value: ``--filter kind=desktop`` replaces ``--kind desktop``.
"""
_OTHER_COMMANDS = {"--yank": "index yank", "--unyank": "index yank --undo"}

_HELP, _VERSION = "help", "version"
_END = "--"
"""The words after this word are not options."""


def replace_deprecated(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command line with replacements for deprecated words, and a notice about each of them."""
    replaced, notices = _replace_command(words)
    name = next((name for name in _names(replaced) if name in OPTIONS), "")
    options = OPTIONS.get(name, {})
    at = len(name.split())
    before, behind = replaced[:at], replaced[at:]
    if not any(_may_be_one_of(options, word) for word in behind):
        return replaced, notices
    found: dict[str, str] = {}
    current = [*before, *_replace_options(behind, _Replacement(options, _spellings(before)), found)]
    notices += [_notice(old, _shown(old, now)) for old, now in found.items() if old != "--to"]
    return current, notices


def _names(words: Sequence[str]) -> tuple[str, str]:
    """Return the possible names of a command, the longer one first."""
    return " ".join(words[:2]), " ".join(words[:1])


def _replace_command(words: Sequence[str]) -> tuple[list[str], list[str]]:
    old = next((name for name in _names(words) if name in COMMANDS), None)
    if old is None:
        return list(words), []
    now, rest = COMMANDS[old], list(words[len(old.split()) :])
    if old == _VERSION:  # the version has no messages that --quiet could suppress
        rest = [word for word in rest if word not in {"--quiet", "-q"}]
    replaced = [*rest, now] if old == _HELP else [*now.split(), *rest]
    return replaced, [_notice(old, now)]


def _may_be_one_of(options: Iterable[str], word: str) -> bool:
    if word.startswith("--"):
        return word.partition("=")[0] in options
    return word.startswith("-") and any(f"-{letter}" in options for letter in word[1:])


class _Spellings(NamedTuple):
    """The options of a command."""

    flags: frozenset[str]
    """The options without a value, or with a value only after ``=``."""
    valued: frozenset[str]
    """The options whose value can be the next word."""


def _spellings(command: Sequence[str]) -> _Spellings:
    """Return the options of a command. This imports the command."""
    load_commands(command)
    held = app.commands.get(" ".join(command)) or getattr(app.commands[command[0]], "commands", {})[command[-1]]
    valued = {
        name
        for one in held.params
        if isinstance(one, click.Option) and not (one.is_flag or one._flag_needs_value)  # noqa: SLF001
        for name in one.opts
    }
    names = {name for one in held.params for name in (*one.opts, *one.secondary_opts)}
    return _Spellings(frozenset(names - valued), frozenset(valued))


class _Replacement(NamedTuple):
    """The replaced words, and the command's current options."""

    old: Mapping[str, str]
    today: _Spellings

    def takes_next(self, name: str) -> bool:
        """Return whether the value of an option, deprecated or not, is the next word."""
        words = (self.old.get(name) or name).split()
        return words[0] in self.today.valued and (len(words) == 1 or words[-1].endswith("="))


def _replace_options(words: Sequence[str], how: _Replacement, found: dict[str, str]) -> Iterator[str]:
    """Yield the current words, and record in ``found`` the words that they replace. Option values stay unchanged."""
    rest = deque(words)
    while rest and rest[0] != _END:
        word = rest.popleft()
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            has_value = bool(equals)
            if not equals and rest and how.takes_next(name):
                has_value, value = True, rest.popleft()
            yield from (
                _replace_long(name, value, how.old, found, equals=equals)
                if has_value
                else _replace_flag(name, how.old, found)
            )
            continue
        short, takes_next = _replace_short(word, how, found)
        yield short
        if takes_next and rest:
            yield rest.popleft()
    yield from rest


def _replace_long(
    name: str, value: str, old: Mapping[str, str], found: dict[str, str], *, equals: str
) -> Iterator[str]:
    """Yield an option and its value. They remain a single word if they were a single word."""
    now = old.get(name)
    if now is not None:
        found[name] = now
    words = (now or name).split()
    if words[-1].endswith("="):
        yield from (*words[:-1], f"{words[-1]}{value}")
    elif equals:
        yield from (*words[:-1], f"{words[-1]}={value}")
    else:
        yield from (*words, value)


def _replace_flag(name: str, old: Mapping[str, str], found: dict[str, str]) -> Iterator[str]:
    now = old.get(name)
    if now is not None:
        found[name] = now
    yield from (now or name).split()


def _replace_short(word: str, how: _Replacement, found: dict[str, str]) -> tuple[str, bool]:
    """Return a word that may contain short options, with current options, and whether the next word is a value."""
    if not word.startswith("-") or word == "-":
        return word, False
    replaced = "-"
    for at, letter in enumerate(word[1:], 1):
        name = f"-{letter}"
        now = how.old.get(name, name)
        if now not in how.today.flags | how.today.valued:
            return word, False  # Click reports the problem.
        replaced += now[1]
        if now != name:
            found[name] = now
        if now in how.today.valued:
            return replaced + word[at + 1 :], at == len(word) - 1
    return replaced, False


def _shown(old: str, now: str) -> str:
    """Return the text for an option in a notice."""
    if not now:
        return f"rocwheel {_OTHER_COMMANDS[old]}"
    return f"{now}VALUE" if now.endswith("=") else now


def _notice(old: str, now: str) -> str:
    return f"rocwheel: {old!r} is deprecated; use {now!r}."
