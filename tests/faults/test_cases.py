"""Each command that writes meets a few faults and is killed a few times; ``make faults`` tries all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trials.faults.case import Place, all_cases, find_case
from trials.faults.choice import Call
from trials.faults.runner import run_case, texts
from trials.faults.shim import why_not

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not() or "gcc is there")]

_NAMES = [case.name for case in all_cases()]


@pytest.fixture(scope="module")
def shims(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shims")


@pytest.mark.parametrize("name", _NAMES)
def test_a_command_that_meets_a_fault_or_is_killed_leaves_consistent_files(name: str, shims: Path) -> None:
    row = run_case(name, "6", 2, shims)
    assert texts(row) == []
    assert row.faults >= 4, "most of the faults are met"
    assert row.kills == 2


def test_lookups_by_python_itself_are_not_calls_of_the_command(tmp_path: Path) -> None:
    case, place = find_case("init"), Place(tmp_path)
    site, other = Call(1, "stat64", 1, str(place.out)), Call(2, "stat64", 1, str(place.out / "x"))
    assert case.own_calls(place, [site, site, other, site]) == [other, site]


def test_case_names_are_unique() -> None:
    assert len(set(_NAMES)) == len(_NAMES)
