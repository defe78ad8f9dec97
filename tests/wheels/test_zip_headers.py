"""Tests of `rocwheel.wheels.zip_headers`."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.wheels.zip_directory import read_directory
from rocwheel.wheels.zip_reader import read_member
from tests.support.raw_zip import RawMember, raw_zip, with_large_record

if TYPE_CHECKING:
    from pathlib import Path


DATA = b"content " * 100


class _Pipe(io.RawIOBase):
    """A file that can't seek, as where a program writes an archive to its output."""

    def __init__(self) -> None:
        self.data = b""

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        self.data += bytes(data)  # type: ignore[call-overload]
        return len(data)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_a_stream_has_its_sizes_after_the_content(tmp_path: Path, method: int) -> None:
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", method) as archive:
        archive.writestr("a", DATA)
    (tmp_path / "a.zip").write_bytes(pipe.data)
    assert pipe.data[6] & 8
    assert pipe.data[14:26] == bytes(12)
    (member,) = read_directory(tmp_path / "a.zip")
    assert read_member(member) == DATA


def test_large_sizes_are_in_the_extra_field(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive, archive.open("a", "w", force_zip64=True) as member:
        member.write(DATA)
    with (tmp_path / "a.zip").open("r+b") as raw:  # Python before 3.11.4 has the sizes here, too
        raw.seek(18)
        raw.write(b"\xff" * 8)
    (found,) = read_directory(tmp_path / "a.zip")
    assert read_member(found) == DATA


@pytest.mark.parametrize(
    ("place", "found"),
    [
        (8, "method 1, checksum 6d6ee72d and sizes 800, 800"),
        (14, "method 0, checksum 6d6ee72c and sizes 800, 800"),
        (18, "method 0, checksum 6d6ee72d and sizes 801, 800"),
        (22, "method 0, checksum 6d6ee72d and sizes 800, 801"),
    ],
    ids=["method", "checksum", "packed size", "size"],
)
def test_a_member_whose_local_header_disagrees_is_refused(tmp_path: Path, place: int, found: str) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", DATA)
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    expected = f"{path}!a: has {found}; expected 0, 6d6ee72d and 800, 800 as in the central directory. Build or "
    with pytest.raises(InputError, match=f"^{re.escape(expected)}"):
        read_directory(path)


@pytest.mark.parametrize("extra", [b"", b"\1\0", b"\1\0\x08\0" + b"\7" * 8, b"\1\0\xff\xff", b"\2\0\0\0"])
def test_missing_large_sizes_are_refused(tmp_path: Path, extra: bytes) -> None:
    path = tmp_path / "a.zip"
    info = zipfile.ZipInfo("a")
    info.extra = extra
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, DATA)
    data = bytearray(path.read_bytes())
    data[18:26] = b"\xff" * 8
    path.write_bytes(data)
    with pytest.raises(InputError):
        read_directory(path)


_CENTRAL, _END = b"PK\1\2", b"PK\5\6"


def _archive(*names: str, comment: bytes = b"") -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in names:
            archive.writestr(name, f"content of {name}")
        archive.comment = comment
    return data.getvalue()


def _with_gap(gap: bytes, at: bytes = _CENTRAL) -> bytes:
    """Put bytes in front of the directory, which then begins behind them."""
    data = bytearray(_archive("a"))
    place = data.index(at)
    end = data.rindex(_END)
    struct.pack_into("<I", data, end + 16, struct.unpack_from("<I", data, end + 16)[0] + len(gap))
    return bytes(data[:place] + gap + data[place:])


