"""Tests of `rocwheel.index.upload_times`."""

from __future__ import annotations

import json
import os
import re
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.index.folder_notes import KNOWN_NAME
from rocwheel.index.placing import FilePlacement
from rocwheel.index.upload_times import UploadTimes, parse_time, render_time
from rocwheel.index.write_index import IndexOptions, write_index

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.index.conftest import AddWheel


MAY, JUNE = 1_777_593_600, 1_780_272_000
"""2026-05-01 and 2026-06-01, in seconds since 1970."""
MAY_TEXT, JUNE_TEXT = "2026-05-01T00:00:00.000000Z", "2026-06-01T00:00:00.000000Z"


@pytest.fixture
def output(dist_dir: Path) -> Path:
    return dist_dir.parent / "simple"


@pytest.fixture
def wheel(add_wheel: AddWheel) -> Path:
    path = add_wheel("a")
    os.utime(path, (MAY, MAY))
    return path


def times(output: Path, project: str = "a") -> list[str]:
    return [file["upload-time"] for file in json.loads((output / project / "index.json").read_bytes())["files"]]


def test_the_upload_time_of_a_file_is_its_modification_time(wheel: Path, dist_dir: Path, output: Path) -> None:
    os.utime(wheel, ns=(0, MAY * 10**9 + 123_456_789))
    write_index(dist_dir, output)
    assert times(output) == ["2026-05-01T00:00:00.123456Z"]


def test_a_given_upload_time_applies_only_to_new_files(
    wheel: Path, add_wheel: AddWheel, dist_dir: Path, output: Path
) -> None:
    write_index(dist_dir, output)
    add_wheel("a", "2.0")
    write_index(dist_dir, output, options=IndexOptions(upload_time=JUNE * 10**6))
    assert times(output) == [MAY_TEXT, JUNE_TEXT]


def _keep(_: Path) -> None:
    pass


def _forget(output: Path) -> None:
    (output / KNOWN_NAME).unlink()


def _remove_pages(output: Path) -> None:
    (output / "a/index.json").unlink()


@pytest.mark.parametrize("placement", list(FilePlacement), ids=lambda placement: placement.value)
@pytest.mark.parametrize("spoil", [_keep, _forget, _remove_pages])
def test_an_existing_file_keeps_its_upload_time_regardless_of_its_date(
    wheel: Path, dist_dir: Path, output: Path, spoil: Callable[[Path], None], placement: FilePlacement
) -> None:
    write_index(dist_dir, output, options=IndexOptions(placement=placement))
    os.utime(wheel, (JUNE, JUNE))
    spoil(output)
    write_index(dist_dir, output, options=IndexOptions(placement=placement, upload_time=JUNE * 10**6))
    assert times(output) == [MAY_TEXT]


def test_a_changed_file_gets_a_new_time(wheel: Path, add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    write_index(dist_dir, output)
    os.utime(add_wheel("a", "1.0", "Keywords: other"), (JUNE, JUNE))
    write_index(dist_dir, output)
    assert times(output) == [JUNE_TEXT]


def test_a_file_dated_in_the_future_gets_the_current_time_and_is_reported(
    wheel: Path, dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(wheel, (JUNE, JUNE))
    monkeypatch.setattr(time, "time_ns", lambda: MAY * 10**9)
    assert write_index(dist_dir, output).future == (wheel.name,)
    assert times(output) == [MAY_TEXT]


def test_an_upload_time_from_a_wrong_clock_is_corrected(
    wheel: Path, dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: (JUNE + 10**8) * 10**9)
    os.utime(wheel, (JUNE + 10**7, JUNE + 10**7))
    write_index(dist_dir, output)
    monkeypatch.setattr(time, "time_ns", lambda: JUNE * 10**9)
    os.utime(wheel, (MAY, MAY))
    write_index(dist_dir, output)
    assert times(output) == [MAY_TEXT]


def test_a_clock_set_to_1970_is_an_error_and_the_index_is_unchanged(
    wheel: Path, add_wheel: AddWheel, dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_index(dist_dir, output)
    before = {path: path.read_bytes() for path in output.rglob("*.html")}
    os.utime(add_wheel("a", "2.0"), (JUNE, JUNE))
    monkeypatch.setattr(time, "time_ns", lambda: 60 * 10**9)
    message = (
        "this machine's clock: is set to 1970-01-01; expected a date after 2025-01-01. Set the clock, or "
        "specify the upload date of new files with rocwheel index --upload-time."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        write_index(dist_dir, output)
    assert {path: path.read_bytes() for path in output.rglob("*.html")} == before


def test_with_a_clock_set_to_1970_old_times_are_kept_and_new_files_get_the_given_time(
    wheel: Path, add_wheel: AddWheel, dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_index(dist_dir, output)
    add_wheel("a", "2.0")
    monkeypatch.setattr(time, "time_ns", lambda: 60 * 10**9)
    report = write_index(dist_dir, output, options=IndexOptions(upload_time=JUNE * 10**6))
    assert times(output) == [MAY_TEXT, JUNE_TEXT]
    assert report.future == ()


def test_a_file_dated_in_the_future_is_read_only_once(
    wheel: Path, dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: clock() + 3600 * 10**9)
    os.utime(wheel, (2**33, 2**33))
    write_index(dist_dir, output)
    monkeypatch.delattr("rocwheel.index.folder.read_entry")
    write_index(dist_dir, output)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-05-01", MAY),
        ("2026-05-01T00:00:00Z", MAY),
        ("2026-05-01T02:00:00+02:00", MAY),
        ("2026-05-01T00:00:00.5", MAY + 0.5),
        ("1970-01-01", 0),
    ],
)
def test_a_date_is_parsed_as_utc(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds * 10**6


@pytest.mark.parametrize(
    "text",
    [
        *("", "Z", "tomorrow", "2026-13-01", "1969-12-31", "0001-01-01T00:00:00+14:00"),
        "9999-12-31T23:59:59-01:00",
    ],
)
def test_an_invalid_date_is_refused(text: str) -> None:
    expected = f"--upload-time: is {text!r}; expected a date since 1970, such as 2026-01-31 or 2026-01-31T12:00:00Z"
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        parse_time(text)


@given(st.integers(0, 253402300799 * 10**6))
def test_a_rendered_time_can_be_parsed_back(microseconds: int) -> None:
    assert parse_time(render_time(microseconds)) == microseconds


@given(st.integers())
def test_any_number_can_be_rendered_as_a_time(microseconds: int) -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", render_time(microseconds))


@given(st.none() | st.integers(), st.integers(), st.integers(0, 2**60))
def test_no_time_is_in_the_future_unless_it_is_given(earlier: int | None, changed: int, now: int) -> None:
    assert 0 <= UploadTimes(now).choose(earlier if earlier is None or earlier >= 0 else None, changed) <= now
    assert UploadTimes(now, now + 1).choose(None, changed) == now + 1
