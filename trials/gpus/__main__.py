"""``python -m trials.gpus [RELEASE ...]``: fill the table for these runtimes (5.2, 6.4, 7.2), or for all.

Each file of ``forms.py`` is loaded on each GPU by an unmodified HIP under the stand-in for the kernel driver, and the
result is compared with ``rocwheel targets runs-on``. The exit status is 1 if they differ. ``--record`` writes the table
to docs/gpus.md, and ``--few`` asks only six GPUs. Needs gcc, and root for the chroots of sid and experimental.
"""

from __future__ import annotations

import sys
import time
from resource import RUSAGE_CHILDREN, getrusage
from typing import TYPE_CHECKING

from tests.support.given_words import read_words
from tests.support.places import CACHE
from trials.gpus.blas import BLAS_GPUS, fill_blas
from trials.gpus.forms import FORMS, SHARED_FORMS
from trials.gpus.page import Cost, add_run
from trials.gpus.runtimes import RUNTIMES, prepare, why_not
from trials.gpus.table import FEW_GPUS, MACHINES, all_gpus, fill, fill_machines, summary

if TYPE_CHECKING:
    from trials.gpus.table import Cell


def main(words: list[str]) -> int:
    """Fill the table, print where the runtimes and the rules differ, and return 1 if they do."""
    try:
        options, names = read_words(words, ("--record", "--few"), [one.rocm for one in RUNTIMES], "release")
    except ValueError as e:
        print(e, file=sys.stderr)
        return 2
    cells: list[Cell] = []
    for runtime in RUNTIMES:
        if runtime.rocm not in names:
            continue
        reason = why_not(runtime)
        if reason:
            print(f"{runtime.name}: can't be asked: {reason}", file=sys.stderr)
            return 2
        folder = CACHE / "gpus/run" / runtime.rocm
        folder.mkdir(parents=True, exist_ok=True)
        prepare(runtime, folder)
        begun, before = time.monotonic(), getrusage(RUSAGE_CHILDREN)
        gpus = FEW_GPUS if "--few" in options else all_gpus()
        own: list[Cell] = []
        for number, gpu in enumerate(gpus, 1):
            own += fill(runtime, folder, [gpu], tuple(FORMS))
            print(f"{runtime.name}: {gpu} ({number} of {len(gpus)})", file=sys.stderr, flush=True)
        for machine in () if "--few" in options else MACHINES:
            own += fill_machines(runtime, folder, [machine], SHARED_FORMS)
            print(f"{runtime.name}: {' and '.join(map(str, machine))}", file=sys.stderr, flush=True)
        for cell in () if "--few" in options else fill_blas(runtime, folder, BLAS_GPUS):
            own.append(cell)
            print(f"{runtime.name}: {cell.form} on {cell.gpu}", file=sys.stderr, flush=True)
        after, seconds = getrusage(RUSAGE_CHILDREN), time.monotonic() - begun
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        cost = Cost(round(seconds), round(processor), after.ru_maxrss >> 10)
        print(f"{runtime.name}: {cost}", file=sys.stderr)
        cells += own
        if "--record" in options:
            add_run(own, cost)
    print("\n".join(summary(cells)))
    return 0 if all(cell.agrees for cell in cells) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
