"""Which texts are URLs, what is in them, and how they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.stores.open import open_file, open_store
from rocwheel.stores.urls import (
    hide_users,
    is_same_server,
    is_url,
    keep_user,
    leads_to_web,
    parse_url,
    shown_url,
    shown_url_below,
    split_file_url,
    without_secrets,
)
from rocwheel.stores.web import check_step

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://bucket/dist", True),
        ("https://host/x.whl", True),
        ("file:///tmp", True),
        ("gs://bucket", True),
        ("dist", False),
        ("./s3://x", False),
        ("a b://x", False),
        ("://x", False),
        ("s3:/x", False),
        ("", False),
    ],
)
def test_text_with_a_scheme_is_a_url(text: str, expected: bool) -> None:
    assert is_url(text) is expected


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("s3://bucket/a/b/", ("s3", "bucket", "a/b")),
        ("s3://bucket", ("s3", "bucket", "")),
        ("https://user:word@host:8443/a%20b?x=1", ("https", "user:word@host:8443", "a%20b")),
        ("file:///a/b", ("file", "", "a/b")),
        ("file:///a/b%23%3F", ("file", "", "a/b%23%3F")),
        ("file:///", ("file", "", "")),
    ],
)
def test_a_url_is_split_into_scheme_host_and_path(url: str, parts: tuple[str, str, str]) -> None:
    assert parse_url(url) == parts


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("gs://bucket/x", "has the scheme 'gs'; expected one of s3, http, https, file"),
        ("s3:///x", "has no bucket; expected s3://BUCKET/PATH"),
        ("https:///x", "has no host; expected https://HOST/PATH"),
        ("file://other/x", "contains the host 'other'; expected file:///PATH"),
        (
            "file://",
            "file://: is empty after file://; expected file:///PATH, without ? and #. Check for an unset variable.",
        ),
        ("file://localhost", "is empty after file://"),
        (
            "file:///tmp/c#/store",
            "expected file:///PATH, without ? and #. In the names of files and folders, write %3F for ? and %23 for #.",
        ),
        ("file:///tmp/c?/store", "file:///tmp/c: has a query or fragment after its path"),
        ("file:///tmp/c#", "file:///tmp/c: has a query or fragment after its path"),
        ("https://[x/", "is not a URL"),
        ("http://host:99999/x", "is not a URL (Port out of range 0-65535)"),
        ("http://host:x/x", "is not a URL (the port isn't a number)"),
        ("http://a b/x", "contains a space or control character; expected a URL with such characters escaped (%20)"),
        ("s3://bucket/a\nb", "contains a space or control character"),
        (
            "s3://bucket/../x",
            "has a path that no file in a store can have; expected a path without '.', '..', or empty",
        ),
        ("s3://bucket/a/./x", "has a path that no file in a store can have"),
        ("s3://bucket/a//x", "has a path that no file in a store can have"),
        ("s3://bucket/x?y=1", "has a query or fragment after its path; expected s3://BUCKET/PATH, without ? and #"),
        ("s3://bucket/x#y", "has a query or fragment after its path"),
        ("s3://user:word@bucket/x", "s3://bucket/x: contains a user name; expected s3://BUCKET/PATH. Set AWS_"),
    ],
)
def test_an_invalid_store_url_is_refused(url: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_url(url)
    assert message in str(caught.value)
    assert "word" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://host/x.whl", True),
        ("HTTP://host/x.whl", True),
        ("//host/x.whl", True),
        ("../../dist/a:b.whl", True),
        ("x.whl#sha256=a:b", True),
        ("", True),
        ("x:y.whl", False),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("s3://bucket/x.whl", False),
        ("https:x.whl", False),
    ],
)
def test_a_link_in_a_page_must_be_a_web_address_or_relative(address: str, expected: bool) -> None:
    assert leads_to_web(address) is expected


def test_secrets_are_not_shown() -> None:
    assert shown_url("https://user:word@host:1/a?X-Amz-Signature=1#f") == "https://host:1/a"
    assert shown_url("https://[x/?secret") == "https://[x/"
    assert shown_url("file:///a/b") == "file:///a/b"


@pytest.mark.parametrize("before", ["see ", "see_", "a" * 60, "1"])
def test_secrets_of_a_url_within_text_are_not_shown_whatever_precedes_it(before: str) -> None:
    assert without_secrets(f"{before}https://me:word@host/x?token=1, no") == f"{before}https://host/x, no"


@pytest.mark.parametrize("start", ["http//", "http;//", "//", "file:///"])
def test_a_user_after_two_slashes_is_not_shown_whatever_the_scheme(start: str) -> None:
    assert without_secrets(f"not found at: {start}me:word@host/x") == f"not found at: {start}host/x"


def test_a_file_url_is_split_from_its_folder_and_keeps_the_query() -> None:
    assert split_file_url("https://host/a/b%2B1.whl?s=1#x") == ("https://host/a/?s=1", "b+1.whl")
    with pytest.raises(InputError, match="has no file name"):
        split_file_url("https://host/a/")


def test_a_local_file_with_a_name_that_is_not_utf_8_is_found_and_shown(tmp_path: Path) -> None:
    (tmp_path / "a\udcff.whl").write_bytes(b"123")
    store, name = open_file(f"{tmp_path.as_uri()}/a%ff.whl")
    assert (store.head(name).size, store.place(name)) == (3, f"{tmp_path.as_uri()}/a%FF.whl")
    assert split_file_url("https://host/a%ff.whl") == ("https://host/", "a\ufffd.whl")


def test_names_are_quoted_in_urls() -> None:
    assert shown_url_below("s3://b/", "a b/c+1.whl") == "s3://b/a%20b/c%2B1.whl"
    assert shown_url_below("s3://b", "") == "s3://b"


@pytest.mark.parametrize(
    "url",
    [
        "https://me:secret@[bad/x.whl",
        "https://me:secret@/x.whl",
        "https://me:secret@ho\u2100st/x.whl",
        "s3://key:secret@/x.whl",
        "file://me:secret@host/x.whl",
        "ftp://me:secret@host/x.whl",
    ],
)
def test_no_message_about_a_url_contains_its_password(url: str) -> None:
    for function in (parse_url, split_file_url, open_store, open_file):
        with pytest.raises(InputError) as caught:
            function(url)
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None
    with pytest.raises(InputError) as caught:
        check_step("https://host/simple/", url)
    assert "secret" not in str(caught.value)
    assert "secret" not in shown_url(url)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x @ https://me:word@host/x.whl#sha256=0", "x @ https://host/x.whl#sha256=0"),
        ("git+https://token@host/x and s3://a:b@c", "git+https://host/x and s3://c"),
        ("https://me:wo@rd@host/a@b", "https://host/a@b"),
        ("https://host/a b@c", "https://host/a b@c"),
        ("rocm[device]==7.0", "rocm[device]==7.0"),
    ],
)
def test_users_are_removed_from_text(text: str, shown: str) -> None:
    assert hide_users(text) == shown


@pytest.mark.parametrize(
    ("url", "origin", "expected"),
    [
        ("https://host/x", "https://me:pw@host/simple/", "https://me:pw@host/x"),
        ("https://host/x", "https://me:pw@HOST/simple/", "https://me:pw@HOST/x"),
        ("https://HOST/x", "https://me:pw@host:443/simple/", "https://me:pw@host:443/x"),
        ("http://host:80/x", "http://me:pw@host/simple/", "http://me:pw@host/x"),
        ("https://host:8443/x", "https://me:pw@host/simple/", "https://host:8443/x"),
        ("http://host/x", "https://me:pw@host/simple/", "http://host/x"),
        ("https://other/x", "https://me:pw@host/simple/", "https://other/x"),
        ("https://you:own@host/x", "https://me:pw@host/simple/", "https://you:own@host/x"),
        ("https://host/x", "https://HOST/simple/", "https://host/x"),
    ],
)
def test_a_link_keeps_the_user_of_its_page_on_the_same_server(url: str, origin: str, expected: str) -> None:
    assert keep_user(url, origin) == expected


def test_urls_of_the_same_server_are_recognized_in_any_spelling() -> None:
    assert is_same_server("https://me@HOST:443/a", "https://host/b")
    assert not is_same_server("https://host:80/", "http://host/")
