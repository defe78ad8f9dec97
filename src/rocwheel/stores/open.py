"""Opens the store at a URL or path, and reads ranges of a file in a store."""

from __future__ import annotations

import threading
from bisect import bisect_right
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rocwheel.core.workers import open_workers
from rocwheel.stores.folder import FolderStore
from rocwheel.stores.store import MissingExtraError, OutdatedError
from rocwheel.stores.urls import is_url, local_path, parse_url, shown_url, split_file_url

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.stores.store import Store

_EXTRA = 'pip install "rocwheel[stores]"'


def open_store(place: str | Path) -> Store:
    """Return the store at ``s3://BUCKET/PREFIX``, ``http(s)://HOST/PATH``, ``file:///PATH``, or a plain path.

    No request is sent. Credentials, region, and endpoint of S3 come from the usual variables (``AWS_ACCESS_KEY_ID``,
    ``AWS_SECRET_ACCESS_KEY``, ``AWS_SESSION_TOKEN``, ``AWS_REGION``, ``AWS_ENDPOINT_URL``, ``AWS_ALLOW_HTTP``,
    ``AWS_SKIP_SIGNATURE``). Raises `InputError` for an invalid store URL, and `MissingExtraError` if the library for S3
    and web servers is not installed.
    """
    if isinstance(place, Path) or not is_url(place):
        return FolderStore(Path(place), str(place))
    scheme, _, path = parse_url(place)
    if scheme == "file":
        return FolderStore(Path("/", local_path(path)), place.rstrip("/"))
    opener = "open_bucket" if scheme == "s3" else "open_web_server"
    try:
        return cast("Store", getattr(import_module("rocwheel.stores.objects"), opener)(place))
    except ModuleNotFoundError as e:
        if not (e.name or "").startswith("obstore"):
            raise
        found = f"requires the obstore library, which is not installed ({e})"
        raise MissingExtraError(shown_url(place), found, remedy=f"Install it: {_EXTRA}.") from e


def open_file(url: str) -> tuple[Store, str]:
    """Return the store that contains the file at a URL, and the file's name in that store.

    Raises the same errors as `open_store`.
    """
    folder, name = split_file_url(url)
    return open_store(folder), name


_BLOCK = 16 << 10
"""The minimum number of bytes to request. Requests for fewer bytes are not faster."""
_BLOCKS = 256
"""The number of blocks in the cache."""
_GAP = 8 << 10
"""The maximum gap, in bytes, between two ranges that are read together."""
_TAIL = 64 << 10
_AT_ONCE = 16
"""The number of simultaneous requests when many ranges are read."""
_LONGEST = 8 << 20
"""The maximum size of such a request, in bytes."""


class RemoteFile:
    """A file in a store. Several threads may read it at the same time.

    Opening the file reads its end, which contains the directory of an archive. Raises the store's `StoreError`, and
    `RangesIgnoredError` for a server that sends only whole files.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self._before = store.head(name)
        self.size = self._before.size
        self.read_bytes = 0
        """The number of bytes that have been requested so far."""
        self._lock = threading.Lock()
        self._block = lru_cache(_BLOCKS)(
            lambda number: self._ask(number * _BLOCK, min((number + 1) * _BLOCK, self.size))
        )
        self._starts: list[int] = []
        self._spans: list[bytes] = []
        self.prefetch([(max(self.size - _TAIL, 0), self.size)])

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes from ``start`` up to, but not including, ``stop``. Neither may exceed the file's size."""
        kept = self._find_span(start, stop)
        if kept is not None:
            return kept
        if stop - start >= _BLOCK:
            return self._ask(start, stop)
        first, last = start // _BLOCK, max(stop - 1, start) // _BLOCK
        data = b"".join([self._block(number) for number in range(first, last + 1)])
        return data[start - first * _BLOCK : stop - first * _BLOCK]

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Read and cache ranges at the same time. A single request reads several ranges that are close together."""
        wanted = [(start, min(stop, self.size)) for start, stop in ranges if start < min(stop, self.size)]
        joined = [part for part in _join(wanted) if self._find_span(*part) is None]
        with open_workers(_AT_ONCE) as executor:
            pieces = list(executor.map(lambda part: self._ask(*part), joined))
        with self._lock:
            starts = [*self._starts, *(start for start, _ in joined)]
            spans = _outermost(zip(starts, [*self._spans, *pieces], strict=True))
            self._starts, self._spans = [*spans], [*spans.values()]

    def require_unchanged(self) -> None:
        """Raise `OutdatedError` if the file was replaced after it was opened."""
        now = self._store.head(self._name)
        if (now.size, now.e_tag) != (self._before.size, self._before.e_tag):
            found = "was replaced while it was being read"
            raise OutdatedError(self._store.place(self._name), found, remedy="Run the command again.")

    def _find_span(self, start: int, stop: int) -> bytes | None:
        with self._lock:
            number = bisect_right(self._starts, start) - 1
            if number < 0 or stop > self._starts[number] + len(self._spans[number]):
                return None
            return self._spans[number][start - self._starts[number] : stop - self._starts[number]]

    def _ask(self, start: int, stop: int) -> bytes:
        data = self._store.read_range(self._name, start, stop)
        with self._lock:
            self.read_bytes += len(data)
        return data


def _outermost(spans: Iterable[tuple[int, bytes]]) -> dict[int, bytes]:
    """Return the bytes of spans in ascending order, keyed by their start. Spans inside other spans are left out."""
    kept: dict[int, bytes] = {}
    reach = -1
    for start, span in sorted(spans, key=lambda one: (one[0], -len(one[1]))):
        if start + len(span) > reach:
            kept[start], reach = span, start + len(span)
    return kept


def _join(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if joined and start <= joined[-1][1] + _GAP and stop - joined[-1][0] <= _LONGEST:
            joined[-1] = joined[-1][0], max(stop, joined[-1][1])
        else:
            joined.append((start, stop))
    return joined
