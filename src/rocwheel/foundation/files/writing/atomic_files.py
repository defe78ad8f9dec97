"""Many small files that appear only when they are whole: the disk takes them together, not one after the other."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Executor

    from rocwheel.foundation.files.writing.atomic_file import AtomicFile

__all__ = ["SYNCING", "atomic_files"]

SYNCING = 4
"""Threads that wait for the disk, which writes what several ask for in one go."""


@contextmanager
def atomic_files(executor: Executor) -> Iterator[list[AtomicFile]]:
    """Yield a list for files that are written in the block, and committed when it ends well, or else discarded.

    Each gets its name once all are on the disk, which `SYNCING` workers of ``executor`` wait for. Where one can't be
    committed, those before it have their names. Raises what `AtomicFile.commit` does.
    """
    files: list[AtomicFile] = []
    try:
        yield files
        for file in files:
            file.begin_writeback()
        list(executor.map(_sync, (files[start::SYNCING] for start in range(SYNCING))))
        for file in files:
            file.commit()
    finally:
        for file in files:
            file.discard()


def _sync(files: Sequence[AtomicFile]) -> None:
    for file in files:
        file.sync()
