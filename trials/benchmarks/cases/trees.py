"""Commands on trees: artifacts of many small files, and folders of many libraries."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from tests.support.libraries import Lib, build_tree
from trials.benchmarks.cases.case import Case, floor, rocwheel, tool

if TYPE_CHECKING:
    from pathlib import Path

    from trials.benchmarks.cases.case import Words

__all__ = ["CASES", "make_artifacts"]

_FILES = (1, 1_000, 2_000, 4_000, 8_000)
_LIBRARIES = (1, 500, 1_000, 2_000, 4_000)
_RUN_PATH = "$ORIGIN:$ORIGIN/../lib/rocm"
_LINE = "#define VALUE_{number} {number}\n"


def make_artifacts(folder: Path, size: int) -> None:
    """Write artifacts with so many headers of about 4 KiB for the devel package, and one library."""
    for name, below in (("base_lib_generic", "lib"), ("base_dev_generic", "include/many"), ("blas_lib_generic", "lib")):
        component = folder / "artifacts" / name
        (component / "stage" / below).mkdir(parents=True)
        (component / "artifact_manifest.txt").write_text("stage\n")
    artifacts = folder / "artifacts"
    build_tree(artifacts / "base_lib_generic/stage", Lib("lib/libbase.so.1"))
    build_tree(artifacts / "blas_lib_generic/stage", Lib("lib/libblas.so.1", ("libbase.so.1",)))
    shutil.rmtree(artifacts / "blas_lib_generic/stage-stand-ins")
    for number in range(size):
        header = artifacts / "base_dev_generic/stage/include/many" / f"{number % 50:02d}" / f"{number}.h"
        header.parent.mkdir(exist_ok=True)
        header.write_text(_LINE.format(number=number) * 150)


def _make_two(folder: Path, size: int) -> None:
    """Write artifacts of two builds, the same files."""
    make_artifacts(folder / "one", size)
    make_artifacts(folder / "two", size)


def _make_cached(folder: Path, size: int) -> None:
    """Write artifacts, and build them once with a cache."""
    make_artifacts(folder, size)
    environ = {**os.environ, "ROCWHEEL_CACHE_DIR": str(folder / "cache")}
    subprocess.run(_build(folder), check=True, env=environ, stdout=subprocess.DEVNULL)


def _build(folder: Path) -> Words:
    options = ("--cache", "--version", "7.0.0", "-d", folder / "packages")
    return rocwheel("build", "--artifact-dir", folder / "artifacts", *options)


def _make_libraries(folder: Path, size: int) -> None:
    """Link one library, and copy it."""
    data = (build_tree(folder, Lib("one.so", run_path="/opt/rocm/lib")) / "one.so").read_bytes()
    (folder / "one.so").unlink()
    (folder / "lib").mkdir()
    for number in range(size):
        (folder / f"lib/lib{number}.so").write_bytes(data)


def _copy_libraries(folder: Path, out: Path) -> None:
    """Patchelf changes files in place."""
    (out / "lib").mkdir()
    for path in (folder / "lib").iterdir():
        (out / "lib" / path.name).write_bytes(path.read_bytes())


def _libraries(folder: Path) -> list[Path]:
    return sorted((folder / "lib").iterdir())


CASES = (
    Case(
        "plan", "files", _FILES, make_artifacts,
        lambda folder, _: rocwheel("build", "--dry-run", folder / "artifacts", "--version", "7.0.0"),
        lambda folder, _: floor("heads", folder / "artifacts"),
    ),
    Case(
        "build", "files", _FILES, make_artifacts,
        lambda folder, out: rocwheel(
            "build", "--artifact-dir", folder / "artifacts", "--version", "7.0.0", "--no-cache",
            "-d", out / "packages"),
        lambda folder, out: floor("compress", folder / "artifacts", out),
    ),
    Case(
        "build --cache, again", "files", _FILES, _make_cached,
        lambda folder, _: _build(folder), lambda folder, _: floor("hash", folder / "packages"),
    ),
    Case(
        "artifacts archive", "files", _FILES, make_artifacts,
        lambda folder, out: rocwheel("artifacts", "archive", folder / "artifacts", "-d", out / "archives"),
        lambda folder, out: floor("compress", folder / "artifacts", out),
        {"tar --zstd": lambda folder, out: tool(
            "tar", "-C", folder, "--zstd", "-cf", out / "all.tar.zst", "artifacts")},
    ),
    Case(
        "artifacts merge", "files in each build", _FILES, _make_two,
        lambda folder, out: rocwheel(
            "artifacts", "merge", folder / "one/artifacts", folder / "two/artifacts",
            "--primary", folder / "one/artifacts", "-d", out / "merged"),
        lambda folder, out: floor("copy", folder / "one", out),
    ),
    Case(
        "runpath show", "libraries", _LIBRARIES, _make_libraries,
        lambda folder, _: rocwheel("runpath", "show", *_libraries(folder)),
        lambda folder, _: floor("heads", folder / "lib"),
        {"patchelf --print-rpath": lambda folder, _: tool("patchelf", "--print-rpath", *_libraries(folder)),
         "readelf --dynamic": lambda folder, _: tool("readelf", "--dynamic", *_libraries(folder))},
    ),
    Case(
        "runpath set", "libraries", _LIBRARIES, _make_libraries,
        lambda folder, out: rocwheel("runpath", "set", _RUN_PATH, *_libraries(folder), "-d", out / "changed"),
        lambda folder, out: floor("replace", folder / "lib", out),
        {"patchelf --set-rpath": lambda _, out: tool(
            "patchelf", "--set-rpath", _RUN_PATH, *sorted((out / "lib").iterdir())),
         "the floor, with each file synced": lambda folder, out: floor("replace-synced", folder / "lib", out)},
        prepare=_copy_libraries,
    ),
)  # fmt: skip
"""Before and while packages are made."""
