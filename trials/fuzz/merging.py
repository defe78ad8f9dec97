"""What of a run's inputs is worth keeping: libFuzzer merges them with the seeds, and says what each adds to these."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.memory_folder import memory_folder
from trials.fuzz.attempt import attempt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trials.fuzz.harness import Harness

__all__ = ["best_inputs", "order_inputs", "write_inputs"]

_ADDED = re.compile(r"^(COV|FT) (\d+)((?: \d+)*)$", re.MULTILINE)
_MOST_SECONDS = 300
_STUCK = 30


def best_inputs(harness: Harness, found: Path) -> list[bytes]:
    """Return the inputs of a folder that lead where no seed does, those that lead to most new places first.

    An input that ends in a fault is not among them: it has a test of its own. Raises `CalledProcessError` where the
    fuzzer fails, and `TimeoutExpired` where it takes minutes.
    """
    with memory_folder("rocwheel-merge-") as folder:
        write_inputs(harness.seeds(), folder / "seeds")
        start, control = _launcher(harness.name, folder / "start"), folder / "control"
        options = ["-merge=1", f"-timeout={_STUCK}", f"-merge_control_file={control}"]
        command = [str(start), *options, str(folder / "seeds"), str(found)]
        environ = {**os.environ, "TMPDIR": str(folder)}
        subprocess.run(command, capture_output=True, check=True, timeout=_MOST_SECONDS, env=environ)
        inputs = [path.read_bytes() for path in order_inputs(control.read_text())]
    return [data for data in inputs if attempt(harness, data) is None]


def order_inputs(control: str) -> list[Path]:
    """Return the files that add something, by libFuzzer's notes on a merge.

    Their first line has the number of files, their second how many of these are seeds, which then follow as all the
    others do; later lines name the edges (``COV``) and the hits of edges (``FT``) that a file was the first to have.
    """
    lines = control.splitlines()
    number, seeds = int(lines[0]), int(lines[1])
    added = {"COV": [0] * number, "FT": [0] * number}
    for kind, index, values in _ADDED.findall(control):
        added[kind][int(index)] = len(values.split())
    useful = [index for index in range(seeds, number) if added["FT"][index]]
    order = sorted(useful, key=lambda index: (-added["COV"][index], -added["FT"][index], index))
    return [Path(lines[2 + index]) for index in order]


def write_inputs(inputs: Iterable[bytes], folder: Path) -> None:
    """Write inputs to files, each under a name that its content makes."""
    folder.mkdir(parents=True, exist_ok=True)
    for data in inputs:
        (folder / hashlib.sha256(data).hexdigest()[:12]).write_bytes(data)


def _launcher(name: str, path: Path) -> Path:
    """Write the program that libFuzzer takes for itself: it starts it again after a crash."""
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m trials.fuzz.merge_worker {name} "$0" "$@"\n')
    path.chmod(0o700)
    return path
