"""``python -m trials.fuzz``, which ``make fuzz`` runs."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.given_words import read_words
from trials.fuzz import __main__ as command
from trials.fuzz.__main__ import main
from trials.fuzz.attempt import Fault
from trials.fuzz.runner import Row

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_OPTIONS, _NAMES = ("--record", "--long"), ("elf.facts", "elf.traits", "pe.facts")


@pytest.mark.parametrize(
    ("words", "options", "names"),
    [
        ([], set(), _NAMES),
        (["--long"], {"--long"}, _NAMES),
        (["pe.facts", "elf."], set(), _NAMES),
        (["elf.t", "--record"], {"--record"}, ("elf.traits",)),
    ],
)
def test_arguments_are_options_and_prefixes_of_harness_names(
    words: Sequence[str], options: set[str], names: Sequence[str]
) -> None:
    given, chosen = read_words(words, _OPTIONS, _NAMES, "harness")
    assert (set(given), chosen) == (options, names)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["elf.", "weels.", "x"], "no such harness: weels., x; there are elf.facts, elf.traits, pe.facts"),
        (["elf.", "--recrod"], "no such option: --recrod; there are --record, --long"),
    ],
)
def test_an_unknown_argument_is_reported_with_the_known_names(words: Sequence[str], said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}$"):
        read_words(words, _OPTIONS, _NAMES, "harness")


def test_nothing_runs_if_an_argument_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["elf.", "no-such"]) == 2
    assert capsys.readouterr().err.startswith("no such harness: no-such; there are elf.facts, elf.traits, elf.run_path")


@pytest.mark.parametrize("words", [[], ["texts.size"]])
def test_a_found_input_can_be_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    path = tmp_path / "texts.size-crash-0123456789ab"
    path.write_bytes(b"1 yard")
    assert main(["--input", str(path), *words]) == 0
    assert capsys.readouterr().out == "nothing is wrong with it\n"


def test_the_fault_of_an_input_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Fault("crash", "KeyError at src/x.py:1", "Traceback\nKeyError: '\udce9'\n")
    monkeypatch.setattr(command, "run_again", lambda *_: fault)
    path = tmp_path / "texts.size-0123456789ab"
    path.touch()
    assert main(["--input", str(path)]) == 1
    assert capsys.readouterr().out == "crash: KeyError at src/x.py:1\nTraceback\nKeyError: '\\udce9'\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--input", "FILE", "--record", "--long"], "--input runs one input alone; leave out --long, --record\n"),
        (["--input", "FILE", "no-such"], "no such harness: no-such; there are elf.facts, "),
        (["--input", "FILE", "elf.f", "pe.f"], "--input: elf.facts, pe.facts are 2 harnesses; give one\n"),
        (["--input", "nowhere"], "--input: nowhere can't be read (No such file or directory); "),
        (["--inptu", "FILE"], "no such option: --inptu; there are --record, --long, --input FILE\n"),
    ],
)
def test_an_input_that_cannot_be_run_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    path = tmp_path / "texts.size-0123456789ab"
    path.touch()
    assert main([str(path) if word == "FILE" else word for word in words]) == 2
    assert capsys.readouterr().err.startswith(said)


def test_a_run_continues_if_choosing_inputs_times_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def choose(*_: object) -> None:
        raise subprocess.TimeoutExpired(["fuzzer"], 300)

    monkeypatch.setattr(command, "run_harness", lambda name, *_: Row(name, 1, 100, 5, ()))
    monkeypatch.setattr(command, "add_rows", lambda _: None)
    monkeypatch.setattr(command, "best_inputs", choose)
    assert main(["elf.facts", "pe.facts", "--record"]) == 0
    said = capsys.readouterr()
    assert "elf.facts: trials/fuzz/corpus stays as it is: 300 s were too few to choose\n" in said.err
    assert "| pe.facts | 100 |" in said.out
