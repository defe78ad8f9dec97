"""``rocwheel build`` with device code compressed or split, beside the default, and what users download and install."""

from __future__ import annotations

import zipfile

from rich.filesize import decimal

from trials.benchmarks.build import HEADER, OUTPUT, measure_build, run_row
from trials.benchmarks.measure import Run, folder_size, machine, markdown_table, median_run
from trials.benchmarks.tree import make_tree

__all__ = ["main"]

_ROUNDS = 3
_FORMS = {
    "default": (),
    "`--device-code compress --devel-compression zst`": (
        "--device-code",
        "compress",
        "--devel-compression",
        "zst",
        "--rocm",
        "6.2",
    ),
    "`--split-device --devel-compression zst`": ("--split-device", "--devel-compression", "zst"),
    "`--split-device=overlay --devel-compression zst`": ("--split-device=overlay", "--devel-compression", "zst"),
    "`--split-device=overlay --device-code trim --devel-compression zst`": (
        "--split-device=overlay",
        "--device-code",
        "trim",
        "--devel-compression",
        "zst",
        "--rocm",
        "6.2",
    ),
}
_USED = ("rocm_sdk_core", "rocm_sdk_libraries", "rocm_sdk_device_gfx906")
"""The packages that ``rocm[libraries,device-gfx906]`` brings; sets without device packages lack the last."""


def main() -> None:
    """Print a table of builds, and one of what somebody with a gfx906 downloads and has on disk."""
    tree = make_tree()
    print(f"{machine()}; {decimal(folder_size(tree))} of artifacts; medians of {_ROUNDS} rounds\n", flush=True)
    measure_build(tree)  # Not counted: it warms the page cache.
    runs: dict[str, list[Run]] = {name: [] for name in _FORMS}
    sizes = {}
    for _ in range(_ROUNDS):
        for name, options in _FORMS.items():
            runs[name].append(measure_build(tree, *options))
            sizes[name] = _user_sizes()
    medians = {name: median_run(done) for name, done in runs.items()}
    print(markdown_table(HEADER, [row for name in _FORMS for row in _rows(name, medians)]))
    header = ("`rocm[libraries,device-gfx906]`", "downloaded bytes", "installed bytes")
    print("\n" + markdown_table(header, [(name, f"{got:,}", f"{kept:,}") for name, (got, kept) in sizes.items()]))


def _rows(name: str, medians: dict[str, Run]) -> list[tuple[str, ...]]:
    run, default = medians[name], medians["default"]
    ratio = (
        f"{run.wall / default.wall:.2f}",
        f"{run.cpu / default.cpu:.2f}",
        "",
        "",
        f"{run.output / default.output:.3f}",
    )
    return [run_row(name, run), *([(f"{name} : default", *ratio)] if run is not default else [])]


def _user_sizes() -> tuple[int, int]:
    """Return the bytes of the wheels that are downloaded, and those of the files in them."""
    wheels = [path for name in _USED for path in OUTPUT.rglob(f"{name}-*.whl")]
    files = [info.file_size for path in wheels for info in zipfile.ZipFile(path).infolist()]
    return sum(path.stat().st_size for path in wheels), sum(files)
