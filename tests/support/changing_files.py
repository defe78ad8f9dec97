"""Files that change while a command reads them: at a read of one's choice, or all the time."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

__all__ = ["CHANGES", "changed_at_read", "kept_changing"]

_LONG_AGO = 1_000_000_000


def _overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"!")


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _replace(path: Path) -> None:
    other = path.with_name(f"{path.name}.new")
    other.write_bytes(path.read_bytes())
    other.replace(path)


CHANGES: dict[str, Callable[[Path], None]] = {"overwritten": _overwrite, "truncated": _truncate, "replaced": _replace}
"""What can happen to a file."""


def changed_at_read(
    monkeypatch: pytest.MonkeyPatch, path: Path, change: Callable[[Path], None], *, after: int = 1
) -> list[int]:
    """Have ``path`` changed once ``after`` reads of it have begun; return a list that gets an item at each read."""
    # Times of its last writing are long past, whatever the kernel's clock ticks like.
    os.utime(path, (_LONG_AGO, _LONG_AGO))
    real, reads = os.pread, list[int]()

    def pread(descriptor: int, size: int, offset: int) -> bytes:
        data = real(descriptor, size, offset)
        if Path(f"/proc/self/fd/{descriptor}").readlink() == path:
            reads.append(offset)
            if len(reads) == after:
                change(path)
        return data

    monkeypatch.setattr(os, "pread", pread)
    return reads


_WRITER = """
import os, sys, time
path, truncates = sys.argv[1], sys.argv[2] == "truncated"
size = os.stat(path).st_size
with open(path, "r+b", buffering=0) as file:
    print("writing", flush=True)
    while os.getppid() == int(sys.argv[3]):
        if truncates:
            file.truncate(size // 3)
            file.truncate(size)
        for place in range(0, size, size // 50):
            os.pwrite(file.fileno(), os.urandom(64), place)
        time.sleep(0.001)
"""


@contextmanager
def kept_changing(path: Path, how: str) -> Iterator[None]:
    """Have a process of its own write to ``path`` in place (``overwritten``, ``truncated``) until the block ends."""
    command = [sys.executable, "-S", "-c", _WRITER, str(path), how, str(os.getpid())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        writer.stdout.readline()
        try:
            yield
        finally:
            writer.kill()
