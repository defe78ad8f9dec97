"""The help of every command: whole names, no types of Python, one spelling of arguments; and ``rocwheel help``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.support.commands import COMMANDS, GROUPS

if TYPE_CHECKING:
    from tests.support.command_line import Run

WIDTHS = (60, 80, 120)


def helped(run: Run, monkeypatch: pytest.MonkeyPatch, words: str, width: int) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    finished = run(*words.split(), "--help")
    assert (finished.status, finished.stderr) == (0, "")
    return finished.stdout


@pytest.mark.parametrize("words", [*COMMANDS, *GROUPS])
def test_help_cuts_no_option_name_and_shows_no_type(run: Run, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    for width in WIDTHS:
        text = helped(run, monkeypatch, words, width)
        assert "…" not in text
        names = {
            name for option in (COMMANDS | GROUPS)[words].params for name in (*option.opts, *option.secondary_opts)
        }
        for name in names if words in COMMANDS else ():
            assert not name.startswith("-") or re.search(rf"^  .*{re.escape(name)}\b", text, re.MULTILINE), name
        assert re.findall(r"<(?:str|int|bool|float|path|file|dir|list\[.*)>", text, re.IGNORECASE) == []


@pytest.mark.parametrize("words", [*COMMANDS, *GROUPS])
def test_help_fits_its_width(run: Run, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    for width in WIDTHS:
        text = helped(run, monkeypatch, words, width)
        assert [line for line in text.splitlines() if len(line) > width and " " in line.strip()] == []


@pytest.mark.parametrize("words", COMMANDS)
def test_the_usage_line_has_the_arguments_as_the_list_below_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    usage, _, rest = helped(run, monkeypatch, words, 200).partition("\n\n")
    pattern = rf"Usage: rocwheel {words} \[OPTIONS\]((?: \[?[A-Z][A-Z=_,]*(?:\[,TO\.\.\.\])?(?:\.\.\.)?\]?)*)"
    spelled = re.fullmatch(pattern, usage)
    assert spelled, usage
    section = re.search(r"^Arguments:\n(.*?)\n\n", rest, re.MULTILINE | re.DOTALL)
    listed = re.findall(r"^  (\S+)", section[1], re.MULTILINE) if section else []
    assert [re.sub(r"^\[(.*)\]$", r"\1", word) for word in spelled[1].split()] == listed


@pytest.mark.parametrize("words", COMMANDS)
def test_an_example_is_a_paragraph_of_its_own(run: Run, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    text = helped(run, monkeypatch, words, 120)
    assert len(re.findall(r"\n\n  Example: ", text)) == text.count("Example: ") == 1


def test_the_list_of_commands_has_whole_sentences(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in GROUPS:
        assert "..." not in helped(run, monkeypatch, words, 80).partition("Commands:")[2]


@pytest.mark.parametrize("words", ["", "targets", "targets list"])
def test_the_help_command_prints_what_help_prints(run: Run, words: str) -> None:
    finished = run("help", *words.split())
    assert finished == run(*words.split(), "--help")
    assert finished.stdout.startswith(f"Usage: rocwheel {words}".rstrip())


@pytest.mark.parametrize("words", GROUPS)
def test_a_group_without_a_command_prints_its_help_and_fails(run: Run, words: str) -> None:
    finished = run(*words.split())
    assert (finished.status, finished.stdout) == (2, "")
    assert finished.stderr == run(*words.split(), "--help").stdout
