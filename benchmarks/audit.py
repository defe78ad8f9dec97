"""The audit of many copies of one library: the time for each has to stay the same, however many there are.

The floor, measured in the same run, is what reading takes alone: every file is read and hashed, by one plain process.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import CACHE, machine, markdown_table, run_measured

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_COUNTS = (500, 1000, 2000, 4000)
_SONAME = "libcopy.so.1"
_SOURCE = 'int puts(const char *); int copy(void) { return puts("copy"); }'
_AUDIT = (sys.executable, "-m", "rocwheel", "audit", "--quiet", "--select", "duplicate-library")
_FLOOR = "import hashlib,sys,pathlib\nfor p in pathlib.Path(sys.argv[1]).iterdir(): hashlib.sha256(p.read_bytes())"


def main() -> None:
    """Print the table for the documentation."""
    print(machine())
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        library = _compiled(Path(folder))
        rows = [_row(count, library, Path(folder) / str(count)) for count in _COUNTS]
    print(markdown_table(("copies", "CPU, s", "CPU for each, ms", "reading alone, s", "memory, MB"), rows))


def _compiled(folder: Path) -> Path:
    source, library = folder / "copy.c", folder / _SONAME
    source.write_text(_SOURCE)
    subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{_SONAME}", "-o", library, source], check=True)
    return library


def _row(count: int, library: Path, folder: Path) -> Sequence[str]:
    folder.mkdir()
    shutil.copy(library, folder)
    for number in range(count):
        shutil.copy(library, folder / f"libcopy{number}.so")
    floor = run_measured((sys.executable, "-c", _FLOOR, str(folder)), watched=(), environment={})
    run = run_measured((*_AUDIT, str(folder)), watched=(), environment={})
    each = 1000 * run.cpu / count
    return str(count), f"{run.cpu:.1f}", f"{each:.2f}", f"{floor.cpu:.1f}", f"{run.resident / 1e6:.0f}"
