"""Stores that fail: tried again where that helps, and a clear error where it doesn't."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from rocwheel.stores import retry
from rocwheel.stores.open import open_file, open_store
from rocwheel.stores.retry import RETRIES
from rocwheel.stores.store import (
    BrokenTransferError,
    BusyError,
    ClockError,
    CredentialsError,
    ForbiddenError,
    MissingExtraError,
    MissingFileError,
    MissingStoreError,
    OutdatedError,
    StoreError,
)
from tests.support.faulty_server import Answer
from tests.support.s3_server import BUCKET

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocwheel.stores.store import Store
    from tests.support.faulty_server import FaultyServer
    from tests.support.s3_server import S3Server

DATA = bytes(range(256)) * 4096


def _web(server: FaultyServer) -> Store:
    return open_store(f"{server.address}/{BUCKET}")


def _bucket(server: FaultyServer) -> Store:
    return open_store(f"s3://{BUCKET}")


of_s3 = pytest.mark.parametrize("store", [_bucket], ids=["s3"], indirect=True)
of_web_servers = pytest.mark.parametrize("store", [_web], ids=["web"], indirect=True)


@pytest.fixture(params=[_web, _bucket], ids=["web", "s3"])
def store(request: pytest.FixtureRequest, faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> Store:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in {
        "AWS_ENDPOINT_URL": faulty.address,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(retry, "_FIRST", 0.001)
    short = timedelta(milliseconds=1)
    monkeypatch.setitem(RETRIES, "backoff", {"init_backoff": short, "max_backoff": short, "base": 2.0})
    faulty.files[f"/{BUCKET}/x"] = DATA
    make: Callable[[FaultyServer], Store] = request.param
    return make(faulty)


ASKS: dict[str, Callable[[Store], bytes]] = {
    "read": lambda store: store.read("x"),
    "stream": lambda store: b"".join(store.stream("x")),
    "range": lambda store: store.read_range("x", 0, len(DATA)),
}


@pytest.mark.parametrize("ask", ASKS)
def test_an_overloaded_store_is_retried(store: Store, faulty: FaultyServer, ask: str) -> None:
    faulty.first.extend([Answer(503, "SlowDown"), Answer(503, "SlowDown")])
    assert ASKS[ask](store) == DATA
    assert len(faulty.requests) == 3


@of_s3
@pytest.mark.parametrize("ask", ASKS)
def test_a_busy_bucket_is_tried_six_times(store: Store, faulty: FaultyServer, ask: str) -> None:
    faulty.always = Answer(503, "SlowDown")
    with pytest.raises(BusyError, match=r"x: the store is overloaded, after 6 attempts in "):
        ASKS[ask](store)
    assert len(faulty.requests) == 6


@of_web_servers
@pytest.mark.parametrize(("ask", "attempts"), [("read", 5), ("stream", 6), ("range", 6)])
def test_a_busy_web_server_is_retried_in_a_single_series(
    store: Store, faulty: FaultyServer, ask: str, attempts: int
) -> None:
    faulty.always = Answer(503)
    with pytest.raises(BusyError, match=f"the server returned status 503, after {attempts} attempts in "):
        ASKS[ask](store)
    assert len(faulty.requests) == attempts


@pytest.mark.parametrize("ask", ASKS)
def test_an_interrupted_transfer_is_resumed(store: Store, faulty: FaultyServer, ask: str) -> None:
    faulty.first.append(Answer(cut_at=400_000))
    assert ASKS[ask](store) == DATA


@of_s3
def test_a_put_is_retried(store: Store, faulty: FaultyServer) -> None:
    faulty.first.extend([Answer(503, "SlowDown"), Answer(500, "InternalError")])
    store.put("y", b"content")
    assert faulty.files[f"/{BUCKET}/y"] == b"content"


@of_s3
def test_a_service_that_ignores_conditions_is_refused(store: Store, faulty: FaultyServer) -> None:
    faulty.has_conditions = False
    message = "replaces files even if a condition forbids it, so publishers could overwrite each other's work"
    with pytest.raises(StoreError, match=message):
        store.put("y", b"content")
    with pytest.raises(StoreError, match=message):
        store.swap("y", b"content", None)
    assert [*faulty.files] == [f"/{BUCKET}/x"]


@of_s3
def test_a_service_is_checked_once_for_conditional_writes(store: Store, faulty: FaultyServer) -> None:
    store.put("y", b"content")
    asked = len(faulty.requests)
    store.put("z", b"content")
    assert (asked, len(faulty.requests), [*faulty.files]) == (4, 5, [f"/{BUCKET}/{name}" for name in "xyz"])


def test_a_transfer_that_always_ends_early_is_reported(store: Store, faulty: FaultyServer) -> None:
    faulty.always = Answer(cut_at=0)
    with pytest.raises(BrokenTransferError) as caught:
        list(store.stream("x"))
    assert str(caught.value.source).endswith("/x")


ANSWERS: list[tuple[Answer, type[StoreError], str]] = [
    (Answer(403, "InvalidAccessKeyId"), CredentialsError, "does not recognize the access key"),
    (Answer(403, "SignatureDoesNotMatch"), CredentialsError, "rejects the secret key"),
    (Answer(400, "ExpiredToken"), CredentialsError, "has expired"),
    (
        Answer(403, "RequestTimeTooSkewed"),
        ClockError,
        "the store's clock differs from this machine's clock by more than 15 minutes",
    ),
    (Answer(403, "AccessDenied"), ForbiddenError, "permission denied"),
    (Answer(404, "NoSuchBucket"), MissingStoreError, "the bucket does not exist"),
    (Answer(404, "NoSuchKey"), MissingFileError, "does not exist"),
]


@of_s3
@pytest.mark.parametrize(("answer", "kind", "text"), ANSWERS)
def test_s3_error_codes_are_distinguished(
    store: Store, faulty: FaultyServer, answer: Answer, kind: type[StoreError], text: str
) -> None:
    faulty.always = answer
    for ask in ASKS.values():
        with pytest.raises(kind, match=text):
            ask(store)
    with pytest.raises(kind, match=text):
        store.put("y", b"1")


@of_web_servers
@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, CredentialsError), (403, ForbiddenError), (404, MissingFileError), (410, MissingFileError)],
)
def test_web_server_statuses_are_distinguished(
    store: Store, faulty: FaultyServer, status: int, kind: type[StoreError]
) -> None:
    faulty.always = Answer(status)
    for ask in ASKS.values():
        with pytest.raises(kind):
            ask(store)


def test_a_file_replaced_during_a_read_is_not_mixed(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"s3://{BUCKET}")
    data = os.urandom(20 << 20)
    store.put("x", data)
    pieces = store.stream("x")
    next(pieces)
    store.put("x", bytes(20 << 20), create=False)
    try:
        rest = b"".join(pieces)
    except OutdatedError:
        return
    assert data.endswith(rest)


LARGE = 20 << 20
OTHERS = {
    "another tag": ({"ETag": '"1"'}, {"ETag": '"2"'}, LARGE),
    "a weak tag": ({"ETag": 'W/"1"'}, {"ETag": 'W/"2"'}, LARGE),
    "another date": (
        {"Last-Modified": "Sun, 22 Nov 2026 10:00:00 GMT"},
        {"Last-Modified": "Sun, 22 Nov 2026 10:00:01 GMT"},
        LARGE,
    ),
    "another size": ({}, {}, LARGE - 1),
}


@of_web_servers
@pytest.mark.parametrize("has_ranges", [True, False])
@pytest.mark.parametrize(("before", "after", "size"), OTHERS.values(), ids=OTHERS)
def test_a_stream_never_continues_with_the_rest_of_another_file(
    store: Store, faulty: FaultyServer, before: dict[str, str], after: dict[str, str], size: int, *, has_ranges: bool
) -> None:
    faulty.has_ranges, faulty.identity = has_ranges, before
    faulty.files[f"/{BUCKET}/x"] = b"A" * LARGE
    faulty.first.append(Answer(cut_at=12 << 20))
    pieces = store.stream("x")
    assert next(pieces)[:1] == b"A"
    faulty.identity = after
    faulty.files[f"/{BUCKET}/x"] = b"B" * size
    with pytest.raises(OutdatedError, match="x: was changed by another process"):
        list(pieces)


@of_web_servers
@pytest.mark.parametrize("has_ranges", [True, False])
@pytest.mark.parametrize("start", [0, 1000])
def test_a_file_replaced_before_its_first_byte_is_reported(
    store: Store, faulty: FaultyServer, start: int, *, has_ranges: bool
) -> None:
    faulty.has_ranges, faulty.identity = has_ranges, {"ETag": '"1"'}
    seen = store.head("x")
    assert b"".join(store.stream("x", start, e_tag=seen.e_tag)) == DATA[start:]
    faulty.identity = {"ETag": '"2"'}
    with pytest.raises(OutdatedError, match="x: was changed by another process"):
        list(store.stream("x", start, e_tag=seen.e_tag))


@of_web_servers
@pytest.mark.parametrize("has_ranges", [True, False])
def test_a_transfer_without_tag_and_date_is_resumed(store: Store, faulty: FaultyServer, *, has_ranges: bool) -> None:
    faulty.has_ranges, faulty.identity = has_ranges, {}
    data = os.urandom(LARGE)
    faulty.files[f"/{BUCKET}/x"] = data
    faulty.first.extend([Answer(cut_at=12 << 20), Answer(cut_at=12 << 20), Answer(cut_at=18 << 20)])
    assert b"".join(store.stream("x")) == data


@pytest.mark.slow
def test_a_missing_bucket_is_named(s3: S3Server) -> None:
    with pytest.raises(MissingStoreError, match="s3://no-such-bucket/x: the bucket does not exist"):
        open_store("s3://no-such-bucket").read("x")


def test_an_unreachable_server_is_named() -> None:
    with pytest.raises(
        MissingStoreError,
        match=r"http://127\.0\.0\.1:9/x: can't connect to the server",
    ):
        open_store("http://127.0.0.1:9").read("x")


def test_a_missing_library_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys  # noqa: PLC0415

    for name in [
        name for name in sys.modules if name.startswith(("obstore", "rocwheel.stores.s3", "rocwheel.stores.ob"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingExtraError, match=r'Install it: pip install "rocwheel\[stores\]"'):
        open_store("s3://bucket")


def test_a_file_url_is_split_into_its_folder_and_name(faulty: FaultyServer) -> None:
    faulty.files["/a/b+1.whl"] = b"wheel"
    store, name = open_file(f"{faulty.address}/a/b%2B1.whl")
    assert (name, store.head(name).size) == ("b+1.whl", 5)
    assert [path for _, path, _ in faulty.requests] == ["/a/b+1.whl"]


def test_the_query_of_a_signed_url_is_sent_with_every_request(faulty: FaultyServer) -> None:
    faulty.files["/a/x.whl"] = b"wheel"
    store, name = open_file(f"{faulty.address}/a/x.whl?X-Signature=abc%2B")
    assert (store.head(name).size, store.read(name), store.read_range(name, 1, 3)) == (5, b"wheel", b"he")
    assert {path for _, path, _ in faulty.requests} == {"/a/x.whl?X-Signature=abc%2B"}
    assert "Signature" not in store.place(name)
