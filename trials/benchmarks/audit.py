"""The audit of a wheel with many copies of one library: the time for each has to stay the same, however many there are.

All rules are checked. The floor, measured in the same run, is what reading takes alone: every member is inflated and
hashed, by one plain process.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from trials.benchmarks.measure import CACHE, machine, markdown_table, run_measured

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_COUNTS = (500, 1000, 2000, 4000)
_SONAME = "libcopy.so.1"
_SOURCE = 'int puts(const char *); int copy(void) { return puts("copy"); }'
_AUDIT = (sys.executable, "-m", "rocwheel", "audit", "--quiet")
_FLOOR = "import hashlib,sys,zipfile\nz=zipfile.ZipFile(sys.argv[1])\nfor n in z.namelist(): hashlib.sha256(z.read(n))"
_INFO = "copies-1.0.dist-info"
_METADATA = b"Metadata-Version: 2.4\nName: copies\nVersion: 1.0\n"
_WHEEL = b"Wheel-Version: 1.0\nGenerator: benchmark\nRoot-Is-Purelib: false\nTag: py3-none-manylinux_2_17_x86_64\n"


def main() -> None:
    """Print the table for the documentation."""
    print(machine())
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        library = _compiled(Path(folder))
        rows = [_row(count, library, Path(folder) / str(count)) for count in _COUNTS]
    print(markdown_table(("copies", "CPU s", "CPU ms each", "floor, CPU s", "resident MB"), rows))


def _compiled(folder: Path) -> Path:
    source, library = folder / "copy.c", folder / _SONAME
    source.write_text(_SOURCE)
    subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{_SONAME}", "-o", library, source], check=True)  # noqa: S607 (this machine's)
    return library


def _row(count: int, library: Path, folder: Path) -> Sequence[str]:
    wheel = _wheel_of_copies(count, library.read_bytes(), folder)
    floor = run_measured((sys.executable, "-c", _FLOOR, str(wheel)), watched=(), environment={})
    run = run_measured((*_AUDIT, str(wheel)), watched=(), environment={}, statuses=(0, 1))
    each = 1000 * run.cpu / count
    return str(count), f"{run.cpu:.1f}", f"{each:.2f}", f"{floor.cpu:.1f}", f"{run.resident / 1e6:.0f}"


def _wheel_of_copies(count: int, library: bytes, folder: Path) -> Path:
    folder.mkdir()
    wheel = folder / "copies-1.0-py3-none-manylinux_2_17_x86_64.whl"
    members = {f"copies/libcopy{number}.so": library for number in range(count)}
    members |= {f"copies/{_SONAME}": library, f"{_INFO}/METADATA": _METADATA, f"{_INFO}/WHEEL": _WHEEL}
    record = [f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in members.items()]
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.writestr(f"{_INFO}/RECORD", "".join([*record, f"{_INFO}/RECORD,,\n"]))
    return wheel


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
