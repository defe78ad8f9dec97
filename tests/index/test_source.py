"""Tests of `rocwheel.index.source`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.index.source import IndexSource, stream_file
from tests.support.reply_server import JSON, Reply

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.reply_server import Server


A, B = "a" * 64, "b" * 64
NAME = "x-1.0-py3-none-any.whl"
HTML_PAGE = f'<a href="../../dist/{NAME}#sha256={A}">{NAME}</a><a href="notes.txt">n</a>'.encode()
JSON_PAGE = json.dumps(
    {"meta": {}, "files": [{"filename": NAME, "url": f"../../dist/{NAME}", "hashes": {"sha256": A}, "size": 4}]}
).encode()


@pytest.mark.parametrize(
    ("data", "kind"),
    [(HTML_PAGE, "text/html"), (HTML_PAGE, "application/vnd.pypi.simple.v1+html"), (JSON_PAGE, JSON),
     (JSON_PAGE, "application/json")],
    ids=["html", "new html", "json", "plain json"],
)  # fmt: skip
def test_index_pages_from_any_server_can_be_read(server: Server, data: bytes, kind: str) -> None:
    server.add("/simple/x/", Reply(data, kind))
    listing = IndexSource(f"{server.address}/simple").read_project("X")
    assert listing
    assert [(file.url, file.sha256) for file in listing.files] == [(f"{server.address}/dist/{NAME}", A)]
    assert JSON in server.requests[0][1]["accept"]


def test_relative_urls_are_resolved_against_the_redirected_url(server: Server) -> None:
    server.add("/simple/x/", Reply(status=301, Location="/mirror/deep/x/"))
    server.add("/mirror/deep/x/", Reply(HTML_PAGE))
    listing = IndexSource(f"{server.address}/simple/").read_project("x")
    assert listing
    assert [file.url for file in listing.files] == [f"{server.address}/mirror/dist/{NAME}"]


def test_other_files_are_ignored_and_untrustworthy_links_are_reported(server: Server) -> None:
    more = f'<a href="evil%2f{NAME}#sha256={A}">e</a><a href="y-1.tar.gz#sha256={A}">y</a><a href="{NAME}#sha256={B}">'
    server.add("/x/", Reply(HTML_PAGE + more.encode()))
    listing = IndexSource(server.address).read_project("x")
    assert listing
    assert [file.filename for file in listing.files] == [NAME]
    assert listing.ignored == ("notes.txt",)
    assert [str(problem).partition(": ")[2].partition(";")[0] for problem in listing.problems] == [
        f"lists 'evil/{NAME}' at '{server.address}/x/evil%2f{NAME}'",
        "lists 'y-1.tar.gz', which belongs to y",
        f"lists {NAME} twice with different hashes. Contact the publisher.",
    ]


def test_read_project_returns_none_for_a_project_without_a_page(server: Server) -> None:
    assert IndexSource(server.address).read_project("x") is None


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (b"{}", "image/png", "has the type 'image/png'; expected a page of a package index, in HTML or JSON"),
        (b"[1]", JSON, "is not a page of a package index"),
        (b'{"meta": {"api-version": "2.0"}}', JSON, "has version '2.0' of the index format"),
    ],
    ids=["type", "text", "version"],
)
def test_pages_that_are_not_index_pages_are_errors(server: Server, data: bytes, kind: str, message: str) -> None:
    server.add("/x/", Reply(data, kind))
    with pytest.raises(InputError) as caught:
        IndexSource(server.address).read_project("x")
    assert str(caught.value).startswith(f"{server.address}/x/: {message}")


@pytest.mark.parametrize(("name", "data"), [("index.json", JSON_PAGE), ("index.html", HTML_PAGE)])
def test_an_index_in_a_folder_can_be_read_by_its_file_url(tmp_path: Path, name: str, data: bytes) -> None:
    folder = tmp_path / "the index"
    (folder / "simple/x").mkdir(parents=True)
    (folder / "dist").mkdir()
    (folder / "simple/x" / name).write_bytes(data)
    (folder / "dist" / NAME).write_bytes(b"data")
    source = IndexSource((folder / "simple").as_uri())
    listing = source.read_project("x")
    assert listing
    (file,) = listing.files
    assert b"".join(stream_file(file, 1)) == b"ata"
    assert source.read_project("y") is None
    with pytest.raises(RocwheelError, match="does not contain a package index"):
        source.projects()


def test_text_that_is_not_a_url_is_refused() -> None:
    with pytest.raises(InputError, match=r"simple: is not a URL; expected http://, https://, file://, or s3://"):
        IndexSource("simple")
