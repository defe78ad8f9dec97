"""All files of a format, as rocwheel and other tools read them."""

from __future__ import annotations

import os
import random
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING

from trials.corpora.compare import TOOLS, compare
from trials.corpora.files import machine_files, wheel_files
from trials.corpora.row import Difference, Row

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["compare_readers", "sample"]

_WHEELS_SHARE = 100
"""Of a sample, each wheel has one file for so many of the machine."""


def compare_readers(kind: str) -> Row:
    """Compare what rocwheel and other tools read in every file of a format, ``pe`` or ``elf``.

    With ``CORPORA_MOST`` in the environment, a fixed sample of so many files of the machine, and of some of each wheel.
    """
    files = 0
    found: list[Difference] = []
    most = int(os.environ.get("CORPORA_MOST") or 0)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for number, found_here in enumerate(chain([machine_files(kind)], wheel_files(kind))):
            share = most // _WHEELS_SHARE + 1 if number else most
            group = sample(found_here, share) if most else found_here
            files += len(group)
            found += chain.from_iterable(pool.map(_compare, [(kind, *one) for one in group], chunksize=4))
    refused = sum(one.tool == "rocwheel" for one in found)
    return Row(kind, files, (files - refused) * len(TOOLS[kind]), tuple(sorted(found)))


def sample(files: list[tuple[Path, str]], most: int) -> list[tuple[Path, str]]:
    """Return so many files at most, always the same ones of the same files."""
    return files if len(files) <= most else random.Random(0).sample(files, most)


def _compare(task: tuple[str, Path, str]) -> list[Difference]:
    return compare(*task)
