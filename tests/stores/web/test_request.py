"""What a web server that refuses something means, and what to do about it."""

from __future__ import annotations

from email.message import Message

import pytest

from rocwheel.stores.web import _refusal


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("https://host/x", "Give user and password: https://USER:PASSWORD@HOST/..."),
        ("https://me:word@host/x", "Correct the user and password that the URL has."),
    ],
)
def test_a_user_that_was_given_is_not_asked_for(url: str, remedy: str) -> None:
    assert str(_refusal(url, 401, Message())) == f"https://host/x: the server answers with status 401. {remedy}"


@pytest.mark.parametrize(
    ("header", "remedy"), [("900", "Try again in 900 seconds, as it asks for."), ("", "Try again later.")]
)
def test_a_server_that_says_when_to_come_back_is_quoted(header: str, remedy: str) -> None:
    headers = Message()
    headers["Retry-After"] = header
    assert _refusal("https://host/x", 503, headers).remedy == remedy
