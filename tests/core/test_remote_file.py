"""Paths of files that are elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocwheel.core.reading import ChangedFileError, FileRange, open_regular, read_regular
from rocwheel.core.remote_file import RemotePath, make_remote, source_of


class Source:
    """Ten bytes."""

    size = 10

    def read(self, start: int, stop: int) -> bytes:
        """Return a range."""
        return b"0123456789"[start:stop]

    def prefetch(self, ranges: object) -> None:
        """Take no note."""


@pytest.fixture
def path(tmp_path: Path) -> RemotePath:
    return make_remote(tmp_path / "x.whl", Source())


def test_a_remote_file_has_a_local_name_and_size(path: RemotePath) -> None:
    assert (path.name, path.is_file(), path.stat().st_size) == ("x.whl", True, 10)


def test_the_bytes_come_from_the_source(path: RemotePath) -> None:
    assert read_regular(path) == b"0123456789"
    with open_regular(path) as file:
        assert (file.seek(-3, 2), file.read(2), file.tell()) == (7, b"78", 9)


def test_ranges_and_their_parts_are_remote(path: RemotePath) -> None:
    part = FileRange.whole(path).part(2, 6).part(1, 3)
    pieces = list[bytes]()
    part.feed(lambda piece: pieces.append(bytes(piece)))
    assert (part.is_remote, part.read(), pieces) == (True, b"34", [b"34"])


def test_a_range_past_the_end_is_refused(path: RemotePath) -> None:
    with pytest.raises(ChangedFileError, match="ends at byte 10 instead of 12"):
        FileRange.whole(path).part(8, 12).read()


def test_paths_derived_from_a_remote_path_are_local(path: RemotePath) -> None:
    assert [source_of(one) for one in (path.parent, path.with_suffix(".zip"), Path(str(path)))] == [None] * 3
