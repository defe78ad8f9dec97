"""Archives whose end names two directories: programs differ in which record they believe."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.distributions.zip.directory import read_directory
from tests.support.raw_zip import RawMember, raw_zip, with_large_record

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = raw_zip(RawMember(b"a", b"content"), RawMember(b"b", b"content"))
LARGE = with_large_record(PLAIN)
_END, _LOCATOR, _RECORD, _CENTRAL = b"PK\5\6", b"PK\6\7", b"PK\6\6", b"PK\1\2"


def _changed(data: bytes, record: bytes, offset: int, layout: str, *values: int) -> bytes:
    """Return an archive with another value at an offset within a record."""
    changed = bytearray(data)
    struct.pack_into(f"<{layout}", changed, data.rindex(record) + offset, *values)
    return bytes(changed)


def _with_last_comment(comment: bytes) -> bytes:
    """Return an archive whose last entry in the directory has a comment."""
    entry = PLAIN.rindex(_CENTRAL)
    data = _changed(_changed(PLAIN, _CENTRAL, 32, "H", len(comment)), _END, 12, "I", 94 + len(comment))
    return data[: entry + 47] + comment + data[entry + 47 :]


def _shifted(data: bytes) -> bytes:
    """Return an archive whose offsets are those of one with eight bytes before it; `zipfile` allows for that."""
    first, last = data.index(_CENTRAL), data.rindex(_CENTRAL)
    changed = bytearray(data)
    for entry, offset in ((first, 8), (last, 46)):
        struct.pack_into("<I", changed, entry + 42, offset)
    return _changed(bytes(changed), _END, 16, "I", 84)


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
        pytest.param(_changed(LARGE, _END, 4, "4H2I", *[0xFFFF] * 4, *[0xFFFFFFFF] * 2), id="one that says nothing"),
        pytest.param(_changed(LARGE, _END, 16, "I", 0xFFFFFFFF), id="one that lacks the offset"),
        pytest.param(with_large_record(raw_zip()), id="of no members"),
    ],
)
def test_records_that_agree_are_read(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(data)
    assert [member.name for member in read_directory(tmp_path / "a.zip")] == ["a", "b"][: data.count(_CENTRAL)]


@pytest.mark.parametrize(
    ("offset", "layout", "value", "found"),
    [
        pytest.param(4, "H", 1, "last says 1 where the one for large archives says 0; expected 0 or 65535", id="disk"),
        pytest.param(6, "H", 1, "last says 1 where the one for large archives says 0; expected 0 or", id="first disk"),
        pytest.param(8, "H", 1, "last says 1 where the one for large archives says 2; expected 2 or", id="number here"),
        pytest.param(10, "H", 1, "last says 1 where the one for large archives says 2; expected 2 or 6", id="number"),
        pytest.param(12, "I", 47, "last says 47 where the one for large archives says 94; expected 94", id="length"),
        pytest.param(16, "I", 38, "last says 38 where the one for large archives says 76; expected 76", id="offset"),
    ],
)
def test_a_last_record_that_contradicts_the_one_for_large_archives_is_refused(
    tmp_path: Path, offset: int, layout: str, value: int, found: str
) -> None:
    refusal = _refusal(tmp_path / "a.zip", _changed(LARGE, _END, offset, layout, value))
    assert refusal.startswith(f"its records disagree: the {found}")


@pytest.mark.parametrize(
    ("data", "found"),
    [
        pytest.param(
            _changed(PLAIN, _END, 4, "2H", 1, 1), "says that it is one of several files; expected all in", id="disks"
        ),
        pytest.param(_changed(PLAIN, _END, 8, "H", 1), "says that it is one of several files", id="number here"),
        pytest.param(_changed(PLAIN, _END, 8, "2H", 1, 1), "2 entries, and says that it has 1", id="number"),
        pytest.param(
            _shifted(PLAIN),
            "its directory is at byte 76, and its end says at byte 84; expected the same place",
            id="offset",
        ),
        pytest.param(
            _changed(_changed(LARGE, _RECORD, 24, "2Q", 1, 1), _END, 8, "2H", 1, 1),
            "its directory has 2 entries, and says that it has 1; expected the same number",
            id="number of large archives",
        ),
        pytest.param(
            _changed(_shifted(LARGE), _RECORD, 48, "Q", 84),
            "its directory is at byte 76, and its end says at byte 84",
            id="offset of large archives",
        ),
        pytest.param(
            _changed(LARGE, _RECORD, 4, "Q", 64),
            "its record for large archives is 64 bytes long; expected 44",
            id="longer record",
        ),
        pytest.param(
            _changed(LARGE, _LOCATOR, 8, "Q", 38),
            "its end names a record for large archives at byte 38; expected one right before it",
            id="record elsewhere",
        ),
        pytest.param(
            _with_last_comment(struct.pack("<4sIQI", _LOCATOR, 0, 38, 1)),
            "its end names a record for large archives at byte 38; expected one right before it",
            id="record that is no part of its end",
        ),
        pytest.param(
            _changed(PLAIN, _CENTRAL, 32, "H", 22),
            "its directory, at byte 76, is not of the 94 bytes that its end says; expected a whole archive",
            id="a comment beyond the directory",
        ),
    ],
)
def test_an_end_that_is_not_true_of_the_directory_is_refused(tmp_path: Path, data: bytes, found: str) -> None:
    assert found in _refusal(tmp_path / "a.zip", data)


def test_an_end_within_the_comment_of_another_is_refused(tmp_path: Path) -> None:
    other = struct.pack("<4s4H2IH", _END, 0, 0, 1, 1, 47, 76, 22)
    assert _refusal(tmp_path / "a.zip", _with_last_comment(other)) == (
        "two records end it, each of a directory; expected one. Build or download it again."
    )
