"""Web servers: their pages, files and listings, good ones and others, and where they may lead."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from email.message import Message
from itertools import chain, count, repeat
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.stores import web
from rocwheel.stores.open import open_store
from rocwheel.stores.store import (
    BrokenTransferError,
    BusyError,
    CredentialsError,
    ForbiddenError,
    MissingFileError,
    MissingStoreError,
    OutdatedError,
    StoreError,
    checked_name,
)
from rocwheel.stores.web import WebPage, _refusal, check_step, read_retry_after, read_web_page, stream_web_file
from tests.support.reply_server import Reply

if TYPE_CHECKING:
    from rocwheel.stores.store import Store
    from tests.support.reply_server import Server, Start

pytestmark = pytest.mark.usefixtures("impatient")

DATA = bytes(range(256)) * 20_000


def cut(data: bytes, at: int) -> Reply:
    reply = Reply(data)
    reply.cut_at = at
    return reply


def test_a_page_has_its_content_type_and_address(server: Server) -> None:
    url = server.add("/x/", Reply(b"page", "Text/HTML; charset=utf-8"))
    answer = read_web_page(url, accept="text/html", limit=100)
    assert (answer.url, answer.content_type, answer.data) == (url, "text/html", b"page")
    assert server.requests[0][1]["accept"] == "text/html"


def test_a_redirect_is_followed_and_its_final_url_is_known(server: Server, start_server: Start) -> None:
    other = start_server().add  # another port is another host
    end = other("/there/", Reply(b"page"))
    assert read_web_page(server.add("/x/", Reply(status=302, Location=end)), limit=100).url == end


@pytest.mark.parametrize("where", ["file:///etc/passwd", "ftp://host/x", "http://u:p@other/"])
def test_a_redirect_to_a_forbidden_url_is_not_followed(server: Server, where: str) -> None:
    url = server.add("/x/", Reply(status=302, Location=where))
    with pytest.raises((InputError, StoreError)) as caught:
        read_web_page(url, limit=100)
    assert str(caught.value).startswith(url)


def test_a_redirect_loop_ends(server: Server) -> None:
    url = server.add("/x/", Reply(status=302, Location=f"{server.address}/x/"))
    with pytest.raises(StoreError, match="302"):
        read_web_page(url, limit=100)
    assert len(server.requests) < 12


def test_a_password_is_sent_only_to_its_own_host_and_shown_in_no_message(server: Server, start_server: Start) -> None:
    other = start_server()
    end = other.add("/y/", Reply(b"page"))
    server.add("/x/", Reply(status=302, Location=end))
    read_web_page(server.address.replace("//", "//me:s%40cret@") + "/x/", limit=100)
    assert server.requests[0][1]["authorization"] == "Basic bWU6c0BjcmV0"
    assert "authorization" not in other.requests[0][1]
    with pytest.raises(MissingFileError) as caught:
        read_web_page(server.address.replace("//", "//me:s%40cret@") + "/none/", limit=100)
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (404, MissingFileError),
        (410, MissingFileError),
        (401, CredentialsError),
        (403, ForbiddenError),
        (418, StoreError),
    ],
)
def test_client_errors_are_reported_without_a_retry(server: Server, status: int, kind: type[StoreError]) -> None:
    with pytest.raises(kind, match=re.escape(server.address)):
        read_web_page(server.add("/x/", Reply(status=status)), limit=100)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_retried(server: Server, status: int) -> None:
    url = server.add("/x/", Reply(status=status), Reply(status=status), Reply(b"page"))
    assert read_web_page(url, limit=100).data == b"page"
    server.add("/y/", Reply(status=status))
    with pytest.raises(BusyError, match=f"the server returned status {status}"):
        read_web_page(f"{server.address}/y/", limit=100)


def test_an_incomplete_page_is_read_again(server: Server) -> None:
    assert read_web_page(server.add("/x/", cut(b"page", 2), Reply(b"page")), limit=100).data == b"page"


def test_a_huge_page_is_not_read_to_the_end(server: Server) -> None:
    with pytest.raises(InputError, match="has more than 100 bytes"):
        read_web_page(server.add("/x/", Reply(DATA)), limit=100)


def test_compressed_responses_that_were_not_requested_are_refused(server: Server) -> None:
    with pytest.raises(StoreError, match="is compressed, even though compression was not requested"):
        read_web_page(server.add("/x/", Reply(b"\x1f\x8b", Content_Encoding="gzip")), limit=100)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/x/", "http://host.invalid/x/", "http://127.0.0.1:99999/"])
def test_an_unreachable_server_is_named(url: str) -> None:
    with pytest.raises(MissingStoreError, match=re.escape(url)):
        read_web_page(url, limit=100)


def test_a_file_streams_from_any_offset(server: Server) -> None:
    url = server.add("/f", Reply(DATA))
    assert b"".join(stream_web_file(url)) == DATA
    assert b"".join(stream_web_file(url, 5000)) == DATA[5000:]


def test_a_server_without_ranges_still_streams_from_an_offset(server: Server) -> None:
    reply = Reply(DATA)
    reply.takes_ranges = False
    assert b"".join(stream_web_file(server.add("/f", reply), 3_000_000)) == DATA[3_000_000:]


def test_an_interrupted_file_is_resumed(server: Server) -> None:
    url = server.add("/f", cut(DATA, 2_000_000), cut(DATA, 1_500_000), Reply(DATA))
    assert b"".join(stream_web_file(url)) == DATA
    assert [headers.get("range") for _, headers in server.requests] == [None, "bytes=2000000-", "bytes=3500000-"]


def test_a_file_that_always_ends_early_is_abandoned(server: Server) -> None:
    with pytest.raises(BrokenTransferError, match="the transfer ended early"):
        b"".join(stream_web_file(server.add("/f", cut(DATA, 0))))


def test_a_redirect_to_the_same_server_keeps_the_password(server: Server) -> None:
    server.add("/x", Reply(status=301, Location="/x/"))
    server.add("/x/", Reply(b"page"))
    page = read_web_page(server.address.replace("//", "//me:secret@") + "/x")
    assert page.url == server.address.replace("//", "//me:secret@") + "/x/"
    assert [headers["authorization"] for _, headers in server.requests] == ["Basic bWU6c2VjcmV0"] * 2


def test_a_server_determines_how_long_to_wait(server: Server, impatient: list[float]) -> None:
    url = server.add("/x/", Reply(status=429, Retry_After="30"), Reply(status=503, Retry_After="x"), Reply(b"page"))
    assert read_web_page(url).data == b"page"
    assert impatient[0] == 30
    assert impatient[1] < 1


def test_a_server_that_asks_for_a_long_wait_is_not_retried(server: Server) -> None:
    with pytest.raises(BusyError, match="status 503"):
        read_web_page(server.add("/x/", Reply(status=503, Retry_After="3600")))
    assert len(server.requests) == 1


def test_a_file_changed_during_the_transfer_is_not_mixed(server: Server) -> None:
    first = cut(DATA, 2_000_000)
    first.headers["ETag"] = '"1"'
    with pytest.raises(OutdatedError, match=r"/f: was changed by another process in the meantime\. Try again\."):
        b"".join(stream_web_file(server.add("/f", first, Reply(DATA, ETag='"2"'))))


def test_a_very_slow_transfer_is_abandoned(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocwheel.stores.web._SPAN", 0.0)
    monkeypatch.setattr("rocwheel.stores.web.SLOWEST", 2 << 20)
    with pytest.raises(BrokenTransferError, match="was too slow to finish"):
        b"".join(stream_web_file(server.add("/f", Reply(DATA))))


def test_a_redirect_loop_is_reported_with_a_remedy(server: Server) -> None:
    url = server.add("/x/", Reply(bytes(1000), status=302, Location="/x/"))
    with pytest.raises(StoreError, match=r"has endless or broken redirects \(status 302\)\. Specify the URL"):
        read_web_page(url)


BASE = "https://host/a"
WORDS = st.sampled_from(
    ["<a ", "href=", '"', "'", ">", "</a>", "<!", "<![", "&#x0;", "../", "./", "/", "%2f", "%2e%2e", "%00", "%", "//",
     "https://host/a/", "https://host/ab", "//host/a/", "http://[", "?C=N", "#top", "\0", "é", "\n", "x.whl", "a/", ":"]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, max_size=30).map("".join) | st.binary(max_size=200).map(lambda data: data.decode("latin-1")))
@example('<a href="%00x">')
@example('<a href="b//c">')
@example('<a href="%2e%2e%2fx">')
def test_any_page_of_links_lists_only_files_below_it(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    page = WebPage(f"{BASE}/", "text/html", text.encode(errors="replace"))
    empty = WebPage(f"{BASE}/", "text/html", b"")
    monkeypatch.setattr(web, "read_web_page", lambda url: page if url == f"{BASE}/" else empty)
    for file in web.list_pages(BASE, ""):
        assert checked_name(BASE, file.name) == file.name


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text() | st.integers().map(str) | st.datetimes().map(lambda day: day.strftime("%a, %d %b %Y %H:%M:%S GMT")))
@example("9" * 10_000)
@example("Thu, 01 Jan 99999 00:00:00 GMT")
def test_any_retry_after_header_gives_a_nonnegative_wait(text: str) -> None:
    assert read_retry_after(text, now=0.0) >= 0


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("https://host/x", "Add a user and password to the URL: https://USER:PASSWORD@HOST/..."),
        ("https://me:word@host/x", "Correct the user and password in the URL."),
    ],
)
def test_a_url_with_a_user_gets_a_request_to_correct_it(url: str, remedy: str) -> None:
    assert str(_refusal(url, 401, Message())) == f"https://host/x: the server returned status 401. {remedy}"


@pytest.mark.parametrize(
    ("header", "remedy"), [("900", "Try again in 900 seconds, as requested by the server."), ("", "Try again later.")]
)
def test_the_retry_time_given_by_a_server_is_quoted(header: str, remedy: str) -> None:
    headers = Message()
    headers["Retry-After"] = header
    assert _refusal("https://host/x", 503, headers).remedy == remedy


@pytest.mark.parametrize(
    ("origin", "url"),
    [
        ("http://a/x", "https://b/x"),
        ("http://a/x", "http://b/x"),
        ("file:///a/x", "file:///b/x"),
        ("s3://bucket/x", "s3://bucket/y"),
        ("s3://bucket/x", "https://b/x"),
    ],
)
def test_allowed_steps_pass(origin: str, url: str) -> None:
    check_step(origin, url)


@pytest.mark.parametrize(
    ("origin", "url"),
    [
        ("http://a/x", "file:///x"),
        ("s3://bucket/x", "s3://other/x"),
        ("https://a/x", "http://a/x"),
        ("http://a/x", "http:///x"),
        ("http://a/x", "http://a:port/x"),
    ],
)
def test_other_steps_are_refused(origin: str, url: str) -> None:
    with pytest.raises(InputError, match="points"):
        check_step(origin, url)


@pytest.mark.parametrize(
    "url", ["http://me:secret@b/x?sig=secret", "ftp://me:secret@b/x", "http://me:secret@[/?secret", "http://secret@b/"]
)
def test_the_message_for_a_refused_step_does_not_contain_its_password(url: str) -> None:
    with pytest.raises(InputError) as caught:
        check_step("https://me:secret@a/x?sig=secret", url)
    assert "secret" not in str(caught.value)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = b"%sTransfer-Encoding: chunked\r\n\r\n" % HEAD


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Return a function that makes a server send these bytes without end, a part at a time, and returns its URL."""
    monkeypatch.setattr("rocwheel.stores.web._SPAN", 0.3)
    with ExitStack() as stack:

        def start(parts: Callable[[], Iterator[bytes]], pause: float = 0.0) -> str:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            Thread(target=_serve, args=(listener, parts, pause), daemon=True).start()
            return f"http://127.0.0.1:{listener.getsockname()[1]}/x"

        yield start


