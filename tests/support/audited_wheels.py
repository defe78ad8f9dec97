"""A wheel with one finding, and a folder without settings to audit it in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.libraries import Lib, build_tree
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["bad_wheel", "in_an_empty_folder"]


@pytest.fixture
def in_an_empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep settings of this checkout from being found."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def bad_wheel(tmp_path: Path) -> Path:
    """Return a wheel with a relative run path entry."""
    tree = build_tree(tmp_path / "tree", Lib("a.so", (), "rocm_dis/lib"))
    tag = "py3-none-manylinux_2_5_x86_64"
    return make_wheel(tmp_path / "dist", "demo", {"demo/a.so": tree / "a.so"}, tag=tag)
