"""Calls of the old tool in the steps of GitHub's workflows and actions (YAML 1.2.2, block scalars)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocwheel.frameworks.jax_migration.reading.old_call import OldCalls, UndecidedCall
from rocwheel.frameworks.jax_migration.reading.shell.calls import calls_of_commands, shell_definitions
from rocwheel.frameworks.jax_migration.reading.shell.commands import shell_commands
from rocwheel.frameworks.jax_migration.reading.shell.words import held

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.frameworks.jax.words import Language
    from rocwheel.frameworks.jax_migration.reading.old_call import OldCall

__all__ = ["read_workflow_calls"]

_RUN = re.compile(r"(?P<indent>[ ]*(?:-[ ]+)*)(?P<key>run|[\"']run[\"'])[ ]*:(?:[ ]+(?P<value>.*))?$")
_BLOCK = re.compile(r"[|>][-+0-9]*[ ]*(#.*)?")
_COMMAND = re.compile(r"(?:\bpython[0-9.]*[ ]+(?:-\S+[ ]+)*|\./)[\w./-]*\bbuild/build\.py\b")
_SCRIPT, _LONGEST = "build/build.py", 1000
_EXPRESSION = re.compile(r"\$\{\{[^\n]*?\}\}")


def read_workflow_calls(text: str) -> OldCalls:
    """Return the calls of a workflow's steps."""
    calls: list[OldCall] = []
    lines = text.split("\n")
    scripts = list(_scripts(lines))
    undecided = list(_elsewhere(lines, scripts))
    for line, script in scripts:
        if "build" not in script:
            continue
        references: list[tuple[str, Language]] = []

        def hold(match: re.Match[str], found: list[tuple[str, Language]] = references) -> str:
            found.append((match[0], "workflow"))
            return held(len(found) - 1)

        commands = list(shell_commands(_EXPRESSION.sub(hold, script), line, references))
        made = calls_of_commands(commands, shell_definitions(commands), "ci")
        calls += made.calls
        undecided += made.undecided
    return OldCalls(tuple(calls), tuple(sorted(undecided, key=lambda call: call.first_line)))


def _elsewhere(lines: list[str], scripts: list[tuple[int, str]]) -> Iterator[UndecidedCall]:
    """Yield the lines that name a call outside of the steps that are read, such as in an input of an action."""
    read = {line + offset for line, script in scripts for offset in range(script.count("\n") + 1)}
    for number, line in enumerate(lines, 1):
        if number not in read and _has_command(line) and not line.lstrip().startswith("#"):
            reason = "stands in no run step of its own lines: translate the command line by itself"
            yield UndecidedCall(number, number, reason)


def _has_command(line: str) -> bool:
    """Return whether a line calls the tool; a very long one that names it may, as the pattern would take too long."""
    return _SCRIPT in line and (len(line) > _LONGEST or bool(_COMMAND.search(line)))


def _scripts(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the text of each ``run`` key, and the number of its first line."""
    index = 0
    while index < len(lines):
        match = _RUN.match(lines[index])
        index += 1
        if match is None:
            continue
        value = (match["value"] or "").strip()
        start = index
        index = _block_end(lines, index, len(match["indent"]))
        following = "\n".join(lines[start:index]).rstrip()
        if value.startswith("|") and _BLOCK.fullmatch(value):
            yield start + 1, following
        elif not value or _BLOCK.fullmatch(value):
            yield start + 1, _folded(following)
        else:
            yield start, _unquoted(_folded(f"{value}\n{following}".rstrip()))


def _folded(text: str) -> str:
    """Return lines that YAML joins by blanks, joined as a shell's continuation does."""
    return text.replace("\n", " \\\n")


def _block_end(lines: list[str], index: int, indent: int) -> int:
    while index < len(lines):
        stripped = lines[index].lstrip(" ")
        if stripped and len(lines[index]) - len(stripped) <= indent:
            return index
        index += 1
    return index


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) > 1 and value[0] == value[-1] == '"':
        return re.sub(r'\\(["\\])', r"\1", value[1:-1])
    return value
