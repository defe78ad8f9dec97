"""Writes docs/gpus.md: what unmodified HIP runtimes did with each file on each GPU, and where the rules differ."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from rocwheel.targets.catalog import find_relabeling
from tests.support.places import ROOT
from trials.gpus.blas import BLAS_GPUS
from trials.gpus.forms import EXTENDED_FORMS, OFFICIAL, ORIGINAL_FORM

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from trials.gpus.table import Cell

PAGE = ROOT / "docs/gpus.md"
RUNS = ROOT / "trials/gpus/runs.json"

_HEAD = """# GPUs that load a file

This page compares `rocwheel targets runs-on` with unmodified HIP runtimes. The runtimes run on a machine without an AMD
GPU, under a stand-in for the kernel driver. The stand-in presents a GPU and completes its queues, but doesn't
execute kernels.

For each GPU, HIP loads each module with `hipModuleLoadData`. A library is loaded with `dlopen`, and a request for a
kernel makes HIP load the code of each bundle. A hook records the code objects that reach ROCr's loader. A cell agrees
if the runtime loads exactly the code objects that `runs-on` selects, or loads nothing and `runs-on` selects nothing.

`make gpus` fills the table and `make gpus GPUS=--record` writes this page. The code is in `trials/gpus/`.
"""


class Cost(msgspec.Struct, frozen=True):
    """What a run costs."""

    seconds: int
    processor: int
    """Seconds of a processor, in the processes of the runtime."""
    peak: int
    """The most memory of one process, in MiB."""

    def __str__(self) -> str:
        return f"{self.seconds:,} s ({self.processor:,} s of a processor), at most {self.peak:,} MiB in a process"


class RuntimeRun(msgspec.Struct, frozen=True):
    """The last run of one runtime."""

    cost: Cost
    cells: int
    gpus: tuple[str, ...]
    loads: dict[str, tuple[str, ...]]
    """For each file, the GPUs that load it."""
    machines: dict[str, tuple[str, ...]]
    """For each machine with several GPUs, those that load `SHARED_FORM`."""
    faults: tuple[str, ...]
    """The cells that disagree: GPU, file, and how."""


SHARED_FORM = "library of clang 16"
"""The library in the table of machines with several GPUs."""


def add_run(cells: Sequence[Cell], cost: Cost, *, runs: Path = RUNS, page: Path = PAGE) -> None:
    """Keep the run of one runtime in place of its last one, and write the page."""
    single = [cell for cell in cells if not cell.machine]
    shared = [cell for cell in cells if cell.machine and cell.form == SHARED_FORM]
    run = RuntimeRun(
        cost,
        len(cells),
        tuple(dict.fromkeys(cell.gpu for cell in single)),
        {form: _loading(cell for cell in single if cell.form == form) for form in _each(cell.form for cell in single)},
        {name: _loading(cell for cell in shared if cell.machine == name) for name in _each(c.machine for c in shared)},
        tuple(f"{cell.machine or cell.gpu}, {cell.form}: {cell.fault}" for cell in cells if not cell.agrees),
    )
    known = msgspec.json.decode(runs.read_bytes(), type=dict[str, RuntimeRun]) if runs.exists() else {}
    known[cells[0].runtime] = run
    runs.write_bytes(msgspec.json.format(msgspec.json.encode(dict(sorted(known.items()))), indent=1) + b"\n")
    page.write_text(write_page(known))


def _each(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _loading(cells: Iterable[Cell]) -> tuple[str, ...]:
    return tuple(cell.gpu for cell in cells if cell.taken)


_SHARED = """
## Several GPUs in a machine

When a library registers a bundle, the runtime looks for code for all GPUs of the machine. If the bundle has no code for
one GPU, other GPUs also get none. `rocwheel targets runs-on native` applies these rules. A module is loaded for one
GPU, so the other GPUs don't matter.

