"""Tests of `rocwheel.core.errors`."""

from __future__ import annotations

import errno
import importlib
import inspect
import os
import pickle
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rocwheel
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError, WorkError, read_error, write_error

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(InputError("a.so", "no ELF file"), "a.so: no ELF file", id="found"),
        pytest.param(
            InputError(Path("a.so"), "4 bytes", expected="at least 64"),
            "a.so: 4 bytes; expected at least 64",
            id="expected",
        ),
        pytest.param(
            InputError("a.so", "cut short", remedy="Download it again."),
            "a.so: cut short. Download it again.",
            id="remedy",
        ),
        pytest.param(
            WorkError("dist", "full", expected="2 GB", remedy="Make room."),
            "dist: full; expected 2 GB. Make room.",
            id="all",
        ),
    ],
)
def test_the_message_has_the_finding_the_expectation_and_the_remedy(error: InputError, text: str) -> None:
    assert str(error) == text


def test_the_parts_of_the_message_are_attributes() -> None:
    error = InputError("a.so", "4 bytes", expected="at least 64", remedy="Check it.")
    assert (error.source, error.found, error.expected, error.remedy) == ("a.so", "4 bytes", "at least 64", "Check it.")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(InputError("a", "b"), 2, id="unusable input"),
        pytest.param(WorkError("a", "b"), 1, id="failed work"),
        pytest.param(ProblemsError("a", []), 2, id="several problems"),
    ],
)
def test_the_exit_status_distinguishes_bad_input_from_failed_work(error: RocwheelError, status: int) -> None:
    assert error.exit_status == status


@pytest.mark.parametrize(
    ("number", "kind", "remedy"),
    [
        (errno.EMFILE, WorkError, "Allow more open files, for example with 'ulimit -n 1024'."),
        (errno.EACCES, InputError, "Look."),
    ],
)
def test_a_process_limit_is_not_blamed_on_the_input(number: int, kind: type[InputError], remedy: str) -> None:
    error: InputError = read_error("a.so", OSError(number, os.strerror(number)), remedy="Look.")
    assert (type(error), error.remedy) == (kind, remedy)


@pytest.mark.parametrize(
    ("number", "to_read", "to_write"),
    [
        (errno.EISDIR, "Pass a file instead of a folder.", "Choose another output, or remove the folder."),
        (
            errno.ENOTDIR,
            "Correct the path: a parent folder is a file.",
            "Choose another output, or remove the file at the path of its parent folder.",
        ),
        (errno.EACCES, "Look.", "Look."),
    ],
    ids=lambda value: errno.errorcode[value] if isinstance(value, int) else "",
)
def test_the_remedy_covers_a_file_used_as_a_folder_and_the_reverse(number: int, to_read: str, to_write: str) -> None:
    error = OSError(number, os.strerror(number))
    read: InputError = read_error("a.so", error, remedy="Look.")
    assert (read.remedy, write_error("a.so", error, remedy="Look.").remedy) == (to_read, to_write)


def test_the_remedy_for_an_existing_file_does_not_blame_a_parent_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    error: InputError = read_error(tmp_path / "file", OSError(errno.ENOTDIR, "Not a directory"))
    assert error.remedy == "Pass a folder instead of a file."


def test_several_problems_are_reported_together() -> None:
    error = ProblemsError("artifacts", [InputError("a", "no manifest"), InputError("b", "no files")])
    assert str(error) == "artifacts: 2 problems\n  a: no manifest\n  b: no files"
    assert [str(problem) for problem in error.problems] == ["a: no manifest", "b: no files"]


def test_nested_problems_are_flattened() -> None:
    inner = ProblemsError("a", iter([InputError("a/x", "is bad"), WorkError("a/y", "is full")]))
    error = ProblemsError("all", [inner, InputError("b", "is bad")])
    assert str(error) == "all: 3 problems\n  a/x: is bad\n  a/y: is full\n  b: is bad"


def test_one_problem_uses_the_singular() -> None:
    assert str(ProblemsError("artifacts", [InputError("a", "no manifest")])) == "artifacts: 1 problem\n  a: no manifest"


def test_a_single_problem_about_the_subject_needs_no_heading() -> None:
    assert str(ProblemsError("dist", [InputError("dist/a.whl", "is damaged")])) == "dist/a.whl: is damaged"


MADE_OTHERWISE: dict[str, Callable[[type[Any]], RocwheelError]] = {
    "ProblemsError": lambda kind: kind("dist", [InputError("a", "no files")]),
    "HandEditedFilesError": lambda kind: kind("folder", [InputError("a", "no files")]),
    "FaultyWheelError": lambda kind: kind("a.whl", []),
    "AmbiguousProductError": lambda kind: kind("MI", {"MI1": "gfx906", "MI2": "gfx90a"}, source="--targets"),
    "RocwheelError": lambda kind: kind(),
    "WrongHashError": lambda kind: kind("a.so", b"\1", b"\2"),
}
"""How to make those whose arguments are not all text, by name."""


def find_kinds(base: type[RocwheelError] = RocwheelError) -> set[type[RocwheelError]]:
    """Return the classes of all errors of all modules."""
    for module in pkgutil.walk_packages(rocwheel.__path__, "rocwheel."):
        if not module.name.startswith("rocwheel.sdk") and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found = {base}
    while more := {kind for known in found for kind in known.__subclasses__()} - found:
        found |= more
    return found


def make_error(kind: type[Any]) -> RocwheelError:
    """Return an error of a class, with a letter for every fact that it has to be told."""
    if kind.__name__ in MADE_OTHERWISE:
        return MADE_OTHERWISE[kind.__name__](kind)
    asked = [fact for fact in inspect.signature(kind).parameters.values() if fact.default is fact.empty]
    plain = [fact for fact in asked if fact.kind is fact.POSITIONAL_OR_KEYWORD]
    named = {fact.name: "b" for fact in asked if fact.kind is fact.KEYWORD_ONLY}
    error: RocwheelError = kind(*("a" for _ in plain), **named)
    return error


@pytest.mark.parametrize("kind", sorted(find_kinds(), key=str), ids=lambda kind: kind.__name__)
def test_errors_survive_pickling_unchanged(kind: type[RocwheelError]) -> None:
    error = make_error(kind)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.exit_status) == (kind, str(error), error.exit_status)
    assert vars(again).keys() == vars(error).keys()
