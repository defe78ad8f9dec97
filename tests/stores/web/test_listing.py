"""Listings of folders as any server may make them: what is found lies below the folder, whatever links say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rocwheel.stores import web
from rocwheel.stores.store import checked_name
from rocwheel.stores.web import Page, read_retry_after

if TYPE_CHECKING:
    import pytest

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
def test_any_page_of_links_names_files_below_it(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    page = Page(f"{BASE}/", "text/html", text.encode(errors="replace"))
    empty = Page(f"{BASE}/", "text/html", b"")
    monkeypatch.setattr(web, "read_page", lambda url: page if url == f"{BASE}/" else empty)
    for file in web.list_pages(BASE, ""):
        assert checked_name(BASE, file.name) == file.name


@given(st.text() | st.integers().map(str) | st.datetimes().map(lambda day: day.strftime("%a, %d %b %Y %H:%M:%S GMT")))
@example("9" * 10_000)
@example("Thu, 01 Jan 99999 00:00:00 GMT")
def test_any_header_says_how_long_to_wait_or_nothing(text: str) -> None:
    assert read_retry_after(text, now=0.0) >= 0
