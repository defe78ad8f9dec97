"""Web servers as they are: nginx, and Python's, which sends whole files only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.stores.open import open_store
from rocwheel.stores.store import (
    BrokenTransferError,
    ForbiddenError,
    MissingFileError,
    RangesIgnoredError,
    UnlistableError,
)
from rocwheel.stores.web import read_page
from tests.support.faulty_server import Answer
from tests.support.loopback import served
from tests.support.reply_server import Reply
from tests.support.web_servers import needs_nginx, nginx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.faulty_server import FaultyServer
    from tests.support.reply_server import Server

NAMES = ["a b&c.txt", "a/b/deep.whl", "a/x+1.whl", "z.whl", "ü.txt"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        path = tmp_path / "www" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path / "www"


@pytest.fixture(params=["python", pytest.param("nginx", marks=needs_nginx)])
def address(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> Iterator[str]:
    server = served(folder) if request.param == "python" else nginx(tmp_path / "work", root=folder)
    with server as url:
        yield url


def test_the_pages_of_folders_list_their_files(address: str) -> None:
    assert [file.name for file in open_store(address).list()] == NAMES
    assert [file.name for file in open_store(f"{address}/a/").list()] == ["b/deep.whl", "x+1.whl"]
    assert [file.name for file in open_store(address).list("a/b")] == ["a/b/deep.whl"]


def test_files_are_read_by_their_listed_names(address: str) -> None:
    store = open_store(address)
    for name in NAMES:
        assert store.read(name) == name.encode()
        assert b"".join(store.stream(name)) == name.encode()
        assert store.head(name).size == len(name.encode())


def test_a_stream_begins_anywhere_even_without_ranges(address: str) -> None:
    assert b"".join(open_store(address).stream("a/b/deep.whl", 4)) == b"deep.whl"


def test_ranges_are_read_where_the_server_has_them(folder: Path, tmp_path: Path) -> None:
    with served(folder) as address, pytest.raises(RangesIgnoredError, match="whl: the server sends whole files only"):
        open_store(address).read_range("z.whl", 1, 3)


@needs_nginx
def test_nginx_has_ranges(folder: Path, tmp_path: Path) -> None:
    with nginx(tmp_path / "work", root=folder) as address:
        store = open_store(address)
        assert (store.read_range("z.whl", 1, 3), store.read_range("z.whl", 3, 99)) == (b".w", b"hl")


def test_what_is_not_there_is_named(address: str) -> None:
    store = open_store(address)
    with pytest.raises(MissingFileError, match="no: is not there"):
        store.read("no")
    with pytest.raises(UnlistableError, match="no/: can't be listed: it is not there"):
        list(store.list("no"))


def test_what_is_no_page_of_links_is_named(faulty: FaultyServer) -> None:
    faulty.files["/"] = b"plain"
    with pytest.raises(UnlistableError, match="can't be listed"):
        list(open_store(faulty.address).list())


def test_nothing_is_written_to_a_web_server(address: str) -> None:
    store = open_store(address)
    writes: list[Callable[[], object]] = [
        lambda: store.put("x", b"1"),
        lambda: store.swap("x", b"1", None),
        lambda: store.delete("z.whl"),
    ]
    for write in writes:
        with pytest.raises(ForbiddenError, match="web servers are only read"):
            write()


def test_links_that_lead_elsewhere_are_passed_over(folder: Path) -> None:
    links = ["https://elsewhere.example/y", "//elsewhere.example/y", "?C=N", "#top", "", "http://[", "a%2F..%2Fz"]
    page = "".join(f'<a href="{link}">x</a>' for link in [*links, "z.whl", "./z.whl", "z.whl#sha256=1"])
    (folder / "index.html").write_text(f"<![ {page}")
    with served(folder) as address:
        assert list(open_store(address).list()) == []
    page += '<a href="../above">x</a>'
    (folder / "a/index.html").write_text(page)
    with served(folder) as address:
        assert [file.name for file in open_store(f"{address}/a").list()] == ["z.whl"]


def test_folders_without_end_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "b/c/d").mkdir(parents=True)
    monkeypatch.setattr("rocwheel.stores.web._MOST_PAGES", 3)
    with served(folder) as address, pytest.raises(InputError, match="has more than 3 folders"):
        list(open_store(address).list())


def test_a_page_that_ends_early_is_asked_for_again(faulty: FaultyServer) -> None:
    faulty.files["/x"] = b"0123456789"
    faulty.first.append(Answer(cut_at=4))
    assert read_page(f"{faulty.address}/x").data == b"0123456789"
    faulty.always = Answer(cut_at=4)
    with pytest.raises(BrokenTransferError):
        read_page(f"{faulty.address}/x")


def test_a_password_goes_with_every_request_and_to_no_other_server(faulty: FaultyServer, server: Server) -> None:
    server.add("/a/x", Reply(b"content"))
    store = open_store(server.address.replace("//", "//me:s%40cret@") + "/a")
    store.head("x")
    list(store.stream("x"))
    assert {headers.get("authorization") for _, headers in server.requests} == {"Basic bWU6c0BjcmV0"}
    faulty.files["/x"] = b"content"
    server.add("/a/x", Reply(status=302, Location=f"{faulty.address}/x"))
    assert b"".join(store.stream("x")) == b"content"
    assert [headers.get("Authorization") for headers in faulty.headers] == [None]
