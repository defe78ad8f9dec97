"""Editing the device code of a file into another file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.core.errors import write_error
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import FileRange
from rocwheel.core.writing import atomic_file, safe_mode
from rocwheel.device.editing.file_rewrite import FileRewrite
from rocwheel.device.editing.rewrite_order import RewriteOrder, RewriteReport

if TYPE_CHECKING:
    from rocwheel.binary.bundles.storage import Storage
    from rocwheel.device.editing.bundle import BundleEdit

__all__ = ["rewrite_device_code"]


def rewrite_device_code(
    source: Path,
    output: Path,
    edit: BundleEdit | None,
    storage: Storage,
    *,
    trim: bool = False,
    jobs: int = 1,
    progress: Progress = SILENT,
) -> RewriteReport:
    """Write ``source`` to ``output`` with each bundle edited and stored as ``storage`` says.

    The output takes its name only when it is whole; through a symlink, that of its target. Freed space is a hole in it;
    with ``trim``, which is for shared libraries only, it is taken out. Memory holds no more than ``jobs`` bundles and
    one, nor more than ``storage.limit`` bytes of decompressed code, and of plain ones that stay so next to nothing.
    A code object by itself is edited by `edit_code_object`.
    Raises `InputError` when there is nothing to edit, and as `FileRewrite` does; `WorkError` when
    writing fails.
    """
    output = Path(os.path.realpath(output))
    order = RewriteOrder(edit=edit, storage=storage, trim=trim, jobs=jobs, progress=progress)
    with FileRange.whole(source).view() as data:
        rewrite = FileRewrite(data, str(source), order)
        with atomic_file(output, mode=safe_mode(source.stat().st_mode)) as target:
            try:
                return rewrite.write(target.file, output.parent)
            except OSError as e:
                raise write_error(output, e) from e
