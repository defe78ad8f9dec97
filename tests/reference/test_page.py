"""The page on known faults names tests: each exists."""

from __future__ import annotations

import re

import pytest

from tests.support.places import ROOT

pytestmark = pytest.mark.slow

TESTS = ROOT / "tests"
PAGE = TESTS / "reference/KNOWN_FAULTS.md"
TEST_ID = re.compile(r"`([\w/]+/test_\w+)::(test_\w+)`")


def test_every_test_named_on_the_page_exists() -> None:
    named = [row for row in TEST_ID.findall(PAGE.read_text()) if row[1] != "test_x"]
    assert len(named) > 60
    missing = [row for row in named if f"def {row[1]}(" not in (TESTS / f"{row[0]}.py").read_text()]
    assert missing == []


def test_every_row_in_the_fault_tables_has_a_test_or_a_reason() -> None:
    rows = [
        line for line in PAGE.read_text().splitlines() if line.startswith("| ") and line.split("|")[2].strip() != "test"
    ]
    assert len(rows) > 55
    assert [row for row in rows if not TEST_ID.search(row) and not re.search(r"no (timed )?test", row)] == []
