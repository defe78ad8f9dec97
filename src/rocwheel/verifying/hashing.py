"""A file compared with its promised size and SHA-256; symlinks are not followed."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.foundation.errors import RocwheelError
from rocwheel.foundation.files.hashing.hash_file import hash_rest
from rocwheel.foundation.files.reading.regular_files import open_unchanged
from rocwheel.foundation.files.reading.stand_ins import source_at
from rocwheel.foundation.messages.counting import count
from rocwheel.verifying.values import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Promise", "find_fault", "reading_faults"]


class Promise(msgspec.Struct, frozen=True):
    """What is written of a file."""

    path: Path
    sha256: str
    """In hexadecimal digits; empty where nothing is written of it."""
    size: int | None = None
    """Bytes; none where nothing is written of it."""


def find_fault(promise: Promise, advance: Callable[[int], object]) -> Fault | None:
    """Return what is wrong with a file, None if it is as promised. Symlinks are not followed."""
    place = str(promise.path)
    faults: list[Fault] = []
    with reading_faults(place, faults):
        status = promise.path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return Fault("link", place, "is a symlink", "a file")
        if not stat.S_ISREG(status.st_mode):
            return Fault("changed", place, "is not a file", "a file")
        size = source.size if (source := source_at(place)) else status.st_size
        if promise.size is not None and size != promise.size:
            return Fault("changed", place, f"has {count(size, 'byte')}", count(promise.size, "byte"))
        with open_unchanged(promise.path) as file:
            found = hash_rest(file, advance=advance).hex()
        if promise.sha256 and found != promise.sha256:
            return Fault("changed", place, f"has the SHA-256 {found}", promise.sha256)
    return faults[0] if faults else None


@contextmanager
def reading_faults(place: str, faults: list[Fault]) -> Iterator[None]:
    """Append to ``faults`` what keeps the file at ``place`` from being read in the block, which ends then."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        faults.append(Fault("missing", place, "is missing", "a file"))
    except OSError as e:
        faults.append(Fault("damaged", place, f"can't be read ({os.strerror(e.errno) if e.errno else e})"))
    except RocwheelError as e:
        found, expected = getattr(e, "found", str(e)), getattr(e, "expected", "")
        faults.append(Fault("damaged", str(getattr(e, "source", place)), found, expected))
