"""Asks Debian's rocBLAS and hipBLASLt for a small GEMM on each GPU, before and after ``rocwheel device retarget``.

These libraries open a folder of kernels beside them. A cell agrees if the library gives a handle and takes the GEMM,
and ``rocwheel targets runs-on`` says that the library and its folder have what the GPU needs, or if neither does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.binary.code_objects import parse_target_id
from rocwheel.device.runs_on import judge_files, opened_verdicts
from rocwheel.targets.compatibility import Runtime as Rules
from trials.gpus.machines import write_machine
from trials.gpus.runtimes import LIBRARIES_FOLDER, chroot_of, run
from trials.gpus.table import Cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.code_objects import TargetId
    from trials.gpus.runtimes import Runtime

_HERE = __file__.rpartition("/")[0]
EDITS = ("", "gfx1030=extended")
"""What is done to the libraries: nothing, and `device retarget` with this pair."""


_BLAS_GPUS = """
gfx900:xnack- gfx906:sramecc+:xnack- gfx908:sramecc+:xnack- gfx90a:sramecc+:xnack+ gfx90a:sramecc+:xnack-
gfx942:sramecc+:xnack- gfx1010:xnack- gfx1030 gfx1031 gfx1035 gfx1100 gfx1103 gfx1151 gfx1201
"""
BLAS_GPUS = tuple(map(parse_target_id, _BLAS_GPUS.split()))
"""GPUs with kernels of their own, and others."""


class Blas(NamedTuple):
    """A library of matrix operations with a folder of kernels."""

    name: str
    kind: str
    library: str


_ROCBLAS, _HIPBLASLT = "rocblas", "hipblaslt"
BLAS = {
    "6.4": (
        Blas("rocBLAS 6.4.4", _ROCBLAS, "librocblas.so.4"),
        Blas("hipBLASLt 7.1.1", _HIPBLASLT, "libhipblaslt.so.1"),
    ),
    "7.2": (
        Blas("rocBLAS 7.2.4", _ROCBLAS, "librocblas.so.5"),
        Blas("hipBLASLt 7.2.4", _HIPBLASLT, "libhipblaslt.so.1"),
    ),
}
"""The libraries that are in the chroot of each runtime."""


class _Call(msgspec.Struct, frozen=True):
    call: str
    status: int


class _Counts(msgspec.Struct, frozen=True):
    dispatches: int


def fill_blas(runtime: Runtime, folder: Path, gpus: Sequence[TargetId]) -> Iterator[Cell]:
    """Yield the cells of a runtime's libraries; ``folder`` is the one that `prepare` was called with."""
    shutil.copy(f"{_HERE}/gemm.py", folder)
    for blas in BLAS.get(runtime.rocm, ()):
        original = _install(runtime, blas, folder / "trees" / blas.kind / "original")
        for edit in EDITS:
            tree = _retarget(original, edit, runtime.rocm) if edit else original
            form = f"{blas.name}, {'retargeted ' + edit if edit else 'as packaged'}"
            said = _verdicts(tree, gpus, runtime.rocm)
            for gpu in gpus:
                yield _ask(runtime, folder, gpu, blas, tree, form, said[gpu])


def _install(runtime: Runtime, blas: Blas, tree: Path) -> Path:
    """Copy a library and its folder from the chroot, as links, and return the tree."""
    shutil.rmtree(tree, ignore_errors=True)
    source = chroot_of(runtime) / LIBRARIES_FOLDER.relative_to("/")
    shutil.copytree(source / blas.kind, tree / "lib" / blas.kind, copy_function=os.link)
    os.link((source / blas.library).resolve(), tree / "lib" / blas.library)
    return tree


def _retarget(original: Path, edit: str, rocm: str) -> Path:
    tree = original.with_name("retargeted")
    shutil.rmtree(tree, ignore_errors=True)
    options = ["--output", str(tree), "--compress", "--rocm", rocm]
    words = [sys.executable, "-m", "rocwheel", "device", "retarget", edit, str(original), *options]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        # Without code to offer, there is nothing to do.
        print(done.stderr.strip().rpartition("\n")[2], file=sys.stderr)
        return original
    return tree


def _verdicts(tree: Path, gpus: Sequence[TargetId], rocm: str) -> dict[TargetId, list[str]]:
    """Return what each GPU lacks of a library and its folder."""
    lacking: dict[TargetId, list[str]] = defaultdict(list)
    for verdict in opened_verdicts(judge_files([tree], gpus, rocm=rocm)):
        if verdict.runtime is Rules.STOCK and not verdict.runs:
            reasons = [verdict.lack.found] if verdict.lack else [use.reason for use in verdict.uses if not use.code]
            lacking[verdict.gpu].append(f"{verdict.place or verdict.path}: {'; '.join(reasons)}")
    return lacking


def _ask(
    runtime: Runtime, folder: Path, gpu: TargetId, blas: Blas, tree: Path, form: str, lacking: Sequence[str]
) -> Cell:
    machine = write_machine(folder / "machines/blas", [gpu])
    inside = Path("/mnt/work") if runtime.chroot else folder
    library = inside / tree.relative_to(folder) / "lib" / blas.library
    (folder / "output/counts").unlink(missing_ok=True)
    ended = run(runtime, folder, machine, ["gemm.py", runtime.library, blas.kind, str(library)])
    calls = [msgspec.json.decode(line, type=_Call) for line in ended.output.splitlines() if line.startswith("{")]
    failed = next((call for call in calls if call.status), None)
    counts = folder / "output/counts"
    lines = counts.read_bytes().splitlines() if counts.exists() else []
    dispatched = any(msgspec.json.decode(line, type=_Counts).dispatches for line in lines)
    took = any(call.call == "gemm" for call in calls) and not failed and dispatched
    how = "" if calls else f"no answer: {ended.how}"
    if not took and calls:
        how = f"{failed.call} gives {failed.status}" if failed else f"{calls[-1].call}, then {ended.how}"
    status = 0 if took else failed.status if failed else None
    return Cell(
        runtime.name,
        str(gpu),
        form,
        status,
        how,
        "a GEMM" if took else "",
        "" if lacking else "a GEMM",
        "; ".join(lacking)[:300],
    )
