"""The commands that run at the same time."""

from __future__ import annotations

import hashlib
import json
import shutil
from typing import TYPE_CHECKING

from trials.faults.cases.inputs import add_wheel, copy_sample, prepared
from trials.faults.cases.sdk import check_record, install, prepare_packages
from trials.faults.race import Race

if TYPE_CHECKING:
    from pathlib import Path

    from trials.faults.case import Place
    from trials.faults.forked import Command

__all__ = ["RACES", "find_race"]

_TIME = "--upload-time=2026-01-01T00:00:00Z"
_WHEELS = ("alpha", "beta", "gamma")


def _build(place: Place, dest: Path, *options: str) -> Command:
    folders = ("--artifact-dir", place.given, "--dest-dir", dest)
    return place.command(("build", *folders, "--default-family", "gfx906", *options))


def _sample(place: Place) -> None:
    copy_sample(place.given)


def _build_with_one_cache(place: Place) -> list[Command]:
    return [_build(place, place.out / str(number), "--cache") for number in range(4)]


def _build_into_one_folder(place: Place) -> list[Command]:
    return [_build(place, place.out, "--cache") for _ in range(4)]


def _wheels(place: Place) -> None:
    """Make a folder with the wheels of each publisher, and one with all."""
    for name in _WHEELS:
        add_wheel(place.given / name, name)
        shutil.copytree(place.given / name, place.given / "all", dirs_exist_ok=True)


def _publish(place: Place) -> list[Command]:
    folders = [*_WHEELS, "all"]
    return [place.command(("publish", place.given / name, place.out, _TIME)) for name in folders]


def _index(place: Place) -> list[Command]:
    """Return commands that make the index of other files than before, and of all in the end."""
    words = ("--output", place.out / "simple", "--files", "copy", _TIME)
    return [place.command(("index", place.given / name, *words)) for name in (*_WHEELS, "all")]


def _index_before(place: Place) -> None:
    prepared(place, *_index(place)[0].words)


def _look_at_pages(place: Place) -> list[str]:
    """Return the files that pages list and that aren't there with their bytes."""
    return [line for page in sorted(place.out.glob("simple/*/index.json")) for line in _look_at_page(page)]


def _look_at_page(page: Path) -> list[str]:
    try:
        files = json.loads(page.read_bytes())["files"]
    except FileNotFoundError:
        return []
    lines = []
    for file in files:
        path = page.parent / file["url"]
        try:
            is_right = hashlib.sha256(path.read_bytes()).hexdigest() == file["hashes"]["sha256"]
        except FileNotFoundError:
            is_right = False
        if not is_right:
            lines.append(f"{page} lists {path}, which is not there as it says")
    return lines


def _init(place: Place) -> list[Command]:
    return [place.command(("init",), "rocm_sdk", place.out) for _ in range(12)]


RACES = (
    Race("init-at-once", _init, prepare_packages, install, 4, look=check_record),
    Race("builds-with-one-cache", _build_with_one_cache, _sample),
    Race(
        "builds-into-one-folder", _build_into_one_folder, _sample, refusal=" is still being written to by another run. "
    ),
    Race(
        "publish-at-once",
        _publish,
        _wheels,
        varies=("simple/.rocwheel-published.json",),
        look=_look_at_pages,
    ),
    Race(
        "index-while-read",
        _index,
        _wheels,
        _index_before,
        varies=("simple/.rocwheel-index.json",),
        look=_look_at_pages,
    ),
)


def find_race(name: str) -> Race:
    """Return the race of a name; raises `KeyError` for an unknown one."""
    return {one.name: one for one in RACES}[name]