Serve = Callable[..., str]


def _serve(listener: socket.socket, parts: Callable[[], Iterator[bytes]], pause: float) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.recv(65536)
                for part in parts():
                    connection.sendall(part)
                    Event().wait(pause)


def _slow_head() -> Iterator[bytes]:
    yield HEAD
    yield from (b"x" for _ in count())


@pytest.mark.parametrize(
    ("parts", "pause"),
    [
        pytest.param(_slow_head, 0.02, id="a header, byte by byte"),
        pytest.param(lambda: repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 100), 0.0, id="interim responses"),
        pytest.param(lambda: chain([CHUNKED, b"0\r\n"], repeat(b"x: y\r\n" * 100)), 0.0, id="trailers"),
        pytest.param(lambda: chain([CHUNKED], repeat(b"1\r\nx\r\n")), 0.02, id="chunks of a byte"),
        pytest.param(lambda: chain([CHUNKED], repeat(b"1;")), 0.02, id="a chunk's extension"),
        pytest.param(lambda: chain([HEAD, b"\r\n"], repeat(b"x")), 0.02, id="a body, byte by byte"),
    ],
)
def test_a_server_that_makes_no_progress_is_abandoned(
    serve: Serve, parts: Callable[[], Iterator[bytes]], pause: float
) -> None:
    begin = time.monotonic()
    with pytest.raises(BrokenTransferError, match=r"/x: was too slow to finish, after 5 attempts in .* s\. Try again"):
        read_web_page(serve(parts, pause))
    assert time.monotonic() - begin < 10


