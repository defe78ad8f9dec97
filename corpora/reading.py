"""All files of a format, as rocwheel and other tools read them."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING

from corpora.compare import TOOLS, compare
from corpora.files import machine_files, wheel_files
from corpora.row import Difference, Row

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["compare_readers"]


def compare_readers(kind: str) -> Row:
    """Compare what rocwheel and other tools read in every file of a format, ``pe`` or ``elf``."""
    files = 0
    found: list[Difference] = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for group in chain([machine_files(kind)], wheel_files(kind)):
            files += len(group)
            found += chain.from_iterable(pool.map(_compare, [(kind, *one) for one in group], chunksize=4))
    refused = sum(one.tool == "rocwheel" for one in found)
    return Row(kind, files, (files - refused) * len(TOOLS[kind]), tuple(sorted(found)))


def _compare(task: tuple[str, Path, str]) -> list[Difference]:
    return compare(*task)