The table shows the GPUs that get code from a library with code for gfx906, gfx90a, gfx1030, and gfx1100. The GPUs are
in the order in which the runtime finds them.
"""


def write_page(runs: dict[str, RuntimeRun]) -> str:
    """Return the page for the last run of each runtime."""
    lines = [_HEAD, "| runtime | GPUs | machines | files | cells | agree | time |", "|---|---|---|---|---|---|---|"]
    for name, run in runs.items():
        share = 100 * (run.cells - len(run.faults)) / run.cells
        counts = f"{len(run.gpus)} | {len(run.machines)} | {len(run.loads)} | {run.cells:,}"
        lines.append(f"| {name} | {counts} | {share:.1f} % | {run.cost.seconds:,} s |")
    lines += ["", *(f"* {name}: {run.cost}" for name, run in runs.items() if run.cost.peak)]
    for name, run in runs.items():
        lines += ["", f"## {name}", "", "| file | loads on |", "|---|---|"]
        lines += [
            f"| {form} | {_gpu_words(_BLAS_GPUS if 'BLAS' in form else run.gpus, gpus)} |"
            for form, gpus in run.loads.items()
            if form not in EXTENDED_FORMS
        ]
        lines += ["", "Disagreements:" if run.faults else "All cells agree."]
        lines += ["", *_fault_lines(run.faults)] if run.faults else []
        lines += [_TRANSFORMS] if any("hipblasltTransform" in fault for fault in run.faults) else []
    shared = [(name, run) for name, run in runs.items() if run.machines]
    if shared:
        names = _each(name for _, run in shared for name in run.machines)
        lines += [_SHARED, f"| machine | {' | '.join(name for name, _ in shared)} |", "|---" * (len(shared) + 1) + "|"]
        lines += [f"| {name} | {' | '.join(_shared_words(name, run) for _, run in shared)} |" for name in names]
    return "\n".join([*lines, *_extended_lines(runs)]) + "\n"


_BLAS_GPUS = tuple(map(str, BLAS_GPUS))

_TRANSFORMS = """
Debian's `hipblasltTransform.hsaco` has code only for gfx908. Only matrix transforms load this file, so a GEMM works on
other GPUs. `runs-on` reports the file, because transforms fail there."""

_EXTENDED = """
## GPUs without code in the usual packages

This table is for maintainers of distributions. It is about a file with code for these targets:
{targets}.

The table shows which other GPUs load the file after `rocwheel device retarget FROM=extended` for each of these targets.
The runtime is unmodified. Without `retarget`, none of these GPUs load the file. These runtimes don't know gfx909.

The code was compiled for another GPU. The last column has the evidence that its instructions are the same, from
`similar_code.toml`. Nothing was executed on a GPU.
"""


def _extended_lines(runs: dict[str, RuntimeRun]) -> list[str]:
    """Return the table of GPUs that load a file after it was retargeted to similar GPUs."""
    shown = [(name, run) for name, run in runs.items() if run.loads.get(ORIGINAL_FORM)]
    if not shown:
        return []
    columns = {
        f"{name.partition(' of ')[0]}, {form.partition(', ')[2]}": run.loads[form]
        for name, run in shown
        for form in EXTENDED_FORMS
    }
    gpus = _each(gpu for _, run in shown for gpu in run.gpus)
    known = {_processor(gpu) for _, run in shown for gpu in run.loads[ORIGINAL_FORM]}
    lines = [_EXTENDED.format(targets=f"{', '.join(OFFICIAL[:-1])}, and {OFFICIAL[-1]}")]
    lines += [f"| GPU | {' | '.join(columns)} | evidence |", "|---" * (len(columns) + 2) + "|"]
    for name in _each(map(_processor, gpus)):
        if name not in known:
            own = [gpu for gpu in gpus if _processor(gpu) == name]
            cells = ["yes" if _gpu_words(own, loads) == name else _gpu_words(own, loads) for loads in columns.values()]
            lines.append(f"| {name} | {' | '.join(cells)} | {_evidence(name)} |")
    return lines


def _processor(gpu: str) -> str:
    return gpu.partition(":")[0]


def _evidence(gpu: str) -> str:
    """Return why code for one of the official targets may be offered to a GPU, or that no rule allows it."""
    for code in OFFICIAL:
        rule = find_relabeling(code, gpu)
        if rule:
            return f"{code}: {rule.measured}"
    return "no rule"


def _fault_lines(faults: Iterable[str]) -> list[str]:
    """Return a line for each kind of disagreement, with its GPUs and machines."""
    by_text: dict[str, list[str]] = {}
    for fault in faults:
        gpu, _, text = fault.partition(", ")
        by_text.setdefault(text, []).append(gpu)
    return [f"* {text}. On {', '.join(gpus)}." for text, gpus in by_text.items()]


def _shared_words(machine: str, run: RuntimeRun) -> str:
    loading = run.machines.get(machine, ())
    return "all" if list(loading) == machine.split() else ", ".join(loading) or "none"


def _gpu_words(asked: Iterable[str], loading: Sequence[str]) -> str:
    """Return the GPUs that load a file, with their settings only where these make a difference."""
    words: list[str] = []
    for processor, group in groupby(asked, key=_processor):
        settings = list(group)
        own = [gpu for gpu in settings if gpu in loading]
        words += [processor] if own == settings else own
    return ", ".join(words) or "none"
