"""The part of docs/trust.md that ``make faults`` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tests.support.places import ROOT
from trials.faults.case import all_cases
from trials.faults.races import RACES
from trials.faults.trust import write_page

if TYPE_CHECKING:
    from pathlib import Path

_FOUND = msgspec.toml.decode((ROOT / "trials/faults/found.toml").read_bytes())["finding"]


def test_the_page_is_as_the_command_writes_it(tmp_path: Path) -> None:
    page = tmp_path / "trust.md"
    page.write_bytes((ROOT / "docs/trust.md").read_bytes())
    write_page(page)
    assert page.read_text() == (ROOT / "docs/trust.md").read_text()


def test_what_was_found_names_a_case_that_exists() -> None:
    names = {case.name for case in all_cases()} | {one.name for one in RACES}
    for finding in _FOUND:
        assert finding["case"] in names
