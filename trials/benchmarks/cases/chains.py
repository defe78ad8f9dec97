"""Commands on the worst that a loader can be given: a chain of libraries with RPATHs, which each lack one.

Whatever a library needs is looked for by the RPATH of all that had it loaded. What the first one lacks is looked for in
few folders, what the last one lacks in those of the whole chain; and each library is loaded into a process of its own.
So the looks of glibc's loader, which is the floor, grow with the power 3 of the chain's length. Each run path has a
folder of the machine that built it, which a repair drops.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tests.support.wheels import make_wheel
from trials.benchmarks.cases.case import Case, floor, rocwheel

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CASES"]

_LENGTHS = (1, 10, 20, 40, 80)
_UNIT = "libraries in a chain"


def _make_chain(folder: Path, size: int) -> None:
    """Write libraries, and a wheel of them."""
    gone, library = folder / "gone", folder / "chain"
    gone.mkdir()
    library.mkdir()
    needed: list[Path] = []
    for number in reversed(range(size)):
        lacking, made = gone / f"libgone{number}.so", library / f"lib{number}.so"
        _link(lacking, [], "")
        _link(made, [*needed, lacking], f"$ORIGIN:/opt/vendor{number}/lib:/tmp/build")
        needed = [made]
    files = {f"chain/{path.name}": path.read_bytes() for path in library.iterdir()}
    make_wheel(folder, "chain", files, tag="py3-none-manylinux_2_17_x86_64")


def _link(made: Path, needed: list[Path], rpath: str) -> None:
    """Link a library without code, whose file name is its SONAME."""
    options = ["-nostdlib", f"-Wl,-soname,{made.name}", "-Wl,--no-as-needed,--disable-new-dtags"]
    options += [f"-Wl,-rpath,{rpath}"] if rpath else []
    command = ["gcc", "-shared", "-o", *map(str, (made, *options)), "-x", "c", "/dev/null", "-x", "none"]
    subprocess.run([*command, *map(str, needed)], check=True)


def _wheel(folder: Path) -> Path:
    return next(folder.glob("*.whl"))


def _load(folder: Path, _: Path) -> tuple[str, ...]:
    return floor("load", folder / "chain")


CASES = (
    Case(
        "audit, of a chain", _UNIT, _LENGTHS, _make_chain, lambda folder, _: rocwheel("audit", _wheel(folder)), _load,
        statuses=(0, 1),
    ),
    Case(
        "repair, of a chain", _UNIT, _LENGTHS, _make_chain,
        lambda folder, out: rocwheel("repair", _wheel(folder), "-d", out / "repaired"), _load, statuses=(0, 1),
    ),
)  # fmt: skip
"""What is done with such a chain."""
