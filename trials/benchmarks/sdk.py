"""What it costs to ask an installed SDK: ``import rocm_sdk`` and ``rocm-sdk version``, beside Python's own start."""

from __future__ import annotations

import statistics
import subprocess
import sys
from typing import TYPE_CHECKING

from trials.benchmarks.measure import CACHE, machine, markdown_table, run_measured

if TYPE_CHECKING:
    from pathlib import Path

    from trials.benchmarks.measure import Run

__all__ = ["main"]

_ROUNDS = 40
_TIMED_IMPORT = "import time; start = time.perf_counter(); import rocm_sdk; print(time.perf_counter() - start)"


def main() -> None:
    """Print the table."""
    environment = _installed_demo()
    print(f"{machine()}; medians of {_ROUNDS} rounds, milliseconds\n", flush=True)
    commands = {
        "`python -c pass` (the floor)": [environment / "python", "-c", "pass"],
        "`python -c 'import rocm_sdk'`": [environment / "python", "-c", "import rocm_sdk"],
        "`rocm-sdk version`": [environment / "rocm-sdk", "version"],
    }
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    imports = []
    for _ in range(_ROUNDS):
        for name, command in commands.items():
            runs[name].append(run_measured(list(map(str, command)), watched=(), environment={}))
        imports.append(_import_time(environment / "python"))
    rows = [_row(name, taken) for name, taken in runs.items()]
    rows.append(("`import rocm_sdk` in a running Python", f"{1000 * statistics.median(imports):.1f}", ""))
    print(markdown_table(("", "wall", "CPU"), rows))


def _installed_demo() -> Path:
    """Return the ``bin`` folder of an environment with the sample SDK's packages, made on the first run."""
    demo = CACHE / "bench" / "demo"
    if not (demo / "env/bin/rocm-sdk").exists():
        command = [sys.executable, "-m", "rocwheel", "demo", "--dest-dir", str(demo), "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return demo / "env" / "bin"


def _import_time(python: Path) -> float:
    return float(subprocess.run([python, "-c", _TIMED_IMPORT], check=True, capture_output=True, text=True).stdout)


def _row(name: str, runs: list[Run]) -> tuple[str, str, str]:
    wall = statistics.median(run.wall for run in runs)
    cpu = statistics.median(run.cpu for run in runs)
    return name, f"{1000 * wall:.1f}", f"{1000 * cpu:.1f}"


if __name__ == "__main__":
    main()
