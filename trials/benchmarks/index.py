"""``rocwheel index`` over 10,000 small wheels: the first time, with one more, with nothing new; dumb-pypi beside."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
import zipfile
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rocwheel.wheels.record import RecordRow, render_record
from trials.benchmarks.measure import CACHE, Run, machine, markdown_table, median_run, run_measured

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["main"]

_WORK = CACHE / "bench-index"
_COUNT = 10_000
_ROUNDS = 3
_READ, _STATS = "Python reads and hashes the wheels", "Python asks for the dates of all files"
_READING = """
import hashlib, os, sys
for entry in os.scandir(sys.argv[1] + "/dist"):
    if entry.name.endswith(".whl"):
        with open(entry.path, "rb") as file:
            hashlib.sha256(file.read()).hexdigest()
"""
"""The least that a first run does."""
_LOOKING = """
import os, sys
for entry in os.scandir(sys.argv[1] + "/dist"):
    entry.stat()
for entry in os.scandir(sys.argv[1] + "/simple"):
    if entry.is_dir():
        for path in (entry.path, entry.path + "/index.html", entry.path + "/index.json"):
            os.lstat(path)
"""
"""The least that every run does: a wheel, its metadata, its project's folder and both pages may have changed."""
_DUMB = "dumb-pypi, with hashes and dates made for it"
_HEADER = ("", "wall s", "CPU s", "resident MB")


def main() -> None:
    """Print the table; the command fails at once where dumb-pypi is missing."""
    if find_spec("dumb_pypi") is None:
        sys.exit("dumb-pypi, which is measured beside, is not installed: run make setup, which installs the extra dev")
    print(f"{machine()}; {_COUNT} wheels of one project each; medians of {_ROUNDS} rounds\n", flush=True)
    try:
        rounds = [_round() for _ in range(_ROUNDS)]
    finally:
        shutil.rmtree(_WORK, ignore_errors=True)
    names = (
        "all new", "one more", "nothing new, the first time after it", "nothing new", _READ, _STATS, _DUMB,
        f"{_DUMB}, one more",
    )  # fmt: skip
    print(markdown_table(_HEADER, [_row(name, [runs[at] for runs in rounds]) for at, name in enumerate(names)]))


def _round() -> tuple[Run, ...]:
    shutil.rmtree(_WORK, ignore_errors=True)
    for number in range(_COUNT):
        _make_wheel(number)
    runs = []
    for prepare in (_settle, _settle, _add_one, _settle):
        prepare()
        runs.append(_index())
    first, compared, more, nothing = runs
    floors = [_python(program) for program in (_READING, _LOOKING)]
    shutil.rmtree(_WORK / "simple")
    return first, more, compared, nothing, *floors, _dumb_pypi(), _dumb_pypi(previous=True)


def _settle() -> None:
    """Wait: what was written just before it is read is read again, for a clock may not tell the two apart."""
    time.sleep(3)


def _add_one() -> None:
    _make_wheel(_COUNT)
    _settle()


def _make_wheel(number: int) -> Path:
    name = f"p{number:05d}"
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": b"x = 1\n" * 500,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [RecordRow(name, hashlib.sha256(data).digest(), len(data)) for name, data in files.items()]
    files[f"{info}/RECORD"] = render_record(rows, f"{info}/RECORD")
    path = _WORK / "dist" / f"{name}-1.0-py3-none-any.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in files.items():
            archive.writestr(member, data)
    return path


def _index() -> Run:
    command = [sys.executable, "-m", "rocwheel", "index", str(_WORK / "dist"), "--quiet"]
    # As where rocwheel is installed: without bytecode, compiling it would be half of the work.
    return run_measured(command, watched=[], environment={"PYTHONDONTWRITEBYTECODE": ""})


def _python(program: str) -> Run:
    return run_measured([sys.executable, "-c", program, str(_WORK)], watched=[], environment={})


def _dumb_pypi(*, previous: bool = False) -> Run:
    """Run dumb-pypi with what it takes: a list of the files, with what its user has to know of each.

    It reads no distributions: hashes, metadata and dates are the work of whoever calls it, and are not measured here.
    """
    before, packages = _WORK / "before.json", _WORK / "packages.json"
    if previous:
        shutil.copy(packages, before)
        _make_wheel(_COUNT + 1)
    lines = [json.dumps(_described(path)) for path in sorted((_WORK / "dist").glob("*.whl"))]
    packages.write_text("\n".join(lines))
    more = ["--previous-package-list-json", str(before)] if previous else []
    command = [sys.executable, "-m", "dumb_pypi.main", "--package-list-json", str(packages)]
    command += ["--packages-url", "../../dist/", "--output-dir", str(_WORK / "dumb"), "--no-generate-timestamp", *more]
    return run_measured(command, watched=[], environment={"PYTHONDONTWRITEBYTECODE": ""})


def _described(path: Path) -> dict[str, object]:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"filename": path.name, "hash": f"sha256={digest}", "upload_timestamp": int(path.stat().st_mtime)}


def _row(name: str, runs: list[Run]) -> tuple[str, ...]:
    run = median_run(runs)
    return name, f"{run.wall:.1f}", f"{run.cpu:.1f}", f"{run.resident / 1e6:.0f}"
