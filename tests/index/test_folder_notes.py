"""Tests of `rocwheel.index.folder_notes`."""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rocwheel.core.errors import InputError
from rocwheel.core.reading import FileStamp
from rocwheel.index.entry import read_entry
from rocwheel.index.folder_notes import KNOWN_NAME, KnownIndex, read_known
from rocwheel.index.placing import FilePlacement
from rocwheel.index.write_index import IndexOptions, write_index

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rocwheel.index.entry import ReadEntry
    from tests.index.conftest import AddWheel


HOUR = 3600
MOMENT = 1_777_593_600 * 10**9


@pytest.fixture
def output(dist_dir: Path) -> Path:
    return dist_dir.parent / "simple"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the names of the files that are read are added; runs happen an hour from now."""
    names: list[str] = []
    clock = time.time_ns

    def noting(path: Path, advance: Callable[[int], object]) -> ReadEntry:
        names.append(path.name)
        return read_entry(path, advance)

    monkeypatch.setattr("rocwheel.index.folder.read_entry", noting)
    monkeypatch.setattr(time, "time_ns", lambda: clock() + HOUR * 10**9)
    return names


@pytest.mark.parametrize("placement", list(FilePlacement), ids=lambda placement: placement.value)
def test_an_unchanged_file_is_not_read_again(
    add_wheel: AddWheel, dist_dir: Path, output: Path, read: list[str], placement: FilePlacement
) -> None:
    add_wheel("a")
    first = write_index(dist_dir, output, options=IndexOptions(placement=placement))
    page = (output / "a" / "index.json").read_bytes()
    new = add_wheel("b")
    read.clear()
    second = write_index(dist_dir, output, options=IndexOptions(placement=placement))
    assert read == [new.name]
    assert second.projects == {**first.projects, "b": [new.name]}
    assert (output / "a" / "index.json").read_bytes() == page


def test_a_changed_file_with_the_same_size_and_date_is_read_again(
    add_wheel: AddWheel, dist_dir: Path, output: Path, read: list[str]
) -> None:
    wheel = add_wheel("a")
    write_index(dist_dir, output)
    status, data = wheel.stat(), wheel.read_bytes()
    wheel.write_bytes(data.replace(b"2024", b"2025"))
    os.utime(wheel, ns=(status.st_atime_ns, status.st_mtime_ns))
    read.clear()
    write_index(dist_dir, output)
    assert read == [wheel.name]


def test_a_file_written_just_before_reading_is_read_again(
    add_wheel: AddWheel, dist_dir: Path, output: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = add_wheel("a")
    changed = wheel.stat().st_ctime_ns
    for delay, expected in ((1_999_999_999, [wheel.name] * 2), (2_000_000_000, [wheel.name])):
        (output / KNOWN_NAME).unlink(missing_ok=True)
        monkeypatch.setattr(time, "time_ns", lambda delay=delay: changed + delay)
        read.clear()
        write_index(dist_dir, output)
        write_index(dist_dir, output)
        assert read == expected


def test_changed_metadata_is_rewritten(add_wheel: AddWheel, dist_dir: Path, output: Path, read: list[str]) -> None:
    wheel = add_wheel("a")
    write_index(dist_dir, output)
    metadata = dist_dir / f"{wheel.name}.metadata"
    right = metadata.read_bytes()
    for spoil in (lambda: metadata.write_bytes(b"x"), metadata.unlink):
        spoil()
        read.clear()
        write_index(dist_dir, output)
        assert (metadata.read_bytes(), read) == (right, [])


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"null", b'{"files": {"a-1.0-py3-none-any.whl": [1, 2, 3]}}', b"\xff"],
    ids=["empty", "cut off", "null", "other types", "no text"],
)
def test_malformed_notes_are_ignored(
    add_wheel: AddWheel, dist_dir: Path, output: Path, read: list[str], text: bytes
) -> None:
    wheel = add_wheel("a")
    write_index(dist_dir, output)
    (output / KNOWN_NAME).write_bytes(text)
    read.clear()
    write_index(dist_dir, output)
    assert read == [wheel.name]


def test_notes_with_a_changed_digit_are_ignored(
    add_wheel: AddWheel, dist_dir: Path, output: Path, read: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    wheel = add_wheel("a")
    write_index(dist_dir, output)
    page = (output / "a/index.json").read_bytes()
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    notes = (output / KNOWN_NAME).read_bytes()
    (output / KNOWN_NAME).write_bytes(notes.replace(sha256.encode(), b"0" * 64))
    (output / "a/index.json").unlink()
    read.clear()
    write_index(dist_dir, output)
    assert (read, (output / "a/index.json").read_bytes()) == ([wheel.name], page)
    text = f"{output / KNOWN_NAME}: was changed, or belongs to another user; rocwheel reads all files again"
    assert text in [record.getMessage() for record in caplog.records]


def test_notes_that_others_can_write_are_ignored(
    add_wheel: AddWheel, dist_dir: Path, output: Path, read: list[str]
) -> None:
    wheel = add_wheel("a")
    write_index(dist_dir, output)
    (output / KNOWN_NAME).chmod(0o666)
    read.clear()
    write_index(dist_dir, output)
    assert read == [wheel.name]


@pytest.mark.parametrize("other", [{"version": "0.0.1"}, {"checks": 1}], ids=lambda other: next(iter(other)))
def test_all_files_are_read_again_after_a_change_of_version_or_checks(
    add_wheel: AddWheel, dist_dir: Path, output: Path, read: list[str], other: dict[str, Any]
) -> None:
    wheel = add_wheel("a")
    write_index(dist_dir, output)
    (output / KNOWN_NAME).write_bytes(msgspec.json.encode(msgspec.structs.replace(read_known(output), **other)))
    read.clear()
    write_index(dist_dir, output)
    assert read == [wheel.name]


@pytest.mark.parametrize("part", ["files", "projects"])
def test_files_from_notes_with_other_field_types_can_still_be_removed(
    add_wheel: AddWheel, dist_dir: Path, output: Path, part: str
) -> None:
    wheel = add_wheel("a")
    add_wheel("b")
    write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
    known = msgspec.json.decode((output / KNOWN_NAME).read_bytes())
    (output / KNOWN_NAME).write_bytes(msgspec.json.encode({**known, part: {"a": ["of another kind"]}}))
    (output / "a/index.json").unlink()
    wheel.unlink()
    write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
    assert not (output / "a").exists()


def _change_byte(path: Path) -> None:
    """Change the last byte of a file in place: where times are coarse, its stamp stays."""
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


@pytest.mark.parametrize(
    "name", ["index.html", "index.json", "a-1.0-py3-none-any.whl", "a-1.0-py3-none-any.whl.metadata"]
)
def test_a_file_modified_just_after_a_run_is_rewritten(
    add_wheel: AddWheel, dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    source = add_wheel("a").stat().st_ino
    stamp = FileStamp.of

    def of_coarse_times(status: os.stat_result) -> FileStamp:
        date = MOMENT - (HOUR * 10**9 if status.st_ino == source else 0)
        return msgspec.structs.replace(stamp(status), modified=date, changed=date)

    monkeypatch.setattr(FileStamp, "of", of_coarse_times)
    for now in (MOMENT, MOMENT + 1_999_999_999):
        monkeypatch.setattr(time, "time_ns", lambda now=now: now)
        write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
        right = (output / "a" / name).read_bytes()
        _change_byte(output / "a" / name)
        write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
        assert (output / "a" / name).read_bytes() == right


def test_a_correct_copy_is_not_copied_again(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    wheel = add_wheel("a")
    write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
    inode = (output / "a" / wheel.name).stat().st_ino
    (output / KNOWN_NAME).unlink()
    write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
    assert (output / "a" / wheel.name).stat().st_ino == inode


def test_unsafe_names_in_the_notes_remove_no_files(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    add_wheel("a")
    write_index(dist_dir, output)
    (output.parent / "kept").write_text("kept")
    (output / "A").mkdir()
    (output / "A" / "index.html").write_text("kept")
    noted = {"a": ("../../kept", "..", ""), "..": ("kept",), "A": ("index.html",)}
    (output / KNOWN_NAME).write_bytes(msgspec.json.encode(KnownIndex(written=noted)))
    write_index(dist_dir, output)
    assert (output.parent / "kept").read_text() == "kept"
    assert (output / "A" / "index.html").read_text() == "kept"


def test_a_pipe_in_place_of_the_notes_is_reported(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    add_wheel("a")
    output.mkdir()
    os.mkfifo(output / KNOWN_NAME)
    with pytest.raises(InputError, match=r"\.rocwheel-index\.json: is a pipe; expected a regular file or nothing"):
        write_index(dist_dir, output)
