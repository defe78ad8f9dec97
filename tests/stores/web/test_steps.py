"""Tests of where what a web server sent may lead."""

from __future__ import annotations

import pytest

from rocwheel.core.errors import InputError
from rocwheel.stores.web import check_step


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
def test_steps_that_are_allowed(origin: str, url: str) -> None:
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
def test_steps_that_are_not(origin: str, url: str) -> None:
    with pytest.raises(InputError, match="leads"):
        check_step(origin, url)


@pytest.mark.parametrize(
    "url", ["http://me:secret@b/x?sig=secret", "ftp://me:secret@b/x", "http://me:secret@[/?secret", "http://secret@b/"]
)
def test_a_step_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InputError) as caught:
        check_step("https://me:secret@a/x?sig=secret", url)
    assert "secret" not in str(caught.value)
