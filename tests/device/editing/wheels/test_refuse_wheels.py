"""Wheels in a folder to prune: which are refused, and which can be copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.code_objects import TargetId
from rocwheel.device.editing.wheels.refuse_wheels import refuse_wheels
from tests.support.bundles import bundle_of
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

KEEP = (TargetId("gfx906"),)
REFUSED = (
    "a wheel with device code in a folder; expected unpacked files. "
    "Prune it by itself: rocwheel device prune WHEEL --keep TARGETS -o FOLDER"
)


def refused(*paths: Path) -> list[str]:
    return [str(error) for error in refuse_wheels(paths, KEEP)]


@pytest.mark.parametrize(
    ("name", "content"),
    [("demo/a.hipfb", bundle_of("gfx906")), ("demo/k_gfx942.dat", b"x")],
    ids=["device code", "a kernel file for another target"],
)
def test_a_wheel_with_something_to_prune_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    wheel = make_wheel(tmp_path, "demo", {name: content})
    assert refused(wheel) == [f"{wheel}: {REFUSED}"]


@pytest.mark.parametrize("name", ["demo/a.py", "demo/k_gfx906.dat"])
def test_a_wheel_with_nothing_to_prune_is_no_error(tmp_path: Path, name: str) -> None:
    assert refused(make_wheel(tmp_path, "demo", {name: b"pass"})) == []


def test_all_wheels_are_told_with_one_that_is_damaged_among_them(tmp_path: Path) -> None:
    first, second, damaged = (
        make_wheel(tmp_path, name, {f"{name}/a.hipfb": bundle_of("gfx906")}) for name in ("first", "second", "damaged")
    )
    damaged.write_bytes(damaged.read_bytes()[:-30])
    found = refused(first, damaged, second)
    assert [text.partition(": ")[0] for text in found] == [str(first), str(damaged), str(second)]
    assert REFUSED not in found[1]


def test_what_only_looks_like_a_wheel_is_no_error(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/a.hipfb": bundle_of("gfx906")})
    link, text, other = tmp_path / "link.whl", tmp_path / "text.whl", tmp_path / "demo.zip"
    link.symlink_to(wheel)
    text.write_text("no archive\n")
    wheel.rename(other)
    assert refused(link, text, other) == []
