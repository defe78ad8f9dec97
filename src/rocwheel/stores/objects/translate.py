"""What obstore says went wrong, as an error of a store."""

from __future__ import annotations

import re
from typing import TypeAlias

from rocwheel.foundation.messages.quoting import shortened
from rocwheel.stores.errors import (
    BrokenTransferError,
    BusyError,
    ClockError,
    CredentialsError,
    ForbiddenError,
    MissingFileError,
    MissingStoreError,
    PassingError,
    RangesIgnoredError,
    StoreError,
)
from rocwheel.stores.urls import is_web_url, without_secrets

__all__ = ["translated", "user_remedy"]

_CODE = re.compile(r"<Code>(\w+)</Code>")
"""In the body of an answer of S3."""
_STATUS = re.compile(r"\b(?:status|error)[: ]+(?:code: )?([45]\d\d)\b", re.IGNORECASE)

_CREDENTIALS = "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN."
_CLOCK = "Set the clock of this machine right."
_PERMISSION = "Ask its owner for the permission, or use other credentials."
_LATER = "Try again later."
_WHERE = "Correct the URL, or AWS_ENDPOINT_URL."
_RETRIED = re.compile(r" in ([\d.]+)(m?s|µs|ns), after (\d+) retries,")
_UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
_END = "Give the URL that it should lead to, or ask who runs the server."

_Meaning: TypeAlias = tuple[type[StoreError], str, str]
"""The kind of error, what was found, and what to do."""

_CODES: dict[str, _Meaning] = {
    "InvalidAccessKeyId": (CredentialsError, "doesn't know the access key", _CREDENTIALS),
    "SignatureDoesNotMatch": (CredentialsError, "refuses the secret key", _CREDENTIALS),
    "InvalidToken": (CredentialsError, "refuses the session token", _CREDENTIALS),
    "ExpiredToken": (CredentialsError, "refuses the session token, which has expired", "Get a new one."),
    "RequestTimeTooSkewed": (ClockError, "is more than a quarter of an hour from the clock of this machine", _CLOCK),
    "RequestExpired": (ClockError, "takes the request for an old one", _CLOCK),
    "NoSuchBucket": (MissingStoreError, "there is no such bucket", "Correct its name, or create it."),
    "NoSuchKey": (MissingFileError, "is not there", "Correct the name."),
    "AccessDenied": (ForbiddenError, "the store forbids it", _PERMISSION),
    "SlowDown": (BusyError, "the store is overloaded", _LATER),
    "ServiceUnavailable": (BusyError, "the store is out of order", _LATER),
}
"""Codes of S3's answers, with what they mean."""

_KINDS: dict[str, _Meaning] = {
    "NotFoundError": (MissingFileError, "is not there", "Correct the name."),
    "PermissionDeniedError": (ForbiddenError, "the store forbids it", _PERMISSION),
    "UnauthenticatedError": (CredentialsError, "the store wants other credentials", _CREDENTIALS),
}
"""Exceptions of obstore, by name, with what they mean where the answer had no code."""

_STATUSES = {
    "401": "UnauthenticatedError",
    "403": "PermissionDeniedError",
    "404": "NotFoundError",
    "407": "UnauthenticatedError",
    "410": "NotFoundError",
}
"""What obstore raises for a status where it doesn't look into the answer."""

_PUBLIC = f"{_CREDENTIALS[:-1]}, or set AWS_SKIP_SIGNATURE=true for a public bucket."
_TEXTS: dict[str, _Meaning] = {
    "169.254.": (CredentialsError, "there are no credentials for it", _PUBLIC),
    "Range request not supported": (RangesIgnoredError, "the server sends whole files only", ""),
    "dns error": (MissingStoreError, "there is no such host", _WHERE),
    "Connection refused": (MissingStoreError, "nobody answers there", _WHERE),
    "URL scheme is not allowed": (ForbiddenError, "is reached without encryption", "Set AWS_ALLOW_HTTP=true."),
    "error following redirect": (StoreError, "leads on and on, or nowhere", _END),
    "kind: Timeout": (BrokenTransferError, "nobody answers in time", _LATER),
    "redirect without LOCATION": (MissingStoreError, "is in another region", "Set AWS_REGION to the bucket's."),
}
"""Parts of texts, with what they mean."""


def user_remedy(*, has_user: bool) -> str:
    """Return what to do where a web server wants a user and password; with ``has_user``, other ones."""
    if has_user:
        return "Correct the user and password that the URL has."
    return "Give user and password: https://USER:PASSWORD@HOST/..."


def translated(place: str, error: Exception, *, reads: bool = False, has_user: bool = False) -> StoreError:
    """Return what obstore raised as an error of a store, about ``place``.

    With ``reads``, what has no meaning of its own is an end in the middle of a file; with ``has_user``, a web server
    was given a user and password.
    """
    text = str(error)
    kind, found, remedy = _meaning(error, text, reads=reads)
    if is_web_url(place):
        remedy = {_CREDENTIALS: user_remedy(has_user=has_user), _WHERE: "Correct the URL."}.get(remedy, remedy)
    made = kind(place, found, remedy=remedy)
    retried = _RETRIED.search(text)
    if retried and isinstance(made, PassingError):
        made.add_attempts(int(retried[3]) + 1, float(retried[1]) * _UNITS[retried[2]])
    return made


def _meaning(error: Exception, text: str, *, reads: bool) -> _Meaning:
    code = _CODE.search(text)
    status = _STATUS.search(text)
    known = _CODES.get(code[1]) if code else None
    known = known or next((meaning for part, meaning in _TEXTS.items() if part in text), None)
    known = known or _KINDS.get("NotFoundError" if isinstance(error, FileNotFoundError) else type(error).__name__)
    known = known or (_of_status(status[1]) if status else None)
    if known:
        return known
    said = without_secrets(text.partition("\n\nDebug source")[0])
    said = shortened(" ".join(said.split()))
    if reads:
        return BrokenTransferError, f"the transfer ended early ({said})", _LATER
    return StoreError, f"the store answers: {said}", ""


def _of_status(status: str) -> _Meaning | None:
    if status == "429" or status.startswith("5"):
        return BusyError, f"answers with status {status}", _LATER
    return _KINDS.get(_STATUSES.get(status, ""))
