"""Tests of telling which bundles have the code that is offered to more GPUs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.device.retarget import find_gaps
from rocwheel.targets.retarget_pairs import parse_pairs
from tests.support.bundles import bundle_of

if TYPE_CHECKING:
    from pathlib import Path


def write_bundles(path: Path, *bundles: str) -> Path:
    path.write_bytes(b"".join(bundle_of(*bundle.split()) for bundle in bundles))
    return path


def test_bundles_that_all_have_the_code_have_no_gap(tmp_path: Path) -> None:
    path = write_bundles(tmp_path / "x.hipfb", "gfx1030 gfx906", "gfx1030")
    assert find_gaps(path, parse_pairs("gfx1030=gfx1031,gfx1032")) == ()


def test_bundles_without_the_code_are_counted_for_each_target(tmp_path: Path) -> None:
    path = write_bundles(tmp_path / "x.hipfb", "gfx1030 gfx906", "gfx906", "gfx1031")
    assert find_gaps(path, parse_pairs("gfx1030=gfx1031,gfx1032")) == (
        f"{path}: 1 of 3 bundles has no code for gfx1030, and so none for gfx1031",
        f"{path}: 2 of 3 bundles have no code for gfx1030, and so none for gfx1032",
    )


def test_code_that_no_bundle_has_is_an_error(tmp_path: Path) -> None:
    path = write_bundles(tmp_path / "x.hipfb", "gfx906", "gfx90a:xnack+ gfx906")
    message = f"{path}: no code for gfx1030 to offer to other GPUs; expected one of its targets gfx906, gfx90a:xnack+"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        find_gaps(path, parse_pairs("gfx1030=extended"))


def test_variant_of_which_no_copy_may_be_made_is_not_offered(tmp_path: Path) -> None:
    path = write_bundles(tmp_path / "x.hipfb", "gfx900:xnack+", "gfx900:xnack-")
    assert find_gaps(path, parse_pairs("gfx900=gfx90c")) == (
        f"{path}: 1 of 2 bundles has no code for gfx900, and so none for gfx90c",
    )


def test_code_that_needs_what_the_other_gpu_lacks_is_reported_as_such(tmp_path: Path) -> None:
    path = write_bundles(tmp_path / "x.hipfb", "gfx90a:xnack+ gfx906")
    message = f"{path}: no code for gfx90a to offer to other GPUs; expected code without xnack, which is off on gfx90c"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        find_gaps(path, parse_pairs("gfx90a=gfx90c", force=True))
