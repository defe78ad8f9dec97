"""What the sdists of a lock file need to be built, which a lock file has no room for (:pep:`751`)."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from rocwheel.distributions.formats.build_requires import read_build_requires
from rocwheel.distributions.index_reading.source import read_text
from rocwheel.foundation.errors import read_error

if TYPE_CHECKING:
    from rocwheel.distributions.formats.pylock import LockFile

__all__ = ["find_build_requires"]

_LARGEST = 256 << 20
"""Bytes of an sdist that is fetched for this."""


def find_build_requires(lock: LockFile) -> dict[str, tuple[str, ...]]:
    """Return the requirements of the builds of those packages that can only be built, by name; none that need nothing.

    Raises as `read_build_requires` does, and as stores do for an sdist that can't be had.
    """
    found = {name: _read(url) for name, url in lock.built.items()}
    return {name: requires for name, requires in found.items() if requires}


def _read(url: str) -> tuple[str, ...]:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return _read_local(Path(unquote(parts.path)))
    with TemporaryDirectory() as folder:
        path = Path(folder) / Path(unquote(parts.path)).name
        path.write_bytes(read_text(url, _LARGEST))
        return _read_local(path)


def _read_local(path: Path) -> tuple[str, ...]:
    try:
        return read_build_requires(path)
    except OSError as e:
        raise read_error(path, e) from e
