"""Where a service other than Amazon's speaks the protocol of S3, as variables say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.foundation.errors import InputError
from rocwheel.stores.urls import is_web_url, parse_url, shown_url

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["is_http_allowed", "read_endpoint"]

_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
"""The first that is set counts; obstore reads the last one, too."""
_EXPECTED = "https://HOST or http://HOST:PORT"


def read_endpoint(environ: Mapping[str, str]) -> str:
    """Return the URL of the service; empty where no variable names one, and it is Amazon's.

    Raises `InputError` for what is no URL of a server, for which obstore panics, and for one without encryption where
    that is not allowed.
    """
    variable = next((name for name in _VARIABLES if name in environ), "")
    if not variable:
        return ""
    url = environ[variable]
    if not url:
        raise InputError(variable, "is set and empty", expected=_EXPECTED, remedy="Unset it for Amazon's own service.")
    _check(variable, url)
    if url.lower().startswith("http:") and not is_http_allowed(environ):
        found = f"names {shown_url(url)}, which is reached without encryption"
        raise InputError(variable, found, expected="https://", remedy="Set AWS_ALLOW_HTTP=true to allow that.")
    return url


def is_http_allowed(environ: Mapping[str, str]) -> bool:
    """Return whether the service may be reached without encryption."""
    return environ.get("AWS_ALLOW_HTTP", "").lower() in {"1", "true", "yes"}


def _check(variable: str, url: str) -> None:
    try:
        is_usable = is_web_url(url) and bool(parse_url(url)[0]) and not {"@", "?", "#"} & {*url}
    except InputError as e:
        raise InputError(variable, f"holds {e.source}, which {e.found}", expected=_EXPECTED) from e
    if not is_usable:
        shown = shown_url(url) if "://" in url else "a text"
        raise InputError(variable, f"holds {shown}, which is no URL of a server alone", expected=_EXPECTED)
