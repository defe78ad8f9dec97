"""Every hostile input before every command that takes such inputs: refused or contained, soon and in little memory."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.hostile.members import NOTHING
from tests.hostile.table import cell, cells_of_page, run_in_process, wrong
from tests.hostile.trials import COMMANDS, make_inputs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who can make devices"),
]


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that returns the folder of the inputs of a kind; they are made once."""

    @cache
    def make(kind: str) -> Path:
        place = tmp_path_factory.mktemp(kind)
        make_inputs(kind, place)
        return place

    return make


@pytest.mark.parametrize(("kind", "command"), COMMANDS, ids=[f"{command} of {kind}s" for kind, command in COMMANDS])
def test_no_hostile_input_breaks_a_command(
    inputs: Callable[[str], Path], kind: str, command: str, tmp_path: Path
) -> None:
    ends = run_in_process(kind, command, inputs(kind), tmp_path)
    assert {name: fault for name, end in ends.items() if (fault := wrong(end))} == {}
    assert {name: cell(end) for name, end in ends.items()} == cells_of_page()[kind][command]
    assert ends[NOTHING].status == 0, ends[NOTHING].text  # else the others may be refused for no fault of theirs
