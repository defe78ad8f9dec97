"""Calls of the old tool in shell scripts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocwheel.frameworks.jax_migration.build_py import TOOL
from rocwheel.frameworks.jax_migration.reading.definitions import (
    Definition,
    Definitions,
    expand_arguments,
    split_fields,
)
from rocwheel.frameworks.jax_migration.reading.old_call import (
    OldCall,
    OldCalls,
    UndecidedCall,
    UndecidedError,
    call_start,
)
from rocwheel.frameworks.jax_migration.reading.shell.commands import ShellCommand, shell_commands

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.frameworks.jax.spelling import CommandForm

__all__ = ["calls_of_commands", "check_indirect", "read_shell_calls", "shell_definitions"]

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_DECLARING = frozenset({"export", "readonly", "local", "declare", "typeset"})
_OPENING = frozenset({"if", "while", "until", "for", "case", "select"})
_CLOSING = frozenset({"fi", "done", "esac"})
_INNER = frozenset({"then", "else", "elif", "do", "{", "!"})
_PYTHON = re.compile(r"python[0-9.]*")
_PREFIXES = frozenset({"env", "exec", "time", "nohup", "sudo", "then", "else", "do", "!", "{", "command", "if"})
_BUILDERS = ("ci_build", "build_wheels.py")
_INNER_CALL = re.compile(rf"{re.escape(TOOL)}\s+(?:build|requirements)")
"""A call in the text of a command."""


def read_shell_calls(text: str, first_line: int = 1, *, certain: bool = True) -> OldCalls:
    """Return the calls of a shell script, and its quotes without an end unless it is not ``certain`` to be one."""
    commands = list(shell_commands(text, first_line))
    found = calls_of_commands(commands, shell_definitions(commands), "shell")
    unclosed = [_unclosed(command) for command in commands if certain and command.unclosed]
    # What an open quote swallows has no other reason.
    told = {item.last_line for item in unclosed}
    undecided = [*unclosed, *(item for item in found.undecided if item.last_line not in told)]
    return OldCalls(found.calls, tuple(sorted(undecided, key=lambda item: item.first_line)))


def _unclosed(command: ShellCommand) -> UndecidedCall:
    line, quote = command.unclosed or (command.first_line, "")
    reason = f"the quote {quote} in line {line} has no end, so that no shell reads this: close it"
    return UndecidedCall(line, command.last_line, reason, is_broken=True)


def calls_of_commands(
    commands: Iterable[ShellCommand], definitions: Definitions, form: CommandForm, *, template: bool = False
) -> OldCalls:
    """Return the calls among commands."""
    calls, undecided = [], []
    for command in commands:
        try:
            words = _call_words(command.words, definitions)
        except UndecidedError as e:
            undecided.append(UndecidedCall(command.first_line, command.last_line, str(e)))
            continue
        if words and command.unclosed:
            undecided.append(_unclosed(command))
        elif words:
            calls.append(OldCall(command.first_line, command.last_line, words, form, template))
    return OldCalls(tuple(calls), tuple(undecided))


def _call_words(words: Sequence[str], definitions: Definitions) -> tuple[str, ...]:
    """Return the words of a call with its arguments expanded, none for another command."""
    names = [word.lstrip("@-+") if index == 0 else word for index, word in enumerate(words)]
    start = call_start(names)
    if start is None or not _runs(names[:start]):
        check_indirect(names)
        return ()
    return (*_prefix(names[:start]), names[start], *expand_arguments(names[start + 1 :], definitions))


def check_indirect(words: Sequence[str]) -> None:
    """Raise `UndecidedError` for a command that calls the old tool through another."""
    for index, word in enumerate(words):
        if index and _INNER_CALL.search(word):
            message = "stands in the text of a command for another shell: translate it by itself"
            raise UndecidedError(message)
        if word.rpartition("/")[2] in _BUILDERS and _runs(words[:index]):
            message = f"{word} calls {TOOL} in its turn: give that file, too"
            raise UndecidedError(message)


def _runs(before: Sequence[str]) -> bool:
    """Return whether a command runs the program behind these words."""
    last = before[-1] if before else ""
    if not last or last in _PREFIXES or _ASSIGNMENT.fullmatch(last) or last.endswith("\0"):
        return True
    return bool(_PYTHON.fullmatch(last.rpartition("/")[2])) or (last.startswith("-") and _runs(before[:-1]))


def _prefix(words: Sequence[str]) -> Iterator[str]:
    """Yield the assignments before a call, and the interpreter."""
    for word in words:
        if _ASSIGNMENT.fullmatch(word) or _PYTHON.fullmatch(word.rpartition("/")[2]):
            yield word


def shell_definitions(commands: Iterable[ShellCommand]) -> Definitions:
    """Return the variables that a script sets, with their values as they are split where they stand unquoted."""
    found: Definitions = {}
    depth = 0
    for command in commands:
        words = list(command.words)
        while words and words[0] in _INNER:
            del words[0]
        first = words[0] if words else ""
        depth += (first in _OPENING) - (first in _CLOSING)
        if first in _DECLARING:
            words = [word for word in words[1:] if not word.startswith("-")]
        matches = [_ASSIGNMENT.fullmatch(word) for word in words]
        if not all(matches):
            continue
        for match in filter(None, matches):
            value = split_fields(match[3]) if command.array is None else command.array
            certain = not (depth or command.chained or match[2])
            found.setdefault(match[1], []).append(Definition(command.first_line, value, certain))
    return found
