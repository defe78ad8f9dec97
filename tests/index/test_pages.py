"""Tests of `rocwheel.index.pages`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.index.entry import IndexEntry
from rocwheel.index.pages import (
    group_by_project,
    is_as_made,
    is_sha256,
    make_project_page,
    make_root_page,
    read_times,
    with_digest,
)
from tests.support.damage import damaged


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("a0" * 32, True), ("A0" * 32, False), ("a0" * 31, False), ("a0" * 32 + "\n", False), ("g0" * 32, False)],
)
def test_a_sha256_is_64_lowercase_hexadecimal_digits(text: str, is_one: bool) -> None:
    assert is_sha256(text) is is_one


PAGE = b"<!DOCTYPE html>\n<html><!-- a --></html>\n"


def test_the_digest_is_a_comment_at_the_end_of_the_page() -> None:
    assert with_digest(PAGE) == PAGE + b"<!-- 950bfb27a5c910b1 -->\n"


@given(st.binary())
def test_a_page_with_its_digest_is_unedited(page: bytes) -> None:
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
def test_a_page_with_changed_bytes_is_edited(edited: bytes) -> None:
    assert not is_as_made(edited)


def test_a_complete_page_without_a_digest_counts_as_unedited() -> None:
    assert is_as_made(PAGE)


UPLOAD_TIMES_PAGE = (
    b'{"files": [{"filename": "a.whl", "hashes": {"sha256": "ab"}, "upload-time": "2026-05-01T00:00:00Z"}]}'
)


@given(st.binary(max_size=60) | damaged([UPLOAD_TIMES_PAGE]))
def test_any_bytes_are_read_for_upload_times_without_an_error(data: bytes) -> None:
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


def test_a_project_page_has_the_hash_python_and_metadata_of_each_file() -> None:
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


def test_a_file_without_metadata_and_requires_python_has_no_such_attributes() -> None:
    found = make_distribution("rocm-7.0.tar.gz", "rocm", "7.0", requires_python=None, metadata=None)
    page = make_project_page("rocm", [found], "")
    anchor = (
        f'<a href="rocm-7.0.tar.gz#sha256={"ab" * 32}" data-upload-time="2026-01-01T00:00:00.000000Z">'
        "rocm-7.0.tar.gz</a><br>"
    )
    assert anchor in page.html.decode().splitlines()
    assert set(json.loads(page.json)["files"][0]) == {"filename", "url", "hashes", "size", "upload-time"}


def test_special_characters_in_folder_names_are_quoted_in_links() -> None:
    page = make_project_page("rocm-sdk-core", [make_distribution()], "../../my 'dist' ü&/")
    assert b'href="../../my%20%27dist%27%20%C3%BC%26/rocm_sdk_core-' in page.html


def test_versions_are_sorted_as_versions_not_as_text() -> None:
    versions = ["7.10", "7.9", "7.9rc1", "10.0"]
    found = [make_distribution(f"rocm-{version}.tar.gz", "rocm", version) for version in versions]
    grouped = group_by_project(found)["rocm"]
    assert [item.version for item in grouped] == ["7.9rc1", "7.9", "7.10", "10.0"]
    assert json.loads(make_project_page("rocm", grouped, "").json)["versions"] == ["7.9rc1", "7.9", "7.10", "10.0"]


def test_the_root_page_links_to_families_with_buttons_that_installers_ignore() -> None:
    page = make_root_page(["rocm"], has_front_page=True, families=["gfx94X", '<b>"\u00e4 %'])
    lines = page.html.decode().splitlines()
    assert '<form action="gfx94X/packages.html"><button>Packages for gfx94X</button></form>' in lines
    button = "<button>Packages for &lt;b&gt;&quot;\u00e4 %</button>"
    assert f'<form action="%3Cb%3E%22%C3%A4%20%25/packages.html">{button}</form>' in lines
    assert [line for line in lines if "<a " in line] == ['<a href="rocm/">rocm</a><br>']
    assert page.json == make_root_page(["rocm"]).json
    assert '<form action="gfx94X/">' in make_root_page([], families=["gfx94X"]).html.decode()
