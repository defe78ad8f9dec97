"""Local headers that agree with the directory, in every way that programs write them, and those that don't."""

from __future__ import annotations

import io
import re
import zipfile
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.distributions.zip.directory import read_directory
from rocwheel.distributions.zip.reader import read_member

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
def test_a_stream_has_its_sizes_behind_the_content(tmp_path: Path, method: int) -> None:
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
    assert (tmp_path / "a.zip").read_bytes()[18:26] == b"\xff" * 8
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
def test_a_member_whose_own_header_says_otherwise_is_refused(tmp_path: Path, place: int, found: str) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", DATA)
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    expected = f"{path}!a: has {found}; expected 0, 6d6ee72d and 800, 800 as in the directory. Build or "
    with pytest.raises(InputError, match=f"^{re.escape(expected)}"):
        read_directory(path)


@pytest.mark.parametrize("extra", [b"", b"\1\0", b"\1\0\x08\0" + b"\7" * 8, b"\1\0\xff\xff", b"\2\0\0\0"])
def test_large_sizes_that_are_not_there_are_a_disagreement(tmp_path: Path, extra: bytes) -> None:
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
