"""Commands that run at the same time; ``make faults`` has them run for more rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from faults.case import Place
from faults.race import Race, race, run_calmly
from faults.races import RACES
from faults.runner import run_race

if TYPE_CHECKING:
    from pathlib import Path

    from faults.forked import Command

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", [one.name for one in RACES])
def test_commands_at_the_same_time_do_no_harm_though_some_are_killed(name: str) -> None:
    row = run_race(name, 1, "tests")
    assert row.found == ()
    assert row.rounds == 1


def test_a_command_that_fails_and_a_reader_that_finds_something_are_told(tmp_path: Path) -> None:
    def commands(place: Place) -> list[Command]:
        begun = place.out.exists()
        return [place.command(("--version",)), *([place.command(("no-such-command",))] if begun else [])]

    def begin(place: Place) -> None:
        if (place.given / "second").exists():
            place.out.mkdir()
        (place.given / "second").touch()

    place = Place(tmp_path)
    place.given.mkdir()
    one = Race("test", commands, begin, begin, look=lambda place: ["it is there"] if place.out.exists() else [])
    outcome = race(one, place, run_calmly(one, place), "seed")
    assert outcome.problems[0] == "it is there"
    assert sum("a command ends with 2: " in line for line in outcome.problems) == 2
