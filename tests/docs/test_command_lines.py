"""The command lines on the pages have options that their commands take."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.cli import load_commands
from rocwheel.cli.app import app
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGES = sorted({*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"} - {ROOT / "docs/mistakes.md"})
_COMMAND_LINE = re.compile(r"(?<![\w/.=-])rocwheel ((?:[^`\n|&;)]|\\\n)+)")
_OPTION = re.compile(r"--[a-z][a-z-]*")
_Options = dict[tuple[str, ...], set[str]]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture(scope="module")
def options() -> _Options:
    """Return the options of each command, by its words."""
    load_commands()
    found: _Options = {}

    def add(command: Any, words: tuple[str, ...]) -> None:
        names = (name for option in command.params for name in (*option.opts, *option.secondary_opts))
        found[words] = {"--help", *names}
        for name, inner in getattr(command, "commands", {}).items():
            add(inner, (*words, *name.split()))  # such as "index mirror", beside "index"

    add(app, ())
    return found


@pytest.mark.parametrize("path", PAGES, ids=_name)
def test_options_on_a_page_exist_in_their_commands(path: Path, options: _Options) -> None:
    wrong = []
    for line in _COMMAND_LINE.findall(path.read_text()):
        words = line.replace("\\\n", " ").split(" -- ")[0].split()
        command: tuple[str, ...] = ()
        while words and (*command, words[0]) in options:
            command = (*command, words.pop(0))
        if command:  # else it is the name of the project in a sentence
            given = {match[0] for word in words if (match := _OPTION.match(word.lstrip('["')))}
            wrong += [f"rocwheel {' '.join(command)} {option}" for option in given - options[command]]
    assert wrong == []
