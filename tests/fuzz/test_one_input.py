"""One input that was found, run again in a process of its own."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from trials.fuzz import one_input
from trials.fuzz.attempt import Fault
from trials.fuzz.harness import Harness
from trials.fuzz.one_input import choose_harness, run_again, take_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_NAMES = ("elf.join", "elf.join_all", "pe.facts")
_NAMED_AFTER_NONE = "is named after no harness; name one behind it; there are elf.join, elf.join_all, pe.facts"


def _harness(run: Callable[[bytes], object]) -> Harness:
    return Harness("test.it", run, lambda: [b""])


def _refuse(_: bytes) -> None:
    source, found = "x", "is bad"
    raise InputError(source, found)


@pytest.mark.parametrize("run", [bytes, _refuse])
def test_an_input_that_is_accepted_or_refused_has_no_fault(run: Callable[[bytes], object]) -> None:
    assert run_again(_harness(run), b"x") is None


def test_a_fault_is_returned_with_its_text() -> None:
    fault = run_again(_harness(lambda data: data[7]), b"x")
    assert fault is not None
    assert fault.kind == "crash"
    assert fault.place.startswith("IndexError at tests/fuzz/test_one_input.py:")
    assert fault.text.endswith("IndexError: index out of range\n")


def test_an_input_that_allocates_too_much_memory_hits_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_input, "ADDRESS_SPACE", 8 << 30)
    fault = run_again(_harness(lambda _: bytearray(9 << 30)), b"x")
    assert fault is not None
    assert fault.kind == "memory"
    assert fault.place.startswith("MemoryError at ")


def test_an_input_that_ends_the_process_is_a_crash() -> None:
    fault = run_again(_harness(lambda _: os.kill(os.getpid(), signal.SIGKILL)), b"x")
    assert fault == Fault("crash", "test.it", "the process ended by SIGKILL")
    fault = run_again(_harness(lambda _: os._exit(3)), b"x")
    assert fault == Fault("crash", "test.it", "the process ended with status 3")


def test_an_input_that_blocks_forever_is_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_input, "STUCK", 0.2)
    fault = run_again(_harness(lambda _: time.sleep(60)), b"x")
    assert fault == Fault("hang", "test.it", "the process did not end within 0.2 seconds")


@pytest.mark.parametrize(
    ("file", "wanted", "name"),
    [
        ("elf.join-3bad279a72e3", (), "elf.join"),
        ("elf.join_all-3bad279a72e3", (), "elf.join_all"),
        ("elf.join-oom-9b3f5e54a9b6", (), "elf.join"),
        ("elf.join-slow-unit-9794caf1", (), "elf.join"),
        ("elf.join-crash-9794caf1", (), "elf.join"),
        ("elf.join-9794caf1", ("pe.facts",), "pe.facts"),
        ("some.whl", ("pe.facts",), "pe.facts"),
    ],
)
def test_the_harness_comes_from_the_file_or_names(tmp_path: Path, file: str, wanted: Sequence[str], name: str) -> None:
    assert choose_harness(tmp_path / file, wanted, _NAMES) == name


@pytest.mark.parametrize(
    ("file", "wanted", "said"),
    [
        ("some.whl", (), f"--input: some.whl {_NAMED_AFTER_NONE}"),
        ("elf.jon-3bad279a72e3", (), f"--input: elf.jon-3bad279a72e3 {_NAMED_AFTER_NONE}"),
        ("some.whl", ("elf.join", "pe.facts"), "--input: elf.join, pe.facts are 2 harnesses; give one"),
    ],
)
def test_an_input_without_one_harness_is_refused(tmp_path: Path, file: str, wanted: Sequence[str], said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}$"):
        choose_harness(tmp_path / file, wanted, _NAMES)


def test_the_file_is_the_argument_of_the_input_option(tmp_path: Path) -> None:
    path = tmp_path / "elf.join-3bad279a72e3"
    path.touch()
    assert take_file(["--input", str(path)]) == (path, [])
    assert take_file(["pe.facts", "--input", str(path), "--long"]) == (path, ["pe.facts", "--long"])
    assert take_file(["elf.", "--record"]) == (None, ["elf.", "--record"])


@pytest.mark.parametrize("words", [["--input"], ["elf.join", "--input"], ["--input", "--record"]])
def test_an_input_option_without_a_file_is_refused(words: list[str]) -> None:
    said = "^--input: no file is given; expected an input, such as .cache/fuzz/found/elf.join-0123456789ab$"
    with pytest.raises(ValueError, match=said):
        take_file(words)


def test_a_missing_file_a_folder_or_a_note_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a-1").touch()
    (tmp_path / "a-1.txt").touch()
    for name, said in (
        ("no", "no can't be read (No such file or directory); expected the file of an input"),
        ("", " can't be read (Is a directory); expected the file of an input"),
        ("a-1.txt", "a-1.txt is the note about an input; give a-1"),
    ):
        with pytest.raises(ValueError, match=r"^--input: ") as caught:
            take_file(["--input", str(tmp_path / name)])
        assert str(caught.value).replace(f"{tmp_path}/", "").replace(str(tmp_path), "") == f"--input: {said}"
