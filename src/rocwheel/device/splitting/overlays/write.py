"""Writing what a library becomes: one with the code of the common set, and one with that of each target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import TargetId
from rocwheel.core.reading import FileRange
from rocwheel.device.editing.file_rewrite import FileRewrite
from rocwheel.device.editing.rewrite_order import RewriteOrder
from rocwheel.device.splitting.overlays.prune import PruneToSome

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rocwheel.device.splitting.overlays.files import OverlaidLibrary

__all__ = ["Writing", "write_library"]


class Writing(msgspec.Struct, frozen=True):
    """How libraries are written: compressed bundles stay so, in a version that ``rocm`` reads."""

    common: tuple[TargetId, ...]
    rocm: str = ""
    """The oldest ROCm release that has to read them; empty for any."""
    jobs: int = 1


def write_library(library: OverlaidLibrary, folder: Path, how: Writing) -> tuple[FileRange, dict[str, FileRange]]:
    """Write the library for all GPUs, and one for each target, below ``folder``; return them, these by target.

    Raises `InputError` for damaged bundles, and `OSError` when writing fails.
    """
    host = _write(library, folder / "common" / library.path, how.common, how)
    return host, {
        target: _write(library, folder / target / library.path_for(target), [TargetId(target)], how)
        for target in library.targets
    }


def _write(library: OverlaidLibrary, path: Path, keep: Sequence[TargetId], how: Writing) -> FileRange:
    order = RewriteOrder(edit=PruneToSome(tuple(keep)), storage=Storage(rocm=how.rocm), trim=True, jobs=how.jobs)
    path.parent.mkdir(parents=True, exist_ok=True)
    with library.content.view() as data, path.open("xb") as file:
        FileRewrite(data, library.path, order).write(file, path.parent)
    return FileRange.whole(path)
