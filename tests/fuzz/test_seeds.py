"""What harnesses begin with."""

from __future__ import annotations

import re

import pytest

from trials.fuzz.seeds.files import fixtures


def test_files_are_read_by_pattern_and_size() -> None:
    assert [len(data) for data in fixtures("elf/library.o", "edge/a*.hipfb", largest=4000)] == [1248, 207]


def test_a_pattern_that_matches_no_file_is_refused() -> None:
    text = "tests/fixtures: no file of 99 bytes or less is named like 'elf/*'"
    with pytest.raises(ValueError, match=re.escape(text)):
        fixtures("elf/*", largest=99)