KNOWN = b"%sContent-Length: 1000000\r\nAccept-Ranges: bytes\r\n" % HEAD
PART = b"HTTP/1.1 206 P\r\nContent-Length: 1000\r\nContent-Range: bytes 0-999/1000000\r\n\r\n"


@pytest.mark.parametrize(
    ("parts", "ask"),
    [
        pytest.param(_slow_head, lambda store: store.head("x"), id="the head for a size"),
        pytest.param(_slow_head, lambda store: store.read_range("x", 0, 1000), id="the head of a range"),
        pytest.param(lambda: chain([PART], repeat(b"x")), lambda store: store.read_range("x", 0, 1000), id="a range"),
        pytest.param(_slow_head, lambda store: list(store.stream("x")), id="the head of a file"),
        pytest.param(lambda: chain([KNOWN, b"\r\n"], repeat(b"x")), lambda store: list(store.stream("x")), id="a file"),
        pytest.param(lambda: chain([HEAD, b"\r\n"], repeat(b"x")), lambda store: store.read("x"), id="a page"),
    ],
)
def test_a_folder_whose_server_makes_no_progress_is_given_up(
    serve: Serve, parts: Callable[[], Iterator[bytes]], ask: Callable[[Store], object]
) -> None:
    store = open_store(serve(parts, 0.02).removesuffix("/x"))
    begin = time.monotonic()
    with pytest.raises(BrokenTransferError, match="/x: was too slow to finish"):
        ask(store)
    assert time.monotonic() - begin < 10


def test_a_body_of_unknown_size_is_limited_like_a_page(serve: Serve) -> None:
    with pytest.raises(InputError, match="has more than 1000000 bytes"):
        read_web_page(serve(lambda: chain([HEAD, b"\r\n"], repeat(bytes(1000)))), limit=1_000_000)


def test_a_slow_reader_does_not_lose_the_connection(serve: Serve) -> None:
    pieces = stream_web_file(serve(lambda: chain([HEAD, b"\r\n"], repeat(bytes(1000), 500))))
    size = 0
    for piece in pieces:
        Event().wait(0 if size else 0.35)
        size += len(piece)
    assert size == 500_000
