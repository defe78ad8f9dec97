"""What the sdists of a lock file need to be built, which a lock file has no room for (:pep:`751`)."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from rocwheel.cli.lock.users import with_user
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.messages import count
from rocwheel.stores.urls import shown_url
from rocwheel.stores.web import stream_file
from rocwheel.wheels.requirements import read_build_requires

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.index.lock_file import LockFile

__all__ = ["find_build_requires"]

_LARGEST = 256 << 20
"""Bytes of an sdist that is fetched for this."""


def find_build_requires(lock: LockFile, index_urls: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the requirements of the builds of those packages that can only be built, by name; none that need nothing.

    Files of a server are asked for with the user of that of ``index_urls``, as `with_user` has it. Raises as
    `read_build_requires` does, and as stores do for an sdist that can't be had.
    """
    found = {name: _read(with_user(url, index_urls)) for name, url in lock.built.items()}
    return {name: requires for name, requires in found.items() if requires}


def _read(url: str) -> tuple[str, ...]:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return _read_local(Path(unquote(parts.path)))
    with TemporaryDirectory() as folder:
        path = Path(folder) / Path(unquote(parts.path)).name
        _fetch(url, path)
        return _read_local(path)


def _fetch(url: str, path: Path) -> None:
    """Write a file of a web server to a path, in pieces."""
    size = 0
    with path.open("wb") as file:
        for block in stream_file(url):
            size += file.write(block)
            if size > _LARGEST:
                raise InputError(shown_url(url), f"has more than {count(_LARGEST, 'byte')}", expected="an sdist")


def _read_local(path: Path) -> tuple[str, ...]:
    try:
        return read_build_requires(path)
    except OSError as e:
        raise read_error(path, e) from e
