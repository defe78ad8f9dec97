"""Calls of the old tool in the steps of GitHub's workflows and actions (YAML 1.2.2, block scalars)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocwheel.frameworks.jax_migration.reading.old_call import OldCalls
from rocwheel.frameworks.jax_migration.reading.shell.calls import calls_of_commands, shell_definitions
from rocwheel.frameworks.jax_migration.reading.shell.commands import shell_commands
from rocwheel.frameworks.jax_migration.reading.shell.words import held

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.frameworks.jax.words import Language
    from rocwheel.frameworks.jax_migration.reading.old_call import OldCall, UndecidedCall

__all__ = ["read_workflow_calls"]

_RUN = re.compile(r"(?P<indent>[ ]*(?:-[ ]+)*)(?P<key>run|[\"']run[\"'])[ ]*:(?:[ ]+(?P<value>.*))?$")
_BLOCK = re.compile(r"[|>][-+0-9]*[ ]*(#.*)?")
_EXPRESSION = re.compile(r"\$\{\{[^\n]*?\}\}")


def read_workflow_calls(text: str) -> OldCalls:
    """Return the calls of a workflow's steps."""
    calls: list[OldCall] = []
    undecided: list[UndecidedCall] = []
    for line, script in _scripts(text.split("\n")):
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
    return OldCalls(tuple(calls), tuple(undecided))


def _scripts(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the text of each ``run`` key, and the number of its first line."""
    index = 0
    while index < len(lines):
        match = _RUN.match(lines[index])
        index += 1
        if match is None:
            continue
        value = (match["value"] or "").strip()
        if not value or _BLOCK.fullmatch(value):
            start = index
            index = _block_end(lines, index, len(match["indent"]))
            # A folded scalar joins lines by blanks, as a shell's continuation does.
            joined = " \\\n" if value.startswith(">") else "\n"
            yield start + 1, joined.join(lines[start:index])
        else:
            yield index, _unquoted(value)


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
