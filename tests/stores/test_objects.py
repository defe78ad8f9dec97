"""Stores behind obstore: S3, and web servers as they are: nginx, and Python's, which sends whole files only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from obstore.exceptions import GenericError

from rocwheel.core.errors import InputError
from rocwheel.stores.objects import read_endpoint, translated
from rocwheel.stores.open import open_store
from rocwheel.stores.store import (
    BrokenTransferError,
    BusyError,
    CredentialsError,
    ForbiddenError,
    MissingFileError,
    RangesIgnoredError,
    StoreError,
    UnlistableError,
)
from rocwheel.stores.web import read_web_page
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


def test_folder_pages_list_their_files(address: str) -> None:
    assert [file.name for file in open_store(address).list()] == NAMES
    assert [file.name for file in open_store(f"{address}/a/").list()] == ["b/deep.whl", "x+1.whl"]
    assert [file.name for file in open_store(address).list("a/b")] == ["a/b/deep.whl"]


def test_files_are_read_by_their_listed_names(address: str) -> None:
    store = open_store(address)
    for name in NAMES:
        assert store.read(name) == name.encode()
        assert b"".join(store.stream(name)) == name.encode()
        assert store.head(name).size == len(name.encode())


def test_a_stream_can_begin_at_any_offset_even_without_ranges(address: str) -> None:
    assert b"".join(open_store(address).stream("a/b/deep.whl", 4)) == b"deep.whl"


def test_ranges_are_read_if_the_server_supports_them(folder: Path, tmp_path: Path) -> None:
    with served(folder) as address, pytest.raises(RangesIgnoredError, match="whl: the server sends only whole files"):
        open_store(address).read_range("z.whl", 1, 3)


@needs_nginx
def test_nginx_supports_ranges(folder: Path, tmp_path: Path) -> None:
    with nginx(tmp_path / "work", root=folder) as address:
        store = open_store(address)
        assert (store.read_range("z.whl", 1, 3), store.read_range("z.whl", 3, 99)) == (b".w", b"hl")


def test_a_missing_file_is_named_in_the_error(address: str) -> None:
    store = open_store(address)
    with pytest.raises(MissingFileError, match="no: does not exist"):
        store.read("no")
    with pytest.raises(UnlistableError, match="no/: can't be listed: it does not exist"):
        list(store.list("no"))


def test_a_page_without_links_is_refused_by_name(faulty: FaultyServer) -> None:
    faulty.files["/"] = b"plain"
    with pytest.raises(UnlistableError, match="can't be listed"):
        list(open_store(faulty.address).list())


def test_a_host_that_no_server_can_have_is_refused_without_the_password() -> None:
    with pytest.raises(InputError) as caught:
        open_store("https://me:secret@xn--\u0430.invalid/x")
    assert str(caught.value) == "https://xn--\u0430.invalid/x: has an invalid host; expected https://HOST/PATH"


def test_nothing_is_written_to_a_web_server(address: str) -> None:
    store = open_store(address)
    writes: list[Callable[[], object]] = [
        lambda: store.put("x", b"1"),
        lambda: store.swap("x", b"1", None),
        lambda: store.delete("z.whl"),
    ]
    for write in writes:
        with pytest.raises(ForbiddenError, match="web servers are read-only"):
            write()


def test_links_that_point_elsewhere_are_skipped(folder: Path) -> None:
    links = ["https://elsewhere.example/y", "//elsewhere.example/y", "?C=N", "#top", "", "http://[", "a%2F..%2Fz"]
    page = "".join(f'<a href="{link}">x</a>' for link in [*links, "z.whl", "./z.whl", "z.whl#sha256=1"])
    (folder / "index.html").write_text(f"<![ {page}")
    with served(folder) as address:
        assert list(open_store(address).list()) == []
    page += '<a href="../above">x</a>'
    (folder / "a/index.html").write_text(page)
    with served(folder) as address:
        assert [file.name for file in open_store(f"{address}/a").list()] == ["z.whl"]


def test_endlessly_nested_folders_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "b/c/d").mkdir(parents=True)
    monkeypatch.setattr("rocwheel.stores.web._MOST_PAGES", 3)
    with served(folder) as address, pytest.raises(InputError, match="has more than 3 folders"):
        list(open_store(address).list())


def test_an_incomplete_page_is_requested_again(faulty: FaultyServer) -> None:
    faulty.files["/x"] = b"0123456789"
    faulty.first.append(Answer(cut_at=4))
    assert read_web_page(f"{faulty.address}/x").data == b"0123456789"
    faulty.always = Answer(cut_at=4)
    with pytest.raises(BrokenTransferError):
        read_web_page(f"{faulty.address}/x")


def test_a_password_is_sent_with_every_request_but_never_to_another_server(
    faulty: FaultyServer, server: Server
) -> None:
    server.add("/a/x", Reply(b"content"))
    store = open_store(server.address.replace("//", "//me:s%40cret@") + "/a")
    store.head("x")
    list(store.stream("x"))
    assert {headers.get("authorization") for _, headers in server.requests} == {"Basic bWU6c0BjcmV0"}
    faulty.files["/x"] = b"content"
    server.add("/a/x", Reply(status=302, Location=f"{faulty.address}/x"))
    assert b"".join(store.stream("x")) == b"content"
    assert [headers.get("Authorization") for headers in faulty.headers] == [None]


@pytest.mark.parametrize(
    ("environ", "endpoint"),
    [
        ({}, ""),
        ({"AWS_ENDPOINT_URL": "https://s3.example.org"}, "https://s3.example.org"),
        ({"AWS_ENDPOINT_URL": "http://h:1", "AWS_ALLOW_HTTP": "true"}, "http://h:1"),
        ({"AWS_ENDPOINT_URL_S3": "https://a", "AWS_ENDPOINT_URL": "garbage"}, "https://a"),
        ({"AWS_ENDPOINT": "https://a:9000/minio"}, "https://a:9000/minio"),
    ],
)
def test_the_endpoint_is_read_from_the_environment(environ: dict[str, str], endpoint: str) -> None:
    assert read_endpoint(environ) == endpoint


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"])
@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "is set but empty; expected https://HOST or http://HOST:PORT. For Amazon's service, unset it."),
        ("127.0.0.1:15055", "contains text, which is not a plain server URL; expected https://HOST"),
        ("user:word@garbage", "contains text, which is not a plain server URL"),
        ("ftp://x", "contains ftp://x, which is not a plain server URL"),
        ("https://", "which has no host"),
        (" http://h", "which is not a plain server URL"),
        ("http://h ", "contains a space or control character"),
        ("http://h:99999", "contains http://h:99999, which is not a URL (Port out of range 0-65535)"),
        ("https://user:word@h", "contains https://h, which is not a plain server URL"),
        ("https://h/x?y=1", "contains https://h/x, which is not a plain server URL"),
        (
            "http://h:1",
            "contains http://h:1, which doesn't use encryption; expected https://. To allow that, set ",
        ),
    ],
)
def test_an_invalid_endpoint_is_refused(variable: str, url: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_endpoint({variable: url})
    assert str(caught.value).startswith(f"{variable}: ")
    assert message in str(caught.value)
    assert "word" not in str(caught.value)


URL = "https://me:secret@host/a/x.whl?X-Signature=secret"
ANSWER = f"Generic HTTP error: Error performing GET {URL} in 1ms - HTTP error: something new"


@pytest.mark.parametrize("reads", [False, True])
def test_unknown_errors_are_shown_without_passwords(*, reads: bool) -> None:
    said = str(translated("https://host/a/x.whl", GenericError(ANSWER), reads=reads))
    assert "Error performing GET https://host/a/x.whl in 1ms - HTTP error: something new" in said
    assert "secret" not in said


@pytest.mark.parametrize(
    ("place", "remedy"),
    [
        ("https://host/x", "Add a user and password to the URL: https://USER:PASSWORD@HOST/..."),
        ("s3://bucket/x", "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN."),
    ],
)
def test_credential_errors_say_which_credentials_are_needed(place: str, remedy: str) -> None:
    error = translated(place, GenericError("Server returned error status code: 401"))
    assert (type(error), error.remedy) == (CredentialsError, remedy)


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("HTTP error: error following redirect", StoreError, "has endless or broken redirects"),
        (
            "error sending request\n\nDebug source:\n kind: Timeout",
            BrokenTransferError,
            "the request timed out",
        ),
    ],
)
def test_web_server_errors_are_explained(text: str, kind: type[StoreError], found: str) -> None:
    error = translated("https://host/x", GenericError(text))
    assert (type(error), error.found) == (kind, found)
    assert error.remedy


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("in 61.25s, after 5 retries, max_retries: 5 - status code: 503", "status 503, after 6 attempts in 61.2 s"),
        ("in 99.9ms, after 1 retries, max_retries: 5 - status code: 503", "status 503, after 2 attempts in 0.1 s"),
        ("in 1.5ms - status code: 503", "status 503"),
    ],
)
def test_errors_after_retries_give_the_number_of_attempts_and_the_time(text: str, found: str) -> None:
    error = translated("s3://bucket/x", GenericError(f"Error performing GET x {text}"))
    assert (type(error), error.found) == (BusyError, f"the server returned {found}")


def test_a_url_with_a_user_gets_a_request_to_correct_it() -> None:
    error = translated("https://host/x", GenericError("status code: 401"), has_user=True)
    assert error.remedy == "Correct the user and password in the URL."


@pytest.mark.parametrize(
    ("place", "remedy"),
    [("https://host/x", "Correct the URL."), ("s3://bucket/x", "Correct the URL, or AWS_ENDPOINT_URL.")],
)
def test_s3_variables_are_not_mentioned_for_web_servers(place: str, remedy: str) -> None:
    assert translated(place, GenericError("Connection refused")).remedy == remedy
