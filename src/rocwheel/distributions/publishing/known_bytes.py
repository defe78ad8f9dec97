"""Whether a file on a store is one that is known, by its size and hash."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from rocwheel.stores.store import TakenError

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.core.reading import FileStamp
    from rocwheel.stores.store import Store, StoredFile

__all__ = ["put_same", "require_same"]


def require_same(store: Store, stored: StoredFile, size: int | None, sha256: str) -> None:
    """Raise `TakenError` unless a file of the store has this size, where one is known, and hash.

    The hash that was noted beside the file when it was stored is believed; where there is none, the file is read.
    """
    if size not in {None, stored.size}:
        raise _other(store, stored.name, f"{stored.size} bytes, not {size}")
    found = stored.sha256 or store.head(stored.name).sha256 or _hash(store, stored.name)
    if found != sha256:
        raise _other(store, stored.name, f"sha256 {found[:16]}..., not {sha256[:16]}...")


def put_same(
    store: Store, name: str, source: bytes | Path, size: int, sha256: str, *, stamp: FileStamp | None = None
) -> None:
    """Store a file unless it is there already; raises as `require_same` does.

    ``stamp`` is that of the file of which the hash was computed: another one is not stored under that hash.
    """
    try:
        store.put(name, source, sha256=sha256, stamp=stamp)
    except TakenError:
        require_same(store, store.head(name), size, sha256)


def _hash(store: Store, name: str) -> str:
    digest = hashlib.sha256()
    for piece in store.stream(name):
        digest.update(piece)
    return digest.hexdigest()


def _other(store: Store, name: str, difference: str) -> TakenError:
    found = f"is there already with other bytes ({difference})"
    remedy = "A file is never replaced. Give the new one another version or build number."
    return TakenError(store.place(name), found, remedy=remedy)
