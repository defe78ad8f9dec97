"""Runs cases, each in a process of its own, and says what came of them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec

from tests.support.memory_folder import memory_folder
from tests.support.places import ROOT
from trials.faults.row import DiskRow, FuseRow, RaceRow, Row
from trials.faults.shim import build_shim

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["run_case", "run_on_disks", "run_on_fuse", "run_race", "table", "texts"]


def run_case(name: str, faults: str, kills: int, shims: Path) -> Row:
    """Run a case with so many faults, or ``all``, and so many kills; ``shims`` is where the shim is built.

    It works in memory where it can: a disk would take most of the time.
    """
    environ = {"LD_PRELOAD": str(build_shim(shims).resolve())}
    return msgspec.json.decode(_run("worker", name, (faults, str(kills)), environ), type=Row)


def run_on_disks(name: str, number: int, shims: Path) -> DiskRow:
    """Run a case on so many disks that fill up, and as many that turn read-only."""
    environ = {"LD_PRELOAD": str(build_shim(shims).resolve())}
    printed = _run("disk_worker", name, (str(number),), environ, before=("unshare", "--mount"))
    return msgspec.json.decode(printed, type=DiskRow)


def run_on_fuse(name: str, number: int, shims: Path) -> FuseRow:
    """Run a case on a disk of a FUSE server, of which so many operations fail."""
    environ = {"LD_PRELOAD": str(build_shim(shims).resolve())}
    printed = _run("fuse.worker", name, (str(number),), environ, before=("unshare", "--mount"))
    return msgspec.json.decode(printed, type=FuseRow)


def run_race(name: str, rounds: int, seed: str) -> RaceRow:
    """Have commands run at the same time, so many rounds; ``seed`` says which are killed, and when."""
    return msgspec.json.decode(_run("race_worker", name, (str(rounds), seed), {}), type=RaceRow)


def _run(
    module: str, name: str, words: tuple[str, ...], environ: Mapping[str, str], before: tuple[str, ...] = ()
) -> bytes:
    """Run a module in a folder of its own, and return what it prints."""
    with memory_folder("rocwheel-faults-") as folder:
        command = [*before, sys.executable, "-m", f"trials.faults.{module}", name, f"{folder}/{name}", *words]
        variables = {**os.environ, **environ}
        return subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, check=True).stdout


def table(rows: Iterable[Row]) -> str:
    """Return a Markdown table of what came of cases."""
    lines = ["| case | calls | faults | tolerated | kills | found |", "|---|---:|---:|---:|---:|---:|"]
    lines += [
        f"| {row.case} | {row.calls:,} | {row.faults:,} | {row.tolerated:,} | {row.kills:,} | "
        f"{len(row.found) or 'nothing'} |"
        for row in rows
    ]
    return "\n".join(lines)


def texts(row: Row | FuseRow) -> list[str]:
    """Return what was found in a case, each as a few lines."""
    return [
        "\n  ".join([f"{row.case}: {one.fault}: {one.call}", *one.problems, *one.messages.splitlines()])
        for one in row.found
    ]
