"""Tests of `rocwheel.index.placing`."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.core.errors import WorkError
from rocwheel.core.reading import ChangedFileError, FileStamp
from rocwheel.index.entry import read_entry
from rocwheel.index.folder_notes import Found, KnownFile
from rocwheel.index.placing import FilePlacement, Placer
from tests.support.changing_files import CHANGES

if TYPE_CHECKING:
    from rocwheel.index.entry import ReadEntry
    from tests.index.conftest import AddWheel


WAYS = {
    "overwritten": "changed while it was being read",
    "truncated": "changed from .* bytes while it was being read",
    "replaced": "was replaced by another file while it was being read",
}


@pytest.fixture
def output(dist_dir: Path) -> Path:
    return dist_dir.parent / "simple"


def found(reading: ReadEntry) -> Found:
    """Return a file that an earlier run has read."""
    return Found(KnownFile(reading.entry, reading.stamp, is_settled=True))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("placement", list(FilePlacement), ids=lambda placement: placement.value)
def test_a_file_that_changed_since_it_was_hashed_is_not_published(
    add_wheel: AddWheel, dist_dir: Path, output: Path, placement: FilePlacement, way: str
) -> None:
    wheel = add_wheel("a")
    reading = read_entry(wheel)
    CHANGES[way](wheel)
    with pytest.raises(ChangedFileError, match=WAYS[way]):
        Placer(dist_dir, output, placement).place(found(reading))
    assert [path.name for path in [*dist_dir.iterdir(), *output.rglob("*.*")]] == [wheel.name]


def test_an_existing_hard_link_does_not_publish_a_changed_file(
    add_wheel: AddWheel, dist_dir: Path, output: Path
) -> None:
    wheel = add_wheel("a")
    (output / "a").mkdir(parents=True)
    (output / "a" / wheel.name).hardlink_to(wheel)
    reading = read_entry(wheel)
    CHANGES["overwritten"](wheel)
    with pytest.raises(ChangedFileError, match=WAYS["overwritten"]):
        Placer(dist_dir, output, FilePlacement.HARDLINK).place(found(reading))


def test_a_file_that_is_replaced_while_it_is_linked_is_not_published(
    add_wheel: AddWheel, dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = add_wheel("a")
    reading = read_entry(wheel)
    link = Path.hardlink_to

    def link_another(self: Path, source: Path) -> None:
        CHANGES["replaced"](wheel)
        link(self, source)

    monkeypatch.setattr(Path, "hardlink_to", link_another)
    with pytest.raises(ChangedFileError, match=WAYS["replaced"]):
        Placer(dist_dir, output, FilePlacement.HARDLINK).place(found(reading))
    assert list((output / "a").iterdir()) == []


def test_metadata_with_an_unexpected_hash_is_not_published(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    wheel = add_wheel("a")
    reading = read_entry(wheel)
    wrong = msgspec.structs.replace(reading, entry=msgspec.structs.replace(reading.entry, metadata_sha256="0" * 64))
    expected = (
        f"{wheel}: has core metadata whose hash differs from the hash that an earlier run recorded. Remove "
        f"{output}/.rocwheel-index.json, and run the command again."
    )
    with pytest.raises(WorkError, match=f"^{re.escape(expected)}$"):
        Placer(dist_dir, output, FilePlacement.RELATIVE).place(found(wrong))
    assert [path.name for path in dist_dir.iterdir()] == [wheel.name]


def test_the_recorded_stamp_of_a_linked_file_includes_its_new_link(
    add_wheel: AddWheel, dist_dir: Path, output: Path
) -> None:
    wheel = add_wheel("a")
    known = Placer(dist_dir, output, FilePlacement.HARDLINK).place(found(read_entry(wheel)))
    assert known.holds_for(FileStamp.at(wheel))


def test_a_file_is_linked_even_if_another_link_vanished_since_it_was_read(
    add_wheel: AddWheel, dist_dir: Path, output: Path
) -> None:
    # Given a file that was read while a dead process's link to it was there
    wheel = add_wheel("a")
    left = dist_dir / "left"
    left.hardlink_to(wheel)
    reading = read_entry(wheel)
    time.sleep(0.02)  # the clock of a file system goes by steps
    left.unlink()
    # When it is linked, it has as many names as then
    placed = Placer(dist_dir, output, FilePlacement.HARDLINK).place(found(reading))
    assert (output / "a" / wheel.name).samefile(wheel)
    assert placed.stamp == FileStamp.at(wheel)
