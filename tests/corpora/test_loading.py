"""Libraries that the loader doesn't find, beside what the model of it and the audit say, as ``make corpus`` has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.wheels import make_wheel
from trials.corpora import loading
from trials.corpora.loading import compare_tree
from trials.corpora.misses import misses_of
from trials.corpora.opening import is_library

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_compiler]
LIBRARIES = (
    Lib("demo/a.so", ("libb.so",), "$ORIGIN/lib"),
    Lib("demo/lib/libb.so"),
    Lib("demo/c.so", ("libabsent.so",)),
)


def test_differences_from_the_loader_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = build_tree(tmp_path / "tree", *LIBRARIES)
    # Of a library that needs no other, the loader says nothing.
    assert compare_tree(root, "demo-1.0") == (2, [])
    monkeypatch.setattr(loading, "list_libraries", lambda _: {"libx.so": ""})
    _, found = compare_tree(root, "demo-1.0")
    assert {(one.file, one.fact) for one in found} == {
        ("demo-1.0!demo/a.so", "libraries"),
        ("demo-1.0!demo/c.so", "libraries"),
        ("demo-1.0!demo/lib/libb.so", "libraries"),
    }


def test_a_missing_library_that_audit_does_not_report_is_a_miss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = build_tree(tmp_path / "tree", *LIBRARIES)
    paths = [path for path in sorted(root.rglob("*.so")) if is_library(path)]
    files = {str(path.relative_to(root)): path for path in paths}
    wheel = make_wheel(tmp_path, "demo", files, tag="py3-none-manylinux_2_5_x86_64")
    assert list(misses_of(wheel, root, paths)) == []
    monkeypatch.setattr("trials.corpora.misses.findings_of", lambda _: [])
    assert [(one.file, one.fact) for one in misses_of(wheel, root, paths)] == [("demo-1.0!demo/c.so", "libabsent.so")]
