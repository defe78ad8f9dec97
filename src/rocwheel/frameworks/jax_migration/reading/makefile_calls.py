"""Calls of the old tool in the recipes of Makefiles (GNU make's manual, "How to Use Variables", "Writing Recipes")."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocwheel.frameworks.jax_migration.reading.definitions import Definition, Definitions
from rocwheel.frameworks.jax_migration.reading.shell.calls import calls_of_commands
from rocwheel.frameworks.jax_migration.reading.shell.commands import shell_commands
from rocwheel.frameworks.jax_migration.reading.shell.words import held

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.frameworks.jax.words import Language
    from rocwheel.frameworks.jax_migration.reading.old_call import OldCalls
    from rocwheel.frameworks.jax_migration.reading.shell.commands import ShellCommand

__all__ = ["read_makefile_calls"]

_ASSIGNMENT = re.compile(
    r"\s*(?:(?:export|override|private)\s+)*([\w.-]+)\s*(::?:?=|\?=|\+=|!=|=)[ \t]*(.*)", re.DOTALL
)
_CONDITION = re.compile(r"\s*(ifeq|ifneq|ifdef|ifndef)\b")
_CONDITION_END = re.compile(r"\s*endif\b")
_FILLED_IN = re.compile(
    r"(?P<dollar>\$\$)"
    r"|(?P<make>\$\((?:[^()\n]|\([^()\n]*\))*\)|\$\{(?:[^{}\n]|\{[^{}\n]*\})*\}|\$[A-Za-z@<^?*+|%])"
)
_TEMPLATE = re.compile(r"%(?:\((?P<name>\w+)\)s|(?P<percent>%))")
_CONTINUED = re.compile(r"\\\n[ \t]*")


def read_makefile_calls(text: str, first_line: int = 1, *, template: bool = False) -> OldCalls:
    """Return the calls of a Makefile; with ``template`` of one that Python's ``%`` makes."""
    definitions: Definitions = {}
    recipes = []
    depth = 0
    for line, logical in _logical_lines(text, first_line):
        depth += bool(_CONDITION.match(logical)) - bool(_CONDITION_END.match(logical))
        if logical.startswith("\t"):
            recipes.append((line, logical))
        elif match := _ASSIGNMENT.fullmatch(logical):
            value = _CONTINUED.sub(" ", match[3])
            words = tuple(word for command in _commands(value, line, template=template) for word in command.words)
            certain = not depth and match[2] not in {"+=", "!="}
            definitions.setdefault(match[1], []).append(Definition(line, words, certain))
    commands = [
        command
        for line, recipe in recipes
        if "build" in recipe
        for command in _commands(recipe, line, template=template)
    ]
    return calls_of_commands(commands, definitions, "makefile", template=template)


def _commands(text: str, line: int, *, template: bool) -> Iterator[ShellCommand]:
    """Yield the shell's commands of a recipe; what make and Python fill in are references."""
    references: list[tuple[str, Language]] = []

    def hold(match: re.Match[str]) -> str:
        if match["dollar"]:
            return "$"
        references.append((match["make"], "make"))
        return held(len(references) - 1)

    def hold_name(match: re.Match[str]) -> str:
        if match["percent"]:
            return "%"
        references.append((match[0], "template"))
        return held(len(references) - 1)

    kept = _TEMPLATE.sub(hold_name, text) if template else text
    return shell_commands(_FILLED_IN.sub(hold, kept), line, references)


def _logical_lines(text: str, first_line: int) -> Iterator[tuple[int, str]]:
    """Yield lines with those that continue them, and the number of the first of each."""
    collected: list[str] = []
    start = first_line
    for number, line in enumerate(text.split("\n"), first_line):
        if not collected:
            start = number
        collected.append(line)
        if not line.endswith("\\"):
            yield start, "\n".join(collected)
            collected = []
    if collected:
        yield start, "\n".join(collected)
