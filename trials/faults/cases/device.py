"""Device code is split off, joined, compressed and taken out."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.support.wheels import make_wheel
from trials.faults.case import Case
from trials.faults.cases.inputs import LIBRARY, prepared

if TYPE_CHECKING:
    from pathlib import Path

    from trials.faults.case import Place

__all__ = ["CASES"]


def _tree(place: Place) -> None:
    tree = place.given / "tree"
    tree.mkdir(parents=True)
    shutil.copy(LIBRARY, tree)
    (tree / "notes.txt").write_text("notes\n")


def _wheel(place: Place) -> None:
    make_wheel(place.given, "demo", {"demo/libtwo.so": LIBRARY, "demo/__init__.py": b""})


def _split(place: Place) -> tuple[str | Path, ...]:
    return ("device", "split", place.given / "tree", "--dest-dir", place.out, "--jobs", "1")


def _split_wheel(place: Place) -> tuple[str | Path, ...]:
    return ("device", "split", *place.given.glob("*.whl"), "--dest-dir", place.out, "--jobs", "1")


def _parts(place: Place) -> None:
    _tree(place)
    prepared(place, *_split(place))
    _take_over(place)


def _wheel_parts(place: Place) -> None:
    _wheel(place)
    prepared(place, *_split_wheel(place))
    _take_over(place)


def _take_over(place: Place) -> None:
    """Have what was made be what is read."""
    shutil.rmtree(place.given)
    place.out.rename(place.given)


def _join(place: Place) -> tuple[str | Path, ...]:
    return ("device", "join", place.given / "host", place.given / "gfx906", "--dest-dir", place.out)


def _join_wheel(place: Place) -> tuple[str | Path, ...]:
    return ("device", "join", *sorted(place.given.glob("*.whl")), "--dest-dir", place.out)


def _compress(place: Place) -> tuple[str | Path, ...]:
    return ("device", "compress", place.given / "tree", "--output", place.out, "--jobs", "1")


def _prune(place: Place) -> tuple[str | Path, ...]:
    return ("device", "prune", place.given / "tree", "--targets", "gfx906", "--output", place.out)


CASES = (
    Case("split", _split, _tree),
    Case("split-wheel", _split_wheel, _wheel),
    Case("join", _join, _parts),
    Case("join-wheel", _join_wheel, _wheel_parts),
    Case("compress", _compress, _tree),
    Case("prune", _prune, _tree),
)
