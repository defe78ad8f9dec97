"""What harnesses begin with: small files of the tests, and the sample SDK."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.places import FIXTURES, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["fixtures", "folder_on_disk", "on_disk", "sample"]


def fixtures(*patterns: str, largest: int = 24 << 10) -> list[bytes]:
    """Return the test fixtures that one of the patterns names, without those of more bytes than ``largest``.

    Raises `ValueError` for a pattern that names none of them.
    """
    return _read(FIXTURES, patterns, largest)


def sample(*patterns: str, largest: int = 24 << 10) -> list[bytes]:
    """Return the files of the sample SDK that one of the patterns names, as `fixtures` does."""
    return _read(ROOT / "src/rocwheel/sample", patterns, largest)


def on_disk(data: bytes, name: str) -> Path:
    """Write an input to a file of this name, for parsers that take paths; the next input overwrites it."""
    path = _folder() / name
    path.write_bytes(data)
    return path


def folder_on_disk(name: str) -> Path:
    """Make an empty folder of this name, for parsers of several files; the next input gets it empty again."""
    path = _folder() / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    return path


@cache
def _folder() -> Path:
    """Make a folder that goes with this process; what the fuzzer ends goes with the folder of `trials.fuzz.runner`."""
    folder = tempfile.mkdtemp(prefix="rocwheel-fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _read(folder: Path, patterns: Iterable[str], largest: int) -> list[bytes]:
    found = []
    for pattern in patterns:
        paths = [path for path in sorted(folder.glob(pattern)) if path.is_file() and path.stat().st_size <= largest]
        if not paths:
            msg = f"{folder.relative_to(ROOT)}: no file of {largest} bytes or less is named like {pattern!r}"
            raise ValueError(msg)
        found += [path.read_bytes() for path in paths]
    return found
