"""Changes written to a checkout: all that can be checked is checked before the first file changes."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from rocwheel.core.errors import ProblemsError, WorkError, write_error
from rocwheel.core.writing import AtomicFile
from rocwheel.frameworks.jax_checkout.reading.git import disk_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rocwheel.frameworks.jax_checkout.editing.draft import FileChange

__all__ = ["apply_changes"]

_EXECUTABLE = 0o755
_ANY_WRITE = 0o222


def apply_changes(root: Path, changes: Sequence[FileChange]) -> None:
    """Write changes to a checkout.

    Every new text is on disk under another name before the first file gets its own, so that a full disk changes
    nothing. Whoever is killed in between leaves whole files, old and new, and the next run does the rest. Raises
    `ProblemsError` with every file that can't be written, or has changed since it was read.
    """
    if problems := list(_problems(root, changes)):
        subject = f"{root}: nothing was changed"
        raise ProblemsError(subject, problems)
    with ExitStack() as stack:
        targets = []
        for change in changes:
            if change.after is not None:
                target = AtomicFile(root / change.path, mode=_mode(root / change.path, change))
                stack.callback(target.discard)
                target.write(change.after.data)
                target.file.flush()
                targets.append(target)
        for target in targets:
            target.commit()
    for change in changes:
        if change.after is None:
            _delete(root, root / change.path)


def _mode(path: Path, change: FileChange) -> int:
    if change.before is not None:
        return path.stat().st_mode & 0o777
    return _EXECUTABLE if change.after and change.after.is_executable else 0o644


def _problems(root: Path, changes: Sequence[FileChange]) -> Iterator[WorkError]:
    for change in changes:
        path = root / change.path
        disk = disk_file(path)
        if path.parent.resolve() != root.resolve() / path.parent.relative_to(root):
            yield WorkError(path, "is below a symbolic link", remedy="Put a folder in the link's place.")
        elif (disk and disk.data) != (change.before and change.before.data):
            yield WorkError(path, "has changed since it was read", remedy="Run the command again.")
        elif disk is not None and not path.stat().st_mode & _ANY_WRITE:
            yield WorkError(path, "is read-only", remedy="Make it writable (chmod u+w).")
        elif not os.access(_nearest_folder(path), os.W_OK | os.X_OK):
            yield WorkError(path, "is in a folder that can't be written", remedy="Check its permissions.")


def _nearest_folder(path: Path) -> Path:
    return next(parent for parent in path.parents if parent.is_dir())


def _delete(root: Path, path: Path) -> None:
    """Delete a file, and the folders that it leaves empty, as git does."""
    try:
        path.unlink(missing_ok=True)
    except OSError as e:
        raise write_error(path, e, remedy="Check the permissions of its folder.") from e
    with suppress(OSError):
        for parent in path.parents:
            if parent == root:
                break
            parent.rmdir()
