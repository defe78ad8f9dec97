"""The address that the lines of the front page name."""

from __future__ import annotations

import pytest

from rocwheel.core.errors import InputError
from rocwheel.distributions.front_page.index_url import checked_url, noted_url


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://example.org/rocm/simple", "https://example.org/rocm/simple/"),
        ("http://[::1]:8000/", "http://[::1]:8000/"),
        ("file:///srv/rocm/simple/", "file:///srv/rocm/simple/"),
        ("https://example.org/a%20b/", "https://example.org/a%20b/"),
    ],
)
def test_addresses_end_with_a_slash(text: str, expected: str) -> None:
    assert checked_url(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "example.org",
        "ftp://example.org/",
        "https://",
        "https://e.org/$(id)",
        "https://e.org/ b",
        'https://e.org/"',
        "http://[e",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(
        InputError, match=r"^--url: is .*; expected an address such as https://example.org/rocm/simple/"
    ):
        checked_url(text)


@pytest.mark.parametrize("path", ["", "a b/", "a?token=secret&b"])
def test_passwords_are_not_published(path: str) -> None:
    with pytest.raises(InputError, match=r"^--url: has a user or a password in it") as caught:
        checked_url(f"https://me:secret@example.org/{path}")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (b'<meta name="index-url" content="https://example.org/a/">', "https://example.org/a/"),
        (b'<meta name="index-url" content="https://e.org/$(id)">', ""),
        (b'<meta name="index-url" content="https://e.org/\xff">', ""),
        (b"<p>somebody's page", ""),
    ],
)
def test_the_address_that_a_page_notes_is_checked_again(page: bytes, expected: str) -> None:
    assert noted_url(page) == expected


@pytest.mark.parametrize("text", ["me:secret@x.org/", "ftp://me:secret@x.org/", "x.org/?token=secret"])
def test_passwords_of_what_is_no_address_are_not_shown(text: str) -> None:
    with pytest.raises(InputError, match=r"^--url: is '") as caught:
        checked_url(text)
    assert "secret" not in str(caught.value)
