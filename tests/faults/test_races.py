"""Commands that run at the same time; ``make faults`` has them run for more rounds."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ROOT
from trials.faults.races import RACES
from trials.faults.runner import run_race

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", [one.name for one in RACES])
def test_concurrent_commands_do_no_harm_even_if_some_are_killed(name: str) -> None:
    row = run_race(name, 1, "tests")
    assert row.found == ()
    assert row.rounds == 1


# Commands are forked from the process that races them, which had better not be that of the tests.
_RACE = """
import json, sys
from pathlib import Path
from trials.faults.case import Place
from trials.faults.race import Race, race, run_calmly
place = Place(Path(sys.argv[1]))
def begin(place):
    if (place.given / "second").exists():
        place.out.mkdir()
    (place.given / "second").touch()
def commands(place):
    words = [("--version",), *([("no-such-command",)] if place.out.exists() else [])]
    return [place.command(each) for each in words]
one = Race("test", commands, begin, begin, look=lambda place: ["it is there"] if place.out.exists() else [])
print(json.dumps(race(one, place, run_calmly(one, place), "seed").problems))
"""


def test_a_failing_command_and_a_finding_of_a_reader_are_reported(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    done = subprocess.run([sys.executable, "-c", _RACE, tmp_path], cwd=ROOT, capture_output=True, check=True)
    first, *others = json.loads(done.stdout)
    assert first == "it is there"
    assert len(others) == 2
    assert all("has no command 'no-such-command'" in line for line in others)
