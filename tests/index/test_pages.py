"""Tests of `rocwheel.index.pages`."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.index.entry import IndexEntry
from rocwheel.index.notes import KNOWN_NAME
from rocwheel.index.pages import (
    UploadTimes,
    group_by_project,
    is_as_made,
    is_sha256,
    make_project_page,
    make_root_page,
    parse_time,
    read_times,
    render_time,
    with_digest,
)
from rocwheel.index.placing import FilePlacement
from rocwheel.index.write_index import IndexOptions, write_index
from tests.support.damage import damaged

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.index.conftest import AddWheel


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("a0" * 32, True), ("A0" * 32, False), ("a0" * 31, False), ("a0" * 32 + "\n", False), ("g0" * 32, False)],
)
def test_64_hexadecimal_digits_in_small_letters_are_a_sha256(text: str, is_one: bool) -> None:
    assert is_sha256(text) is is_one


PAGE = b"<!DOCTYPE html>\n<html><!-- a --></html>\n"


def test_the_digest_is_a_comment_behind_the_page() -> None:
    assert with_digest(PAGE) == PAGE + b"<!-- 950bfb27a5c910b1 -->\n"


@given(st.binary())
def test_a_page_with_its_digest_is_as_made(page: bytes) -> None:
    assert is_as_made(with_digest(page))


@pytest.mark.parametrize(
    "edited",
    [
        with_digest(PAGE).replace(b" a ", b" b "),
        with_digest(PAGE)[:-1],
        with_digest(PAGE) + b"<!-- mine -->\n",
        with_digest(PAGE).replace(b"<!-- 9", b"<!-- 8"),
        PAGE[:-1],
        b"",
    ],
    ids=["other bytes", "cut off", "a comment behind it", "another digest", "cut off without a digest", "empty"],
)
def test_other_bytes_are_an_edit(edited: bytes) -> None:
    assert not is_as_made(edited)


def test_a_whole_page_without_a_digest_is_that_of_an_older_version() -> None:
    assert is_as_made(PAGE)


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


def test_a_file_was_uploaded_when_it_was_last_written(wheel: Path, dist_dir: Path, output: Path) -> None:
    os.utime(wheel, ns=(0, MAY * 10**9 + 123_456_789))
    write_index(dist_dir, output)
    assert times(output) == ["2026-05-01T00:00:00.123456Z"]


def test_a_given_time_is_that_of_new_files_alone(
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
def test_a_file_that_stands_keeps_its_time_whatever_its_date(
    wheel: Path, dist_dir: Path, output: Path, spoil: Callable[[Path], None], placement: FilePlacement
) -> None:
    write_index(dist_dir, output, options=IndexOptions(placement=placement))
    os.utime(wheel, (JUNE, JUNE))
    spoil(output)
    write_index(dist_dir, output, options=IndexOptions(placement=placement, upload_time=JUNE * 10**6))
    assert times(output) == [MAY_TEXT]


def test_a_file_with_other_bytes_has_a_new_time(wheel: Path, add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    write_index(dist_dir, output)
    os.utime(add_wheel("a", "1.0", "Keywords: other"), (JUNE, JUNE))
    write_index(dist_dir, output)
    assert times(output) == [JUNE_TEXT]


def test_a_file_of_the_future_is_uploaded_now_and_named(
    wheel: Path, dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(wheel, (JUNE, JUNE))
    monkeypatch.setattr(time, "time_ns", lambda: MAY * 10**9)
    assert write_index(dist_dir, output).future == (wheel.name,)
    assert times(output) == [MAY_TEXT]


def test_a_time_that_a_wrong_clock_gave_is_mended(
    wheel: Path, dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: (JUNE + 10**8) * 10**9)
    os.utime(wheel, (JUNE + 10**7, JUNE + 10**7))
    write_index(dist_dir, output)
    monkeypatch.setattr(time, "time_ns", lambda: JUNE * 10**9)
    os.utime(wheel, (MAY, MAY))
    write_index(dist_dir, output)
    assert times(output) == [MAY_TEXT]


def test_a_clock_of_1970_is_an_error_and_leaves_the_index(
    wheel: Path, add_wheel: AddWheel, dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_index(dist_dir, output)
    before = {path: path.read_bytes() for path in output.rglob("*.html")}
    os.utime(add_wheel("a", "2.0"), (JUNE, JUNE))
    monkeypatch.setattr(time, "time_ns", lambda: 60 * 10**9)
    message = (
        "the clock of this machine: says 1970-01-01; expected a date after 2025-01-01. "
        "Set it right, or have rocwheel index say when new files were uploaded: --upload-time."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        write_index(dist_dir, output)
    assert {path: path.read_bytes() for path in output.rglob("*.html")} == before


def test_with_a_clock_of_1970_dates_stay_and_new_files_have_the_given_one(
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
def test_a_date_is_read_in_utc(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds * 10**6


@pytest.mark.parametrize(
    "text",
    [
        *("", "Z", "tomorrow", "2026-13-01", "1969-12-31", "0001-01-01T00:00:00+14:00"),
        "9999-12-31T23:59:59-01:00",
    ],
)
def test_what_is_no_date_is_refused(text: str) -> None:
    expected = f"--upload-time: is {text!r}; expected a date since 1970, such as 2026-01-31 or 2026-01-31T12:00:00Z"
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        parse_time(text)


@given(st.integers(0, 253402300799 * 10**6))
def test_what_is_rendered_is_read_again(microseconds: int) -> None:
    assert parse_time(render_time(microseconds)) == microseconds


@given(st.integers())
def test_any_number_is_rendered(microseconds: int) -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", render_time(microseconds))


@given(st.none() | st.integers(), st.integers(), st.integers(0, 2**60))
def test_no_time_is_in_the_future_unless_it_was_given(earlier: int | None, changed: int, now: int) -> None:
    assert 0 <= UploadTimes(now).choose(earlier if earlier is None or earlier >= 0 else None, changed) <= now
    assert UploadTimes(now, now + 1).choose(None, changed) == now + 1


UPLOAD_TIMES_PAGE = (
    b'{"files": [{"filename": "a.whl", "hashes": {"sha256": "ab"}, "upload-time": "2026-05-01T00:00:00Z"}]}'
)


@given(st.binary(max_size=60) | damaged([UPLOAD_TIMES_PAGE]))
def test_any_page_gives_times_or_none(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        (Path(folder) / "index.json").write_bytes(data)
        assert all(isinstance(one, int) for one in read_times(Path(folder)).values())


METADATA = b"Metadata-Version: 2.4\n"
METADATA_HASH = hashlib.sha256(METADATA).hexdigest()


def make_distribution(
    filename: str = "rocm_sdk_core-7.0+x-py3-none-any.whl",
    project: str = "rocm-sdk-core",
    version: str = "7.0+x",
    requires_python: str | None = ">=3.9,<4",
    metadata: bytes | None = METADATA,
) -> IndexEntry:
    return IndexEntry(
        filename=filename,
        project=project,
        version=version,
        identity=filename,
        size=12,
        sha256="ab" * 32,
        requires_python=requires_python,
        metadata_sha256=hashlib.sha256(metadata).hexdigest() if metadata is not None else None,
        upload_time=1_767_225_600_000_000,
    )


def test_the_root_page_lists_the_projects_by_name() -> None:
    page = make_root_page(["rocm-sdk-core", "rocm"])
    assert page.html.decode() == (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="pypi:repository-version" content="1.1">\n<meta name="generator" content="rocwheel index">\n'
        "<title>Simple index</title>\n</head>\n<body>\n"
        '<a href="rocm/">rocm</a><br>\n<a href="rocm-sdk-core/">rocm-sdk-core</a><br>\n'
        "</body>\n</html>\n"
    )
    assert json.loads(page.json) == {
        "meta": {"api-version": "1.1"},
        "projects": [{"name": "rocm"}, {"name": "rocm-sdk-core"}],
    }


def test_a_project_page_gives_hash_python_and_metadata_of_each_file() -> None:
    page = make_project_page("rocm-sdk-core", [make_distribution()], "../../dist/")
    anchor = (
        f'<a href="../../dist/rocm_sdk_core-7.0%2Bx-py3-none-any.whl#sha256={"ab" * 32}" '
        f'data-requires-python="&gt;=3.9,&lt;4" data-dist-info-metadata="sha256={METADATA_HASH}" '
        f'data-core-metadata="sha256={METADATA_HASH}" data-upload-time="2026-01-01T00:00:00.000000Z">'
        "rocm_sdk_core-7.0+x-py3-none-any.whl</a><br>"
    )
    assert anchor in page.html.decode().splitlines()
    assert json.loads(page.json) == {
        "meta": {"api-version": "1.1"},
        "name": "rocm-sdk-core",
        "versions": ["7.0+x"],
        "files": [
            {
                "filename": "rocm_sdk_core-7.0+x-py3-none-any.whl",
                "url": "../../dist/rocm_sdk_core-7.0%2Bx-py3-none-any.whl",
                "hashes": {"sha256": "ab" * 32},
                "size": 12,
                "upload-time": "2026-01-01T00:00:00.000000Z",
                "requires-python": ">=3.9,<4",
                "core-metadata": {"sha256": METADATA_HASH},
            }
        ],
    }


def test_a_file_without_metadata_and_python_has_only_its_hash() -> None:
    found = make_distribution("rocm-7.0.tar.gz", "rocm", "7.0", requires_python=None, metadata=None)
    page = make_project_page("rocm", [found], "")
    anchor = (
        f'<a href="rocm-7.0.tar.gz#sha256={"ab" * 32}" data-upload-time="2026-01-01T00:00:00.000000Z">'
        "rocm-7.0.tar.gz</a><br>"
    )
    assert anchor in page.html.decode().splitlines()
    assert set(json.loads(page.json)["files"][0]) == {"filename", "url", "hashes", "size", "upload-time"}


def test_a_folder_of_any_name_is_quoted_in_links() -> None:
    page = make_project_page("rocm-sdk-core", [make_distribution()], "../../my 'dist' ü&/")
    assert b'href="../../my%20%27dist%27%20%C3%BC%26/rocm_sdk_core-' in page.html


def test_versions_are_in_the_order_of_versions_not_of_letters() -> None:
    versions = ["7.10", "7.9", "7.9rc1", "10.0"]
    found = [make_distribution(f"rocm-{version}.tar.gz", "rocm", version) for version in versions]
    grouped = group_by_project(found)["rocm"]
    assert [item.version for item in grouped] == ["7.9rc1", "7.9", "7.10", "10.0"]
    assert json.loads(make_project_page("rocm", grouped, "").json)["versions"] == ["7.9rc1", "7.9", "7.10", "10.0"]


def test_the_page_of_all_leads_to_families_by_buttons_which_installers_pass_over() -> None:
    page = make_root_page(["rocm"], has_front_page=True, families=["gfx94X", '<b>"\u00e4 %'])
    lines = page.html.decode().splitlines()
    assert '<form action="gfx94X/packages.html"><button>Packages for gfx94X</button></form>' in lines
    button = "<button>Packages for &lt;b&gt;&quot;\u00e4 %</button>"
    assert f'<form action="%3Cb%3E%22%C3%A4%20%25/packages.html">{button}</form>' in lines
    assert [line for line in lines if "<a " in line] == ['<a href="rocm/">rocm</a><br>']
    assert page.json == make_root_page(["rocm"]).json
    assert '<form action="gfx94X/">' in make_root_page([], families=["gfx94X"]).html.decode()
