"""The pages RESULTS.md, which commands write, and the page that sums them up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.support.places import ROOT
from tests.support.results_page import read_counts, write_counts, write_part

if TYPE_CHECKING:
    from pathlib import Path


_RESULTS = [*(ROOT / "trials").glob("*/RESULTS.md"), ROOT / "tests/hostile/RESULTS.md"]


class _Count(msgspec.Struct, frozen=True):
    files: int = 0


def test_write_part_replaces_only_the_text_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n<!-- a -->\n\nold\n\n<!-- z -->\n\nend\n")
    write_part(page, "<!-- a -->", "<!-- z -->", "new")
    assert page.read_text() == "# Page\n\n<!-- a -->\n\nnew\n\n<!-- z -->\n\nend\n"


@pytest.mark.parametrize("text", ["<!-- z --> <!-- a -->", "<!-- a -->", "<!-- z -->", ""])
def test_a_page_without_both_marks_in_order_is_refused_and_unchanged(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ValueError, match=re.escape("has no part between '<!-- a -->' and '<!-- z -->'")):
        write_part(page, "<!-- a -->", "<!-- z -->", "new")
    assert page.read_text() == text


def test_counts_are_stored_sorted_by_name(tmp_path: Path) -> None:
    file = tmp_path / "runs.json"
    assert read_counts(file, _Count) == {}
    write_counts(file, {"b": _Count(2), "a": _Count(1)})
    assert file.read_bytes() == b'{\n  "a": {\n    "files": 1\n  },\n  "b": {\n    "files": 2\n  }\n}\n'
    assert read_counts(file, _Count) == {"a": _Count(1), "b": _Count(2)}


def test_tests_in_the_results_tables_exist_and_every_row_names_a_test() -> None:
    text = "".join(path.read_text() for path in (ROOT / "docs/trust.md", *_RESULTS))
    rows = re.findall(r"^\| .* \| `(tests/\S+\.py)::(\w+)` \|$", text, re.MULTILINE)
    tables = re.findall(r"\| (?:held by|test) \|\n\|[-|]+\|\n((?:\|.*\n)+)", text)
    assert [path + test for path, test in rows if f"\ndef {test}(" not in (ROOT / path).read_text()] == []
    assert len(rows) == sum(len(table.splitlines()) for table in tables)
    assert len(_RESULTS) == 4
    assert len(tables) == 5
