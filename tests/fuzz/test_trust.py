"""The part of docs/trust.md that fuzzing writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fuzz.harness import all_harnesses
from fuzz.trust import write_page
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

_FOUND = msgspec.toml.decode((ROOT / "fuzz/found.toml").read_bytes())["finding"]


def test_the_page_is_as_the_command_writes_it(tmp_path: Path) -> None:
    page = tmp_path / "trust.md"
    page.write_bytes((ROOT / "docs/trust.md").read_bytes())
    write_page(page)
    assert page.read_text() == (ROOT / "docs/trust.md").read_text()


def test_what_was_found_names_a_harness_that_exists() -> None:
    names = {harness.name for harness in all_harnesses()}
    for finding in _FOUND:
        assert finding["harness"] in names
