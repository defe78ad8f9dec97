"""The tables of RESULTS.md that ``make faults`` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tests.support.places import ROOT
from trials.faults.case import all_cases
from trials.faults.races import RACES
from trials.faults.results import RESULTS, write_page

if TYPE_CHECKING:
    from pathlib import Path

_FOUND = msgspec.toml.decode((ROOT / "trials/faults/found.toml").read_bytes())["finding"]


def test_the_results_page_is_up_to_date(tmp_path: Path) -> None:
    page = tmp_path / "RESULTS.md"
    page.write_bytes(RESULTS.read_bytes())
    write_page(page)
    assert page.read_text() == RESULTS.read_text()


def test_findings_name_an_existing_case() -> None:
    names = {case.name for case in all_cases()} | {one.name for one in RACES}
    for finding in _FOUND:
        assert finding["case"] in names
