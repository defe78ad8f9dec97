"""Files compared with a list of checksums beside them, as sha256sum(1) writes it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rocwheel.artifacts.fetching.checksums import CHECKSUM_FILES, MAX_CHECKSUMS_SIZE, parse_checksums
from rocwheel.foundation.collecting import serialised
from rocwheel.foundation.files.reading.regular_files import read_small
from rocwheel.installed.reading.read_file import begin_large
from rocwheel.verifying.hashing import Promise, find_fault
from rocwheel.verifying.values import Fault, Verified

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from pathlib import Path

    from rocwheel.foundation.progress import Progress

__all__ = ["find_checksums", "verify_checksums"]

_EXPECTED = "checksums as sha256sum writes them"


def find_checksums(folder: Path) -> list[Path]:
    """Return the lists of checksums that lie in a folder."""
    return [path for name in CHECKSUM_FILES if (path := folder / name).is_file()]


def verify_checksums(path: Path, executor: Executor, progress: Progress) -> Verified:
    """Compare each file that a list names with its checksum there.

    A name that leads out of the list's folder is a fault, and the file is not read. Raises `InputError` for a list
    that can't be read.
    """
    listed = parse_checksums(read_small(path, MAX_CHECKSUMS_SIZE, expected=_EXPECTED), str(path))
    outside = [name for name in listed if name.startswith(("/", "../")) or name == ".." or "\0" in name]
    promises = [Promise(path.parent / name, sha256) for name, sha256 in listed.items() if name not in outside]
    sizes = [_size(promise.path) for promise in promises]
    step = begin_large(progress, f"verifying {path.name}", sum(sizes))
    check = partial(find_fault, advance=serialised(step.advance))
    faults = [fault for fault in executor.map(check, promises) if fault]
    progress.end()
    faults += [Fault("unlisted", str(path), f"names {name}", "files below its folder") for name in outside]
    return Verified(str(path), "checksums", len(promises), sum(sizes), tuple(faults))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
