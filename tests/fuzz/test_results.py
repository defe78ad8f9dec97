"""The tables of RESULTS.md that fuzzing writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tests.fuzz.test_harnesses import MUTATIONS
from tests.support.places import ROOT
from trials.fuzz.attempt import MOST_MEMORY, MOST_SECONDS
from trials.fuzz.corpora import MOST_INPUTS
from trials.fuzz.harness import all_harnesses
from trials.fuzz.long_inputs import LENGTH
from trials.fuzz.results import RESULTS, write_page

if TYPE_CHECKING:
    from pathlib import Path

_FOUND = msgspec.toml.decode((ROOT / "trials/fuzz/found.toml").read_bytes())["finding"]


def test_the_results_page_is_up_to_date(tmp_path: Path) -> None:
    page = tmp_path / "RESULTS.md"
    page.write_bytes(RESULTS.read_bytes())
    write_page(page)
    assert page.read_text() == RESULTS.read_text()


def test_findings_name_an_existing_harness() -> None:
    names = {harness.name for harness in all_harnesses()}
    for finding in _FOUND:
        assert finding["harness"] in names


def test_the_page_states_the_current_limits() -> None:
    text = " ".join(RESULTS.read_text().split())
    largest = max(harness.largest for harness in all_harnesses())
    assert f"more than {MOST_SECONDS} seconds of processor time" in text
    assert f"more than {MOST_MEMORY >> 20} MiB for one input, none of which has more than {largest >> 10} KiB" in text
    assert f"over its seeds, {MUTATIONS} fixed changes of them" in text
    assert f"tries inputs of {LENGTH // 1000} KB of one repeated word" in text
    assert f"up to {MOST_INPUTS} inputs of each" in text
