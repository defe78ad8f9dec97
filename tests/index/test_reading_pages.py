"""Tests of pages of package indexes, in both forms."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.index.pages import RawFile
from rocwheel.index.trust import UnreadablePageError, check_file, read_html_page, read_json_page
from trials.fuzz.attempt import attempt
from trials.fuzz.harness import Harness

A, B = "a" * 64, "b" * 64
NAME = "x-1.0-py3-none-any.whl"


def page(**file: Any) -> bytes:
    files = [{"filename": NAME, "url": f"../{NAME}", "hashes": {"sha256": A}, **file}]
    return json.dumps({"meta": {"api-version": "1.1"}, "name": "x", "files": files}).encode()


def test_all_fields_of_a_json_page_are_read() -> None:
    more: dict[str, Any] = {"size": 3, "requires-python": ">=3", "yanked": "bad", "upload-time": "2026-01-01T00:00:00Z"}
    (found,) = read_json_page(page(**more, **{"core-metadata": {"sha256": B}})).files
    assert found == RawFile(f"../{NAME}", NAME, {"sha256": A}, 3, ">=3", {"sha256": B}, "bad", "2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, None),
        ({"core-metadata": False}, None),
        ({"core-metadata": True}, {}),
        ({"dist-info-metadata": {"sha256": B}}, {"sha256": B}),
        ({"core-metadata": {"sha256": B}, "dist-info-metadata": False}, {"sha256": B}),
    ],
)
def test_core_metadata_fields_in_json_are_read(keys: dict[str, Any], expected: dict[str, str] | None) -> None:
    assert read_json_page(page(**keys)).files[0].metadata_hashes == expected


@pytest.mark.parametrize(("yanked", "expected"), [(False, None), (True, ""), ("why", "why"), ("", None), (None, None)])
def test_yanked_fields_in_json_are_read(yanked: object, expected: str | None) -> None:
    assert read_json_page(page(yanked=yanked)).files[0].yanked_reason == expected


def test_all_fields_of_an_html_page_are_read() -> None:
    html = (
        f'<!DOCTYPE html><base href="/files/"><a href="{NAME}#sha256={A}" data-requires-python="&gt;=3" '
        f'data-core-metadata="sha256={B}" data-yanked="b&amp;d">{NAME}</a>'
    )
    found = read_html_page(html.encode())
    assert (found.base, found.projects) == ("/files/", (NAME,))
    assert found.files == (RawFile(NAME, "", {"sha256": A}, None, ">=3", {"sha256": B}, "b&d"),)


@pytest.mark.parametrize(
    ("bases", "expected"),
    [
        (b'<base href=""><base href="x/">', ""),
        (b"<base href><base href=x/>", ""),
        (b"<base target=y><base href=x/>", "x/"),
    ],
)
def test_the_first_base_with_an_href_counts_even_if_empty(bases: bytes, expected: str) -> None:
    assert read_html_page(bases).base == expected


@pytest.mark.parametrize("text", [b"<a ", b"<a href=", b"<a b='c'", b"<!--"])
def test_a_page_of_unclosed_tags_is_read_in_linear_time(text: bytes) -> None:
    # Python's parser, until 2025, took minutes for it.
    page = b'<a href="x.whl">x</a> ' + text * 60_000
    assert attempt(Harness("test.page", read_html_page, lambda: [page]), page) is None
    assert [file.url for file in read_html_page(page).files] == ["x.whl"]


def test_sloppy_html_is_read_like_browsers_do() -> None:
    html = b"<A HREF=a-1.tar.gz>a\n<a name=x>b<a href=' c-1.tar.gz '>c <b>d</b></a><![nonsense<a href=e>"
    found = read_html_page(html)
    assert [file.url for file in found.files] == ["a-1.tar.gz", "c-1.tar.gz"]
    assert found.projects == ("a", "c d")


@pytest.mark.parametrize(
    "read",
    [
        lambda version: read_json_page(json.dumps({"meta": {"api-version": version}, "files": []}).encode()),
        lambda version: read_html_page(f'<meta name="pypi:repository-version" content="{version}">'.encode()),
    ],
    ids=["json", "html"],
)
def test_a_future_major_version_is_refused(read: Any) -> None:
    read("1.9")
    with pytest.raises(UnreadablePageError, match=r"has version '2\.0' of the index format"):
        read("2.0")


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"files": 3}', b'{"files": [{}]}', b"[" * 100_000, b"\xff"])
def test_text_that_is_not_a_json_page_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadablePageError, match="is not a page of a package index"):
        read_json_page(data)


WORDS = st.sampled_from(
    ["<a ", "href", "=", '"', "'", ">", "</a>", "<base ", "<!", "<![", "]>", "&#x0;", "#sha256=", A, NAME, "../", "%2f",
     "http://", "[", "]", "@", ":", "//", "\0", "é", "data-yanked", "<meta name=pypi:repository-version content=1>"]
)  # fmt: skip


@given(st.lists(WORDS, max_size=40).map("".join) | st.binary(max_size=200).map(lambda data: data.decode("latin-1")))
def test_any_html_page_is_read_and_only_safe_entries_are_trusted(text: str) -> None:
    try:
        found = read_html_page(text.encode(errors="replace"))
    except UnreadablePageError:
        return
    require_safe(found.files, found.base)


@given(
    st.fixed_dictionaries(
        {"filename": st.lists(WORDS, max_size=6).map("".join) | st.just(NAME),
         "url": st.lists(WORDS, max_size=8).map("".join)},
        optional={"hashes": st.dictionaries(st.sampled_from(["sha256", "md5"]), st.sampled_from([A, "x"])),
                  "size": st.integers() | st.none(), "yanked": st.booleans() | st.text(max_size=3)},
    )
)  # fmt: skip
def test_any_json_page_is_read_and_only_safe_entries_are_trusted(file: dict[str, Any]) -> None:
    try:
        found = read_json_page(json.dumps({"files": [file]}).encode())
    except UnreadablePageError:
        return
    require_safe(found.files, "")


def require_safe(files: tuple[RawFile, ...], base: str) -> None:
    for raw in files:
        try:
            file = check_file(raw, "x", "https://host/simple/x/", base)
        except InputError:
            continue
        assert file is None or (
            "/" not in file.filename
            and file.project == "x"
            and len(file.sha256) == 64
            and file.url.startswith("https://")
        )
