"""Tests of what obstore says, as errors of stores."""

from __future__ import annotations

import pytest
from obstore.exceptions import GenericError

from rocwheel.stores.objects import translated
from rocwheel.stores.store import BrokenTransferError, BusyError, CredentialsError, StoreError

URL = "https://me:secret@host/a/x.whl?X-Signature=secret"
ANSWER = f"Generic HTTP error: Error performing GET {URL} in 1ms - HTTP error: something new"


@pytest.mark.parametrize("reads", [False, True])
def test_what_is_not_known_is_said_without_passwords(*, reads: bool) -> None:
    said = str(translated("https://host/a/x.whl", GenericError(ANSWER), reads=reads))
    assert "Error performing GET https://host/a/x.whl in 1ms - HTTP error: something new" in said
    assert "secret" not in said


@pytest.mark.parametrize(
    ("place", "remedy"),
    [
        ("https://host/x", "Give user and password: https://USER:PASSWORD@HOST/..."),
        ("s3://bucket/x", "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN."),
    ],
)
def test_who_wants_credentials_says_which(place: str, remedy: str) -> None:
    error = translated(place, GenericError("Server returned error status code: 401"))
    assert (type(error), error.remedy) == (CredentialsError, remedy)


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("HTTP error: error following redirect", StoreError, "leads on and on, or nowhere"),
        ("error sending request\n\nDebug source:\n kind: Timeout", BrokenTransferError, "nobody answers in time"),
    ],
)
def test_what_a_web_server_does_is_said(text: str, kind: type[StoreError], found: str) -> None:
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
def test_what_was_tried_again_says_how_often_and_for_how_long(text: str, found: str) -> None:
    error = translated("s3://bucket/x", GenericError(f"Error performing GET x {text}"))
    assert (type(error), error.found) == (BusyError, f"answers with {found}")


def test_a_user_that_was_given_is_not_asked_for() -> None:
    error = translated("https://host/x", GenericError("status code: 401"), has_user=True)
    assert error.remedy == "Correct the user and password that the URL has."


@pytest.mark.parametrize(
    ("place", "remedy"),
    [("https://host/x", "Correct the URL."), ("s3://bucket/x", "Correct the URL, or AWS_ENDPOINT_URL.")],
)
def test_variables_of_s3_are_no_matter_of_web_servers(place: str, remedy: str) -> None:
    assert translated(place, GenericError("Connection refused")).remedy == remedy
