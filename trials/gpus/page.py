"""Writes docs/gpus.md: what unmodified HIP runtimes did with each file on each GPU, and where the rules differ."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from trials.gpus.table import Cell

PAGE = ROOT / "docs/gpus.md"
RUNS = ROOT / "trials/gpus/runs.json"

_HEAD = """# GPUs that load a file

This page compares `rocwheel targets runs-on` with unmodified HIP runtimes. The runtimes run on a machine without an AMD
GPU, under a stand-in for the kernel driver. The stand-in presents a GPU and completes its queues, but doesn't
execute kernels. For each GPU and file, HIP loads the file with `hipModuleLoadData`. A hook records the code object that
reaches ROCr's loader. A cell agrees if the runtime loads exactly the code object that `runs-on` selects, or loads
nothing and `runs-on` selects nothing.

`make gpus` fills the table and `make gpus GPUS=--record` writes this page. The code is in `trials/gpus/`.
"""


class RuntimeRun(msgspec.Struct, frozen=True):
    """The last run of one runtime."""

    seconds: int
    gpus: tuple[str, ...]
    loads: dict[str, tuple[str, ...]]
    """For each file, the GPUs that load it."""
    faults: tuple[str, ...]
    """The cells that disagree: GPU, file, and how."""

    @property
    def cells(self) -> int:
        """The number of GPUs times files."""
        return len(self.gpus) * len(self.loads)


def add_run(cells: Sequence[Cell], seconds: float, *, runs: Path = RUNS, page: Path = PAGE) -> None:
    """Keep the run of one runtime in place of its last one, and write the page."""
    forms = dict.fromkeys(cell.form for cell in cells)
    run = RuntimeRun(
        round(seconds),
        tuple(dict.fromkeys(cell.gpu for cell in cells)),
        {form: tuple(cell.gpu for cell in cells if cell.form == form and cell.taken) for form in forms},
        tuple(f"{cell.gpu}, {cell.form}: {cell.fault}" for cell in cells if not cell.agrees),
    )
    known = msgspec.json.decode(runs.read_bytes(), type=dict[str, RuntimeRun]) if runs.exists() else {}
    known[cells[0].runtime] = run
    runs.write_bytes(msgspec.json.format(msgspec.json.encode(dict(sorted(known.items()))), indent=1) + b"\n")
    page.write_text(write_page(known))


def write_page(runs: dict[str, RuntimeRun]) -> str:
    """Return the page for the last run of each runtime."""
    lines = [_HEAD, "| runtime | GPUs | files | cells | agree | time |", "|---|---|---|---|---|---|"]
    for name, run in runs.items():
        good = run.cells - len(run.faults)
        share = 100 * good / run.cells
        lines.append(
            f"| {name} | {len(run.gpus)} | {len(run.loads)} | {run.cells:,} | {share:.1f} % | {run.seconds:,} s |"
        )
    for name, run in runs.items():
        lines += ["", f"## {name}", "", "| file | loads on |", "|---|---|"]
        lines += [f"| {form} | {_gpu_words(run.gpus, gpus)} |" for form, gpus in run.loads.items()]
        lines += ["", "Disagreements:" if run.faults else "All cells agree."]
        lines += ["", *(f"* {fault}" for fault in run.faults)] if run.faults else []
    return "\n".join(lines) + "\n"


def _gpu_words(asked: Iterable[str], loading: Sequence[str]) -> str:
    """Return the GPUs that load a file, with their settings only where these make a difference."""
    words: list[str] = []
    for processor, group in groupby(asked, key=lambda gpu: gpu.partition(":")[0]):
        settings = list(group)
        own = [gpu for gpu in settings if gpu in loading]
        words += [processor] if own == settings else own
    return ", ".join(words) or "none"
