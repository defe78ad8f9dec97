"""Contents: the same bytes by any range, whatever they are made of."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.core.patch import FilePatch, Replacement
from rocwheel.core.reading import FileRange
from rocwheel.distributions.content.content import BytesContent, FileContent, PatchedContent, SequenceContent

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.distributions.content.content import Content

MIB = 1 << 20
PARTS = st.lists(st.binary(max_size=9), max_size=8)


def read(content: Content, start: int, stop: int) -> bytes:
    with content.open(start, stop) as buffers:
        return b"".join(buffers)


@given(PARTS, st.integers(0, 80), st.integers(0, 80))
def test_a_range_of_a_sequence_is_that_range_of_the_joined_bytes(parts: list[bytes], start: int, stop: int) -> None:
    joined = b"".join(parts)
    content = SequenceContent(tuple(map(BytesContent, parts)))
    start, stop = sorted((min(start, len(joined)), min(stop, len(joined))))
    assert content.size == len(joined)
    assert read(content, start, stop) == joined[start:stop]


@given(PARTS, st.integers(1, 8))
def test_a_sequence_may_hold_sequences(parts: list[bytes], border: int) -> None:
    inner = SequenceContent(tuple(map(BytesContent, parts[:border])))
    content = SequenceContent((BytesContent(b"head"), inner, *map(BytesContent, parts[border:])))
    assert read(content, 2, content.size) == b"ad" + b"".join(parts)


def test_a_range_of_a_file_leaves_the_rest_out(tmp_path: Path) -> None:
    path = tmp_path / "archive.tar"
    path.write_bytes(b"..libelf.so..")
    content = FileContent(FileRange(str(path), 2, 9))
    assert content.size == 9
    assert read(content, 3, 6) == b"elf"


def test_a_range_inside_one_part_is_not_copied() -> None:
    data = b"one part"
    content = SequenceContent((BytesContent(b"head"), BytesContent(data)))
    with content.open(6, 12) as (buffer,):
        assert buffer.obj is data


@pytest.fixture
def patched(tmp_path: Path) -> PatchedContent:
    """Return 6 MiB of a file, a run path changed at 5 MiB, and zeros for the mebibyte before it."""
    path = tmp_path / "librocsparse.so.1"
    path.write_bytes(b"code" * (6 * MIB // 4))
    changes = (Replacement(4 * MIB, 5 * MIB), Replacement.of(5 * MIB, b"$ORIGIN"))
    return PatchedContent(FileRange.whole(path), FilePatch(6 * MIB, changes))


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        pytest.param(0, 2 * MIB, b"code" * (MIB // 2), id="unchanged"),
        pytest.param(4 * MIB + 1, 4 * MIB + 9, bytes(8), id="zeros"),
        pytest.param(4 * MIB - 4, 5 * MIB + 9, b"code" + bytes(MIB) + b"$ORIGINec", id="changed"),
        pytest.param(3, 3, b"", id="nothing"),
    ],
)
def test_a_range_of_a_patched_file_has_its_changes(
    patched: PatchedContent, start: int, stop: int, expected: bytes
) -> None:
    assert read(patched, start, stop) == expected


def test_an_unchanged_range_of_a_patched_file_is_not_copied(
    patched: PatchedContent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is yielded is the very object that was read."""
    data = []

    def note(self: FileRange) -> bytes:
        data.append(whole(self))
        return data[-1]

    whole = FileRange.read
    monkeypatch.setattr(FileRange, "read", note)
    with patched.open(0, 2 * MIB) as (buffer,):
        assert buffer.obj is data[0]


def test_a_sequence_opens_more_files_than_a_process_may_have_open(tmp_path: Path) -> None:
    sources = []
    for number in range(100):
        path = tmp_path / f"header-{number}.h"
        path.write_bytes(b"%3d" % number)
        sources.append(FileContent(FileRange.whole(path)))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (50, limits[1]))
    try:
        data = read(SequenceContent(tuple(sources)), 0, 300)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert data == b"".join(b"%3d" % number for number in range(100))


def test_a_part_that_shrank_is_named(tmp_path: Path) -> None:
    path = tmp_path / "shrunk.h"
    path.write_bytes(b"0123456789")
    content = SequenceContent((BytesContent(b"head"), FileContent(FileRange.whole(path))))
    path.write_bytes(b"012")
    with pytest.raises(InputError, match=r"shrunk\.h: changed from 10 to 3 bytes while it was being read\. Leave"):
        read(content, 0, content.size)
