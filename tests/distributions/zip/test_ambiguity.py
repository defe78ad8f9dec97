"""Archives that a program that reads files and one that reads streams, such as pip and uv, would read differently."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.distributions.zip.directory import read_directory
from tests.support.raw_zip import RawMember, raw_zip

if TYPE_CHECKING:
    from pathlib import Path

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
        pytest.param(_with_gap(HIDDEN_MEMBER), "bytes 43 to 96 belong to no member", id="a hidden member"),
        pytest.param(_with_gap(b"\0" * 12), "bytes 43 to 55 belong to no member", id="a false descriptor"),
        pytest.param(b"#!/bin/sh\n" + _archive("a"), "bytes 0 to 10 belong to no member", id="a script before it"),
        pytest.param(_archive("a") + _archive("b"), "bytes 0 to 112 belong to no member", id="two archives"),
        pytest.param(_archive("a", comment=_archive("b")), "belong to no member", id="an archive in the comment"),
        pytest.param(_archive("a") + b"more", "4 bytes behind its end", id="bytes behind it"),
        pytest.param(_with_count(1), "has 2 entries, and says that it has 1", id="fewer entries"),
        pytest.param(_with_count(3), "has 2 entries, and says that it has 3", id="more entries"),
        pytest.param(_with_extra(b"../b"), "!a: also calls itself b'../b'; expected one name", id="a Unicode path"),
        pytest.param(_renamed(b"ab.c", b"a\0.c"), "!a: its name has a NUL byte", id="a NUL byte"),
        pytest.param(_renamed(b"ab.c", b"ab./"), "!ab./: a folder with content; expected an empty", id="a full folder"),
        pytest.param(
            _folder(HIDDEN_MEMBER, 0), "!f/: a folder with 53 packed bytes; expected an empty one", id="a stored folder"
        ),
        pytest.param(_folder(b"\3\0" + HIDDEN_MEMBER, 8), "!f/: a folder with 55 packed bytes", id="a deflated folder"),
        pytest.param(_folder(b"\3\0" + bytes(10), 8, 8), "!f/: a folder with 12 packed bytes", id="a streamed folder"),
        pytest.param(_folder(b"\3\0", 0), "!f/: a folder with 2 packed bytes", id="a stored folder of two bytes"),
        pytest.param(_folder(b"\3\0\0", 8), "!f/: a folder with 3 packed bytes", id="a byte in a deflated folder"),
        pytest.param(
            raw_zip(RawMember(b"a", b"content", extra=b"\x55\x54\0\0" + _path_field(b"b"))),
            "!a: also calls itself b'b'; expected one name",
            id="a Unicode path in its own header alone",
        ),
        pytest.param(
            raw_zip(RawMember(b"a", b"content", directory_extra=_path_field(b"b"))),
            "!a: also calls itself b'b'; expected one name",
            id="a Unicode path in the directory alone",
        ),
    ],
)
def test_what_programs_read_differently_is_refused(tmp_path: Path, data: bytes, found: str) -> None:
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
def test_what_all_programs_read_alike_is_read(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    assert [member.name for member in read_directory(path)] == ["a"] * data.count(_CENTRAL)


@pytest.mark.parametrize("packed", [b"", b"\3\0", b"\1\0\0\xff\xff"], ids=["no bytes", "a code", "as they are"])
@pytest.mark.parametrize("flags", [0, 8])
def test_folders_of_which_deflate_made_nothing_are_read(tmp_path: Path, packed: bytes, flags: int) -> None:
    (tmp_path / "a.zip").write_bytes(_folder(packed, 8, flags))
    assert [member.name for member in read_directory(tmp_path / "a.zip")] == ["a"]


class _Pipe(io.BytesIO):
    """A file in which nobody can go back, so that members are written as streams."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation

    def tell(self) -> int:
        raise io.UnsupportedOperation


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("large", [False, True], ids=["small", "ZIP64"])
def test_members_that_were_written_as_streams_are_read(tmp_path: Path, method: int, *, large: bool) -> None:
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", method) as archive:
        archive.writestr("folder/", b"")
        for name in ("folder/a", "b"):
            with archive.open(name, "w", force_zip64=large) as member:
                member.write(b"content" * 100)
    path = tmp_path / "a.zip"
    path.write_bytes(pipe.getvalue())
    assert [member.name for member in read_directory(path)] == ["folder/a", "b"]
