"""Replaces the local paths of fetched files in messages and results, and removes the secrets in URLs."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


_names: dict[str, str] = {}
_secrets: list[str] = []
"""The strings that are never shown, longest first."""

_START = re.compile(
    r"(?:[a-z][a-z0-9+.-]*:[/\\]+|\b(?:https?|s3|file):|^(?:--?[\w-]+=)?[/\\]*)", re.IGNORECASE | re.ASCII
)
"""The beginning of a URL, even one with a typing error: its scheme, or the beginning of the word."""
_AFTER_SLASHES = re.compile(r"(?<=[/\\]{2})[^/\\?#\s]*@")
"""The user and password after two slashes. Whatever precedes the slashes may be a misspelled scheme."""
_END_OF_HOST = re.compile(r"[/\\?#]")
_PORT = re.compile(r"[0-9]*")
_KEPT = "!$%&'()*+,/:;=@[]^|"
"""The characters that uv doesn't quote if it reads a URL as a path."""
_SHORTEST_QUERY = 4
"""The minimum number of characters of a query or fragment with a secret. Shorter text might occur in any message."""


def show_as(path: Path, name: str) -> None:
    """Show a file or folder as ``name``."""
    _names[str(path)] = name


def forget_names() -> None:
    """Show the paths of all files and all text again, as at the start of a run."""
    _names.clear()
    _secrets.clear()


def hide_secrets(words: Iterable[str]) -> None:
    """From now on, never show the users, passwords, queries, and fragments of the URLs in a command line."""
    found = {spelling for word in words for secret in _secrets_in(word) for spelling in _spellings(secret)}
    _secrets[:] = sorted(found, key=len, reverse=True)


def _secrets_in(word: str) -> Iterator[str]:
    """Yield the secrets in a word, even if a URL lacks its scheme or a slash, or if its password isn't quoted."""
    for user in _AFTER_SLASHES.findall(word):
        yield user
        if password := user.partition(":")[2]:
            yield password
    for start in _START.finditer(word):
        rest = word[start.end() :]
        end = _END_OF_HOST.search(rest)
        host = rest[: end.start()] if end else rest
        user, mark, _ = host.rpartition("@")
        if not mark and ":" in host and not _PORT.fullmatch(host.rpartition(":")[2]):
            user, mark, _ = rest.rpartition("@")  # an unquoted slash, question mark, or number sign in the password
            if user:
                yield host
        if user and (":" in start[0] or ":" in user):  # a file name can contain an at sign
            yield f"{user}{mark}"
            if password := user.partition(":")[2]:
                yield f"{password}{mark}"
        behind = rest[len(user) + len(mark) :]
        has_query = start[0].endswith(("/", "\\", ":")) or user or "=" in behind.partition("?")[2]  # not a pattern
        if has_query and (query := re.search(r"[?#].*", behind, re.DOTALL)):
            yield from (text for text in (query[0], query[0].partition("#")[0]) if len(text) >= _SHORTEST_QUERY)


def _spellings(secret: str) -> Iterator[str]:
    """Yield a secret unchanged, and as it appears in paths, quotations, and JSON documents."""
    in_path = quote(secret, safe=_KEPT)
    for text in (secret, unquote(secret), re.sub("/+", "/", secret), in_path):
        yield from (text, repr(text)[1:-1], json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])


def shown(text: str) -> str:
    """Return text for a message or document.

    The names of remote files replace their local paths, and the secrets of typed URLs are removed.
    """
    for path, name in _names.items():
        text = text.replace(path, name)
    for secret in _secrets:
        text = text.replace(secret, "")
    return text


def place_of(file: str) -> str:
    """Return the URL for this file name. Return the name itself if it has no URL or is a complete path."""
    if os.path.isabs(file):  # noqa: PTH117
        return file
    for path, name in _names.items():
        if os.path.basename(path) == file:  # noqa: PTH119  # asked for each finding
            return name
        if os.path.isfile(os.path.join(path, file)):  # noqa: PTH113, PTH118
            return f"{name}/{quote(file)}"
    return file
