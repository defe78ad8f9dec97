"""Libraries of published wheels, whose run path is changed and put back: the loader opens them as it did before."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from corpora.files import wheel_files
from corpora.row import Difference, Row
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.runpath.edit import plan_runpath
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files.file_range import FileRange
from rocwheel.foundation.files.file_view import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.binary.elf.facts import Elf

__all__ = ["change_run_paths", "check_libraries"]

_OPEN_EACH = Path(__file__).with_name("open_each.py")
_LONG: Final = "/nonexistent/" + "rocwheel" * 20
_X86_64 = 62


def change_run_paths() -> Row:
    """Change the run path of every library of the published wheels, twice, and open it before and after each."""
    files = answers = 0
    found: list[Difference] = []
    for group in wheel_files("elf"):
        libraries = [(path, label) for path, label in group if _is_library(path)]
        files += len(libraries)
        opened, differences = check_libraries(libraries)
        answers += opened
        found += differences
    return Row("run-paths", files, answers, tuple(sorted(found)))


def _is_library(path: Path) -> bool:
    try:
        elf = _facts(path)
    except InputError:
        return False
    return elf.is_shared_library and elf.is_dynamic and elf.machine == _X86_64


def _facts(path: Path) -> Elf:
    with FileRange.whole(path).view() as data:
        return read_elf(data, name=str(path))


def check_libraries(libraries: Sequence[tuple[Path, str]]) -> tuple[int, list[Difference]]:
    """Change libraries where they are, all at once; return how often one was opened, and where that went otherwise.

    First each gets a long folder behind its run path, or a run path where it had none; then the old one again, or none.
    """
    paths = [path for path, _ in libraries]
    before = {path: _facts(path) for path in paths}
    said = _open(paths)
    found: list[Difference] = []
    for step, values in enumerate((_longer(before), _old(before))):
        for path, label in libraries:
            found += _edit(path, label, *values[path])
        found += [
            Difference("run-paths", label, "ld.so", ("changed", "put back")[step], f"{old!r} and {new!r}")
            for (_, label), old, new in zip(libraries, said, _open(paths), strict=True)
            if new != old
        ]
    return 3 * len(paths) - sum(text != "" for text in said), found


def _longer(before: dict[Path, Elf]) -> dict[Path, tuple[str, RunpathTag]]:
    return {
        path: (f"{elf.run_path}:{_LONG}" if elf.run_path else _LONG, elf.run_path_tag or RunpathTag.RUNPATH)
        for path, elf in before.items()
    }


def _old(before: dict[Path, Elf]) -> dict[Path, tuple[str, RunpathTag]]:
    return {path: (elf.run_path or "", elf.run_path_tag or RunpathTag.RUNPATH) for path, elf in before.items()}


def _edit(path: Path, label: str, value: str, tag: RunpathTag) -> list[Difference]:
    """Change one file, and return what is wrong with what it says afterwards."""
    try:
        old = path.read_bytes()
        patch = plan_runpath(old, value, tag, name=str(path))
        new = b"".join(bytes(load(buffer)) for buffer in patch.apply(memoryview(old)))
    except InputError as e:
        return [Difference("run-paths", label, "rocwheel", "refused", str(e).replace(str(path), "FILE"))]
    path.write_bytes(new)
    elf = _facts(path)
    written = elf.run_path or ""
    return [] if written == value else [Difference("run-paths", label, "rocwheel", "written", f"{written} and {value}")]


def _open(paths: Iterable[Path]) -> list[str]:
    """Return what the real loader says of each library, without the addresses in it."""
    lines = "".join(f"{path}\n" for path in paths)
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    command = [sys.executable, "-SE", str(_OPEN_EACH)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, env=environment, cwd="/")
    return [re.sub(r"0x[0-9a-f]+", "ADDRESS", json.loads(line)) for line in done.stdout.splitlines()]
