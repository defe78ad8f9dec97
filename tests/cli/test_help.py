"""The help of every command: whole names, no types of Python, one spelling of arguments; and ``rocwheel help``."""

from __future__ import annotations

import inspect
import re
import shlex
from typing import TYPE_CHECKING

import click
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
def test_help_shows_full_option_names_and_no_type_names(run: Run, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    for width in WIDTHS:
        text = helped(run, monkeypatch, words, width)
        assert "…" not in text
        names = {
            name
            for option in (COMMANDS | GROUPS)[words].params
            if not getattr(option, "hidden", False)
            for name in (*option.opts, *option.secondary_opts)
        }
        for name in names if words in COMMANDS else ():
            assert not name.startswith("-") or re.search(rf"^  .*{re.escape(name)}\b", text, re.MULTILINE), name
        assert re.findall(r"<(?:str|int|bool|float|path|file|dir|list\[.*)>", text, re.IGNORECASE) == []


@pytest.mark.parametrize("words", [*COMMANDS, *GROUPS])
def test_help_fits_its_width(run: Run, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    for width in WIDTHS:
        text = helped(run, monkeypatch, words, width)
        assert [line for line in text.splitlines() if len(line) > width and " " in line.strip()] == []


def test_help_uses_the_width_in_columns_or_80(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    widest = {width: max(map(len, helped(run, monkeypatch, "index", width).splitlines())) for width in (60, 120)}
    assert 50 < widest[60] <= 58
    assert 100 < widest[120] <= 118
    monkeypatch.delenv("COLUMNS")
    assert 70 < max(map(len, run("index", "--help").stdout.splitlines())) <= 78


@pytest.mark.parametrize("words", COMMANDS)
def test_the_usage_line_has_the_same_arguments_as_the_list_below(
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
def test_the_example_is_a_paragraph_of_its_own(run: Run, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    text = helped(run, monkeypatch, words, 120)
    assert len(re.findall(r"\n\n  Example:\n    ", text)) == text.count("Example:") == 1


@pytest.mark.parametrize("words", COMMANDS)
def test_the_example_can_be_copied_at_any_width(run: Run, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    _, _, written = inspect.cleandoc(COMMANDS[words].help).partition("Example: ")
    for width in WIDTHS:
        shown = re.search(r"Example:\n((?: {4}.*\n)+)", helped(run, monkeypatch, words, width))
        assert shown
        joined = shown[1].replace(" \\\n", " ")
        assert [shlex.split(line) for line in joined.splitlines()] == list(map(shlex.split, written.splitlines()))


@pytest.mark.parametrize("words", GROUPS)
def test_each_command_has_one_line_in_the_command_list(run: Run, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    listed = helped(run, monkeypatch, words, 80).partition("\n\nOptions:")[0].partition("\n\n")[2].partition("\n\n")[2]
    rows = [line for line in listed.splitlines() if line.startswith("  ")]
    shown = [name for name, one in GROUPS[words].commands.items() if words or not one.hidden]
    assert sorted(re.split(r"  +", row.strip())[0] for row in rows) == sorted(shown)
    assert [row for row in rows if not re.fullmatch(r"  [a-z].* {2,}[A-Z].*\.", row)] == []


def test_the_root_lists_its_commands_in_five_sections(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    headings = re.findall(r"^(\w.*):$", helped(run, monkeypatch, "", 80), re.MULTILINE)
    assert headings == ["Start here", "Build and release", "Check and compare", "ROCm's parts", "Frameworks", "Options"]


@pytest.mark.parametrize("words", ["", "targets", "targets list"])
def test_the_help_command_prints_the_same_text_as_the_help_option(run: Run, words: str) -> None:
    finished = run("help", *words.split())
    assert finished.stdout == run(*words.split(), "--help").stdout
    assert finished.stderr == "rocwheel: 'help' is deprecated; use '--help'.\n"
    assert finished.stdout.startswith(f"Usage: rocwheel {words}".rstrip())


@pytest.mark.parametrize("words", GROUPS)
def test_a_group_without_a_command_prints_its_help_and_fails(run: Run, words: str) -> None:
    finished = run(*words.split())
    assert (finished.status, finished.stdout) == (2, "")
    assert finished.stderr == run(*words.split(), "--help").stdout


VERBS = {
    "Accept",
    "Add",
    "Append",
    "Apply",
    "Assume",
    "Build",
    "Change",
    "Check",
    "Compress",
    "Compute",
    "Copy",
    "Create",
    "Decompress",
    "Estimate",
    "Exit",
    "Extract",
    "Fail",
    "Fetch",
    "Find",
    "Ignore",
    "Import",
    "Include",
    "Install",
    "Judge",
    "Keep",
    "Let",
    "Link",
    "List",
    "Load",
    "Lock",
    "Make",
    "Mark",
    "Merge",
    "Offer",
    "Overwrite",
    "Pin",
    "Print",
    "Put",
    "Read",
    "Refuse",
    "Remove",
    "Repair",
    "Repeat",
    "Report",
    "Require",
    "Reuse",
    "Run",
    "Search",
    "Select",
    "Set",
    "Show",
    "Shrink",
    "Skip",
    "Split",
    "Stop",
    "Translate",
    "Turn",
    "Unpack",
    "Use",
    "Write",
}
"""What the help of an option begins with."""
UNCLEAR = r"\balone\b|\bof what\b|\bSay of\b|\bno file tells\b|\bhave .* do\b|\be\.g\."


@pytest.mark.parametrize("words", COMMANDS)
def test_the_help_of_an_option_begins_with_a_verb(words: str) -> None:
    options = [one for one in COMMANDS[words].params if isinstance(one, click.Option) and one.help]
    assert [one.help for one in options if (one.help or "").split()[0] not in VERBS] == []


@pytest.mark.parametrize("words", COMMANDS)
def test_help_consists_of_short_plain_sentences(words: str) -> None:
    described, _, _ = inspect.cleandoc(COMMANDS[words].help).partition("Example: ")
    texts = [*described.split("\n\n"), *(one.help for one in COMMANDS[words].params if one.help)]
    sentences = [sentence for text in texts for sentence in re.split(r"(?<=[.;:])\s", " ".join(text.split()))]
    listed = [one for one in sentences if one.count(",") > 8]
    assert [one for one in sentences if len(one.split()) > 25 and one not in listed] == []
    assert [one for one in sentences if re.search(UNCLEAR, one)] == []