def _with_extra(name: bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        info = zipfile.ZipInfo("a")
        info.extra = _path_field(name)
        archive.writestr(info, b"content")
    return data.getvalue()


def _with_count(number: int) -> bytes:
    data = bytearray(_archive("a", "b"))
    struct.pack_into("<2H", data, data.rindex(_END) + 8, number, number)
    return bytes(data)


def _renamed(old: bytes, new: bytes) -> bytes:
    return _archive(old.decode()).replace(old, new)


def _path_field(name: bytes) -> bytes:
    return struct.pack("<2HBI", 0x7075, 5 + len(name), 1, zlib.crc32(b"a")) + name


def _folder(packed: bytes, method: int, flags: int = 0) -> bytes:
    """Return an archive with a folder that has packed bytes, of which its entry says that they are nothing."""
    return raw_zip(RawMember(b"f/", b"", packed, method, flags=flags), RawMember(b"a", b"content"))


HIDDEN = _archive("hidden")
HIDDEN_MEMBER = HIDDEN[: HIDDEN.index(_CENTRAL)]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        pytest.param(_with_gap(HIDDEN_MEMBER), "bytes 43 to 96 don't belong to any member", id="a hidden member"),
        pytest.param(_with_gap(b"\0" * 12), "bytes 43 to 55 don't belong to any member", id="a false descriptor"),
        pytest.param(
            b"#!/bin/sh\n" + _archive("a"), "bytes 0 to 10 don't belong to any member", id="a script before it"
        ),
        pytest.param(_archive("a") + _archive("b"), "bytes 0 to 112 don't belong to any member", id="two archives"),
        pytest.param(
            _archive("a", comment=_archive("b")), "don't belong to any member", id="an archive in the comment"
        ),
        pytest.param(_archive("a") + b"more", "has 4 bytes after its end", id="bytes behind it"),
        pytest.param(_with_count(1), "has 2 entries, but the end record declares 1", id="fewer entries"),
        pytest.param(_with_count(3), "has 2 entries, but the end record declares 3", id="more entries"),
        pytest.param(_with_extra(b"../b"), "!a: also has the name b'../b'; expected one name", id="a Unicode path"),
        pytest.param(_renamed(b"ab.c", b"a\0.c"), "!a: the name has a NUL byte", id="a NUL byte"),
        pytest.param(
            _renamed(b"ab.c", b"ab./"), "!ab./: is a folder with content; expected an empty folder", id="a full folder"
        ),
        pytest.param(
            _folder(HIDDEN_MEMBER, 0),
            "!f/: is a folder with 53 packed bytes; expected an empty folder",
            id="a stored folder",
        ),
        pytest.param(
            _folder(b"\3\0" + HIDDEN_MEMBER, 8), "!f/: is a folder with 55 packed bytes", id="a deflated folder"
        ),
        pytest.param(
            _folder(b"\3\0" + bytes(10), 8, 8), "!f/: is a folder with 12 packed bytes", id="a streamed folder"
        ),
        pytest.param(_folder(b"\3\0", 0), "!f/: is a folder with 2 packed bytes", id="a stored folder of two bytes"),
        pytest.param(_folder(b"\3\0\0", 8), "!f/: is a folder with 3 packed bytes", id="a byte in a deflated folder"),
        pytest.param(
            raw_zip(RawMember(b"a", b"content", extra=b"\x55\x54\0\0" + _path_field(b"b"))),
            "!a: also has the name b'b'; expected one name",
            id="a Unicode path in its own header alone",
        ),
        pytest.param(
            raw_zip(RawMember(b"a", b"content", directory_extra=_path_field(b"b"))),
            "!a: also has the name b'b'; expected one name",
            id="a Unicode path in the directory alone",
        ),
    ],
)
def test_archives_that_programs_read_differently_are_refused(tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_directory(path)
    assert found in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(_archive(), id="nothing"),
        pytest.param(_archive("a", comment=b"signed by nobody"), id="a comment"),
        pytest.param(_with_extra(b"a"), id="its own name as a Unicode path"),
        pytest.param(raw_zip(RawMember(b"a", b"content", extra=_path_field(b"a"))), id="such a one in its own header"),
    ],
)
def test_archives_that_all_programs_read_alike_are_read(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    assert [member.name for member in read_directory(path)] == ["a"] * data.count(_CENTRAL)


@pytest.mark.parametrize("packed", [b"", b"\3\0", b"\1\0\0\xff\xff"], ids=["no bytes", "a code", "as they are"])
@pytest.mark.parametrize("flags", [0, 8])
def test_deflated_empty_folders_are_read(tmp_path: Path, packed: bytes, flags: int) -> None:
    (tmp_path / "a.zip").write_bytes(_folder(packed, 8, flags))
    assert [member.name for member in read_directory(tmp_path / "a.zip")] == ["a"]


class _AmbiguityPipe(io.BytesIO):
    """A file in which nobody can go back, so that members are written as streams."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation

    def tell(self) -> int:
        raise io.UnsupportedOperation


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("large", [False, True], ids=["small", "ZIP64"])
def test_members_written_as_streams_are_read(tmp_path: Path, method: int, *, large: bool) -> None:
    pipe = _AmbiguityPipe()
    with zipfile.ZipFile(pipe, "w", method) as archive:
        archive.writestr("folder/", b"")
        for name in ("folder/a", "b"):
            with archive.open(name, "w", force_zip64=large) as member:
                member.write(b"content" * 100)
    path = tmp_path / "a.zip"
    path.write_bytes(pipe.getvalue())
    assert [member.name for member in read_directory(path)] == ["folder/a", "b"]


PLAIN = raw_zip(RawMember(b"a", b"content"), RawMember(b"b", b"content"))
LARGE = with_large_record(PLAIN)
_ENDING_END, _LOCATOR, _RECORD, _ENDING_CENTRAL = b"PK\5\6", b"PK\6\7", b"PK\6\6", b"PK\1\2"


def _changed(data: bytes, record: bytes, offset: int, layout: str, *values: int) -> bytes:
    """Return an archive with another value at an offset within a record."""
    changed = bytearray(data)
    struct.pack_into(f"<{layout}", changed, data.rindex(record) + offset, *values)
    return bytes(changed)


def _with_last_comment(comment: bytes) -> bytes:
    """Return an archive whose last entry in the directory has a comment."""
    entry = PLAIN.rindex(_ENDING_CENTRAL)
    data = _changed(_changed(PLAIN, _ENDING_CENTRAL, 32, "H", len(comment)), _ENDING_END, 12, "I", 94 + len(comment))
    return data[: entry + 47] + comment + data[entry + 47 :]


def _shifted(data: bytes) -> bytes:
    """Return an archive whose offsets are those of one with eight bytes before it; `zipfile` allows for that."""
    first, last = data.index(_ENDING_CENTRAL), data.rindex(_ENDING_CENTRAL)
    changed = bytearray(data)
    for entry, offset in ((first, 8), (last, 46)):
        struct.pack_into("<I", changed, entry + 42, offset)
    return _changed(bytes(changed), _ENDING_END, 16, "I", 84)


def _refusal(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_directory(path)
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(PLAIN, id="none for large archives"),
        pytest.param(LARGE, id="two that say the same"),
        pytest.param(
            _changed(LARGE, _ENDING_END, 4, "4H2I", *[0xFFFF] * 4, *[0xFFFFFFFF] * 2), id="one that says nothing"
        ),
        pytest.param(_changed(LARGE, _ENDING_END, 16, "I", 0xFFFFFFFF), id="one that lacks the offset"),
        pytest.param(with_large_record(raw_zip()), id="of no members"),
    ],
)
def test_end_records_that_agree_are_read(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(data)
    assert [member.name for member in read_directory(tmp_path / "a.zip")] == ["a", "b"][: data.count(_ENDING_CENTRAL)]


@pytest.mark.parametrize(
    ("offset", "layout", "value", "found"),
    [
        pytest.param(4, "H", 1, "last record has 1, but the ZIP64 record has 0; expected 0 or 65535", id="disk"),
        pytest.param(6, "H", 1, "last record has 1, but the ZIP64 record has 0; expected 0 or", id="first disk"),
        pytest.param(8, "H", 1, "last record has 1, but the ZIP64 record has 2; expected 2 or", id="number here"),
        pytest.param(10, "H", 1, "last record has 1, but the ZIP64 record has 2; expected 2 or 6", id="number"),
        pytest.param(12, "I", 47, "last record has 47, but the ZIP64 record has 94; expected 94", id="length"),
        pytest.param(16, "I", 38, "last record has 38, but the ZIP64 record has 76; expected 76", id="offset"),
    ],
)
def test_an_end_record_that_contradicts_the_zip64_record_is_refused(
    tmp_path: Path, offset: int, layout: str, value: int, found: str
) -> None:
    refusal = _refusal(tmp_path / "a.zip", _changed(LARGE, _ENDING_END, offset, layout, value))
    assert refusal.startswith(f"the end records disagree: the {found}")


@pytest.mark.parametrize(
    ("data", "found"),
    [
        pytest.param(
            _changed(PLAIN, _ENDING_END, 4, "2H", 1, 1),
            "declares an archive in several parts; expected a single",
            id="disks",
        ),
        pytest.param(_changed(PLAIN, _ENDING_END, 8, "H", 1), "declares an archive in several parts", id="number here"),
        pytest.param(
            _changed(PLAIN, _ENDING_END, 8, "2H", 1, 1), "2 entries, but the end record declares 1", id="number"
        ),
        pytest.param(
            _shifted(PLAIN),
            "the central directory is at byte 76, but the end record declares byte 84; expected the same offset",
            id="offset",
        ),
        pytest.param(
            _changed(_changed(LARGE, _RECORD, 24, "2Q", 1, 1), _ENDING_END, 8, "2H", 1, 1),
            "the central directory has 2 entries, but the end record declares 1; expected the same number",
            id="number of large archives",
        ),
        pytest.param(
            _changed(_shifted(LARGE), _RECORD, 48, "Q", 84),
            "the central directory is at byte 76, but the end record declares byte 84",
            id="offset of large archives",
        ),
        pytest.param(
            _changed(LARGE, _RECORD, 4, "Q", 64),
            "the ZIP64 end record is 64 bytes long; expected 44",
            id="longer record",
        ),
        pytest.param(
            _changed(LARGE, _LOCATOR, 8, "Q", 38),
            "the locator refers to a ZIP64 end record at byte 38; expected a ZIP64 end record right before the locator",
            id="record elsewhere",
        ),
        pytest.param(
            _with_last_comment(struct.pack("<4sIQI", _LOCATOR, 0, 38, 1)),
            "the locator refers to a ZIP64 end record at byte 38; expected a ZIP64 end record right before the locator",
            id="record that is no part of its end",
        ),
        pytest.param(
            _changed(PLAIN, _ENDING_CENTRAL, 32, "H", 22),
            "the central directory at byte 76 doesn't have the 94 bytes that the end record declares; "
            "expected a complete archive",
            id="a comment beyond the directory",
        ),
    ],
)
def test_an_end_record_that_does_not_match_the_directory_is_refused(tmp_path: Path, data: bytes, found: str) -> None:
    assert found in _refusal(tmp_path / "a.zip", data)


def test_an_end_record_within_the_comment_of_another_is_refused(tmp_path: Path) -> None:
    other = struct.pack("<4s4H2IH", _ENDING_END, 0, 0, 1, 1, 47, 76, 22)
    assert _refusal(tmp_path / "a.zip", _with_last_comment(other)) == (
        "the archive has two end records; expected only one end record. Build or download it again."
    )
