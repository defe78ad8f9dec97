"""The users and passwords of indexes, which uv leaves out of a lock file."""

from __future__ import annotations

import netrc
import os
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit, urlunsplit

from rocwheel.stores.urls import is_web_url, keep_user

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocwheel.cli.lock.resolve import ResolveOptions

__all__ = ["index_urls", "with_user"]

_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")
"""Name indexes to uv, several parted by blanks, perhaps with a name in front; places of links, by commas as well."""


def index_urls(options: ResolveOptions, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the addresses on web servers where uv looks for packages: those of options, then of its variables."""
    given = [options.index_url or "", *options.extra_index_url, *options.find_links]
    words = [word for name in _VARIABLES for word in environ.get(name, "").replace(",", " ").split()]
    return tuple(url for url in (*given, *map(_without_name, words)) if is_web_url(url))


def _without_name(word: str) -> str:
    """Return the address in ``NAME=URL``, or the word, if that is one."""
    name, mark, address = word.partition("=")
    return address if mark and "://" not in name else word


def with_user(url: str, origins: Sequence[str]) -> str:
    """Return a URL with the user and password of the origin of its server, else those of the netrc file, if any.

    So do pip and uv; ``NETRC`` names another file than that of the user's folder.
    """
    for origin in origins:
        if (found := _kept(url, origin)) != url:
            return found
    parts = urlsplit(url)
    if "@" in parts.netloc or not (known := _netrc_entry(parts.hostname or "")):
        return url
    user, password = known
    return urlunsplit(parts._replace(netloc=f"{quote(user, safe='')}:{quote(password, safe='')}@{parts.netloc}"))


def _kept(url: str, origin: str) -> str:
    try:
        return keep_user(url, origin)
    except ValueError:  # which uv has said already, or will not use
        return url


def _netrc_entry(host: str) -> tuple[str, str] | None:
    """Return user and password of a host; none where no file has them, or one can't be read: uv asks without, too."""
    try:
        found = netrc.netrc(os.environ.get("NETRC")).authenticators(host)
    except (OSError, ValueError, netrc.NetrcParseError):
        return None
    return (found[0], found[2] or "") if found and found[0] else None
