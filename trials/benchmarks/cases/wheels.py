"""Commands on wheels: one with many libraries, or many of three files each."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from tests.support.wheels import make_wheel
from trials.benchmarks.cases.case import Case, floor, rocwheel, tool

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CASES"]

_LIBRARIES = (1, 125, 250, 500, 1_000)
_WHEELS = (1, 250, 500, 1_000, 2_000)
_TAG = "py3-none-manylinux_2_17_x86_64"
_SOURCE = 'int hipInit(unsigned); int puts(const char *); int copy(void) { puts("copy"); return hipInit(0); }'
_HIP = "libamdhip64.so.7"


def _library(folder: Path) -> bytes:
    """Return a library that needs HIP, and an extra section of 16 KiB that each copy can have its own bytes in."""
    hip, made, data = folder / _HIP, folder / "libcopy.so", folder / "data"
    data.write_bytes(b"?" * (16 << 10))
    source = f'__asm__(".section .rodata\\n.incbin \\"{data}\\"\\n.text"); {_SOURCE}'
    _compile(hip, "int hipInit(unsigned x) { return x; }", f"-Wl,-soname,{_HIP}")
    _compile(made, source, "-Wl,-soname,libcopy.so", str(hip))
    content = made.read_bytes()
    for path in (hip, made, data):
        path.unlink()
    return content


def _compile(made: Path, source: str, *options: str) -> None:
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", str(made), *options]
    subprocess.run(command, input=source.encode(), check=True)


def _copies(folder: Path, size: int) -> dict[str, bytes]:
    """Return libraries of different bytes by their paths."""
    library = _library(folder)
    marks = (f"{number:064d}".encode() for number in range(size))
    return {f"copies/lib{number}.so": library.replace(b"?" * 64, mark, 200) for number, mark in enumerate(marks)}


def _make_wheel(folder: Path, size: int) -> None:
    make_wheel(folder, "copies", _copies(folder, size), tag=_TAG)


def _make_two(folder: Path, size: int) -> None:
    """Write two wheels whose files all differ in some bytes, and one that only the second has."""
    old = _copies(folder, size)
    new = {name: data.replace(b"copy", b"kopy") for name, data in old.items()}
    make_wheel(folder / "old", "copies", old, tag=_TAG)
    make_wheel(folder / "new", "copies", {**new, "copies/more.so": next(iter(new.values()))}, tag=_TAG, version="2.0")


def _make_wheels(folder: Path, size: int) -> None:
    for number in range(size):
        make_wheel(folder / "dist", f"p{number:05d}", {f"p{number:05d}.py": b"x = 1\n" * 500}, is_purelib=True)


def _wheel(folder: Path, part: str = "") -> Path:
    return next((folder / part).glob("*.whl"))


def _inflate(folder: Path, _: Path) -> tuple[str, ...]:
    return floor("inflate", *sorted(folder.rglob("*.whl")))


def _remove_index(folder: Path, _: Path) -> None:
    """Remove what an index leaves, beside wheels and in its own folder."""
    shutil.rmtree(folder / "simple", ignore_errors=True)
    for path in folder.rglob("*.metadata"):
        path.unlink()


CASES = (
    Case(
        "inspect", "libraries in a wheel", _LIBRARIES, _make_wheel,
        lambda folder, _: rocwheel("inspect", _wheel(folder)), _inflate,
    ),
    Case(
        "audit", "libraries in a wheel", _LIBRARIES, _make_wheel,
        lambda folder, _: rocwheel("audit", _wheel(folder)), _inflate,
        {"auditwheel show": lambda folder, _: tool("auditwheel", "show", _wheel(folder))}, statuses=(0, 1),
    ),
    Case(
        "repair", "libraries in a wheel", _LIBRARIES, _make_wheel,
        lambda folder, out: rocwheel("repair", _wheel(folder), "-d", out / "repaired"),
        lambda folder, out: floor("pack", _wheel(folder), out),
        {"auditwheel repair": lambda folder, out: tool(
            "auditwheel", "repair", "--exclude", _HIP, "-w", out / "repaired", _wheel(folder))},
        statuses=(0, 1),
    ),
    Case(
        "verify", "libraries in a wheel", _LIBRARIES, _make_wheel,
        lambda folder, _: rocwheel("verify", _wheel(folder)), _inflate,
    ),
    Case(
        "diff", "libraries in each wheel", _LIBRARIES, _make_two,
        lambda folder, _: rocwheel("diff", _wheel(folder, "old"), _wheel(folder, "new")), _inflate, statuses=(0, 1),
    ),
    Case(
        "report", "libraries in a wheel", _LIBRARIES, _make_wheel,
        lambda folder, out: rocwheel("report", _wheel(folder), "-o", out / "report.html"), _inflate,
    ),
    Case(
        "index", "wheels", _WHEELS, _make_wheels,
        lambda folder, _: rocwheel("index", folder / "dist"),
        lambda folder, _: floor("hash", folder / "dist"),
        prepare=_remove_index,
    ),
    Case(
        "publish", "wheels, into a folder", _WHEELS, _make_wheels,
        lambda folder, out: rocwheel("publish", folder / "dist", out / "store"),
        lambda folder, out: floor("copy", folder / "dist", out),
        prepare=_remove_index,
    ),
)  # fmt: skip
"""What is done with finished packages."""
