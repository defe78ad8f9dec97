"""Run paths of libraries changed and put back, as ``make corpus`` does with those of published wheels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.libraries import Lib, build_tree, needs_compiler
from trials.corpora import run_paths
from trials.corpora.opening import open_libraries
from trials.corpora.run_paths import check_libraries

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_compiler]


def libraries(tmp_path: Path) -> list[tuple[Path, str]]:
    root = build_tree(tmp_path / "tree", Lib("a.so", ("b.so",), "$ORIGIN/lib"), Lib("lib/b.so"), Lib("c.so", ("x.so",)))
    return [(root / name, name) for name in ("a.so", "lib/b.so", "c.so")]


def test_libraries_open_or_fail_as_before_after_run_path_edits(tmp_path: Path) -> None:
    given = libraries(tmp_path)
    before = {name: path.read_bytes() for path, name in given}
    # One of the three needs what is nowhere.
    assert [text != "" for text in open_libraries(path for path, _ in given)] == [False, False, True]
    assert check_libraries(given) == []
    assert {name for path, name in given if path.read_bytes() != before[name]} == {"a.so", "lib/b.so", "c.so"}


def test_a_library_that_no_longer_opens_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = libraries(tmp_path)

    def ruin(path: Path, label: str, value: str, tag: object) -> list[object]:
        path.write_bytes(path.read_bytes()[:100])
        return []

    monkeypatch.setattr(run_paths, "_edit", ruin)
    found = check_libraries(given)
    assert [(one.file, one.fact) for one in found if one.file != "c.so"] == [
        ("a.so", "changed"),
        ("lib/b.so", "changed"),
        ("a.so", "put back"),
        ("lib/b.so", "put back"),
    ]
