"""Errors: the text that people read, made of the facts that programs read."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocwheel.errors import InputError, ProblemsError, RocwheelError, WorkError


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
def test_the_text_says_what_was_found_expected_and_to_do(error: InputError, text: str) -> None:
    assert str(error) == text


def test_the_facts_are_fields() -> None:
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
def test_the_exit_status_tells_bad_input_from_failed_work(error: RocwheelError, status: int) -> None:
    assert error.exit_status == status


def test_several_problems_are_told_together() -> None:
    error = ProblemsError("artifacts", [InputError("a", "no manifest"), InputError("b", "no files")])
    assert str(error) == "artifacts: 2 problems\n  a: no manifest\n  b: no files"
    assert [str(problem) for problem in error.problems] == ["a: no manifest", "b: no files"]


def test_one_problem_is_not_many() -> None:
    assert str(ProblemsError("artifacts", [InputError("a", "no manifest")])) == "artifacts: 1 problem\n  a: no manifest"
