"""Tests of `rocwheel.core.python`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.core.hashing import source_hash

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "one" / "inner").mkdir(parents=True)
    for name in ("a.py", "inner/b.py", "notes.txt"):
        (tmp_path / "one" / name).write_text(name)
    return tmp_path / "one"


@pytest.mark.parametrize("change", ["changed", "renamed", "new", "table", "below"])
def test_the_code_hash_changes_with_any_code_or_data_file(package: Path, change: str) -> None:
    before = _fresh(package)
    if change == "changed":
        (package / "a.py").write_text("b")
    elif change == "renamed":
        (package / "a.py").rename(package / "c.py")
    elif change == "below":
        (package / "inner/b.py").write_text("c")
    else:
        (package / ("c.toml" if change == "table" else "c.py")).write_text("")
    assert _fresh(package) != before


def test_other_files_do_not_affect_the_code_hash(package: Path) -> None:
    before = _fresh(package)
    (package / "notes.txt").write_text("more")
    (package / "__pycache__").mkdir()
    assert _fresh(package) == before


def _fresh(place: Path) -> bytes:
    source_hash.cache_clear()
    return source_hash(place)
