"""``rocwheel build`` on trees made to need much memory: large members that hardly compress, and many workers."""

from __future__ import annotations

import random
import shutil
import sys
from typing import TYPE_CHECKING

from rich.filesize import decimal

from trials.benchmarks.measure import CACHE, Run, machine, markdown_table, run_measured
from trials.benchmarks.tree import make_tree

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["main"]

_WORK = CACHE / "bench-memory"
_MIB = 1 << 20
_SIZES = {
    "six members of 127 MiB and two of 183 MiB that hardly compress": (*[127 * _MIB] * 6, *[183 * _MIB] * 2),
    "three members of 3 GiB that hardly compress": (3 << 30,) * 3,
}
_HEADER = ("tree", "options", "resident", "wall s")


def main() -> None:
    """Print the table: the largest resident memory of any process of one build each."""
    print(f"{machine()}; one run each\n", flush=True)
    try:
        for rows in (_rows_of_debian(), _rows_of_large_members()):
            print(markdown_table(_HEADER, rows), flush=True)
    finally:
        shutil.rmtree(_WORK, ignore_errors=True)


def _rows_of_debian() -> list[tuple[str, ...]]:
    tree = make_tree()
    choices = (["-j", "2"], ["--devel-compression", "xz"], ["--devel-compression", "zst"])
    return [_row("the one above", choice, _build(tree, choice)) for choice in choices]


def _rows_of_large_members() -> list[tuple[str, ...]]:
    rows = []
    for name, sizes in _SIZES.items():
        tree = _make_members(sizes)
        rows += [_row(name, choice, _build(tree, choice)) for choice in (["-j", "2"], ["-j", "8"])]
    return rows


def _make_members(sizes: tuple[int, ...]) -> Path:
    """Write members of these sizes for the core package, and a small one for the libraries, which a build asks for."""
    shutil.rmtree(_WORK, ignore_errors=True)
    artifacts = _WORK / "artifacts"
    _make_artifact(artifacts / "base_lib_generic", sizes)
    _make_artifact(artifacts / "blas_lib_generic", (_MIB,))
    return artifacts


def _make_artifact(component: Path, sizes: tuple[int, ...]) -> None:
    share = component / "stage/share" / component.name
    share.mkdir(parents=True)
    (component / "artifact_manifest.txt").write_text("stage\n")
    source = random.Random(0)  # noqa: S311 (the same bytes each time)
    for number, size in enumerate(sizes):
        with (share / f"{number}.bin").open("wb") as file:
            for _ in range(size // _MIB):
                file.write(source.randbytes(_MIB))


def _build(tree: Path, options: list[str]) -> Run:
    output = _WORK / "out"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    command = [sys.executable, "-m", "rocwheel", "build", "--artifact-dir", str(tree), "--dest-dir", str(output)]
    command += ["--no-cache", "--version", "7.0.0", "--quiet", *options]
    return run_measured(command, watched=[output], environment={"TMPDIR": str(output)})


def _row(name: str, options: list[str], run: Run) -> tuple[str, ...]:
    return name, f"`{' '.join(options)}`", decimal(run.resident), f"{run.wall:.0f}"
