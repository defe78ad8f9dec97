"""The pages of an index, to the byte."""

from __future__ import annotations

import hashlib
import json

from rocwheel.distributions.index.entries.entry import IndexEntry
from rocwheel.distributions.index.pages.simple_pages import group_by_project, make_project_page, make_root_page

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
