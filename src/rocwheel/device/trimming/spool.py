"""New bundles kept in a file until all of them are known, so that memory doesn't have to hold them."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.reading import iter_pieces
from rocwheel.core.scratch import open_temporary

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rocwheel.binary.bundles.storage import BundleChange
    from rocwheel.core.reading import Data

__all__ = ["spool_changes"]


def spool_changes(changes: Iterable[BundleChange], folder: Path | None) -> tuple[BundleChange, ...]:
    """Return all ``changes``, with the compressed bundles among them in a file in ``folder`` that has no name.

    Plain bundles stay where they are, mostly in the file that is edited. Raises `OSError` when writing fails.
    """
    kept: list[tuple[BundleChange, int | None]] = []
    with open_temporary(folder, buffering=-1) as file:
        for change in changes:
            if change.version is None:
                kept.append((change, None))
                continue
            kept.append((_with_data(change, b""), file.tell()))
            for piece in iter_pieces(change.replacements[0].content(memoryview(b""))):
                file.write(piece)
        size = file.tell()
        file.flush()
        data = memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b"")
    return tuple(
        change if start is None else _with_data(change, data[start : start + change.size]) for change, start in kept
    )


def _with_data(change: BundleChange, data: bytes | Data) -> BundleChange:
    """Return the change with other content of the bundle; what becomes zeros behind it stays."""
    bundle, *rest = change.replacements
    return msgspec.structs.replace(change, replacements=(msgspec.structs.replace(bundle, data=data), *rest))
