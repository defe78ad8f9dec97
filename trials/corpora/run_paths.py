"""Libraries of published wheels, whose run path is changed and put back: the loader opens them as it did before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.runpath import plan_runpath
from rocwheel.core.errors import InputError
from rocwheel.core.reading import load
from trials.corpora.files import wheel_files
from trials.corpora.opening import elf_facts, is_library, open_libraries
from trials.corpora.row import Difference, Row

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rocwheel.binary.elf.facts import Elf

__all__ = ["change_run_paths", "check_libraries"]

_LONG: Final = "/nonexistent/" + "rocwheel" * 20


def change_run_paths() -> Row:
    """Change the run path of every library of the published wheels, twice, and open it before and after each."""
    files = 0
    found: list[Difference] = []
    for group in wheel_files("elf"):
        libraries = [(path, label) for path, label in group if is_library(path)]
        files += len(libraries)
        found += check_libraries(libraries)
    return Row("run-paths", files, 2 * files, tuple(sorted(found)))


def check_libraries(libraries: Sequence[tuple[Path, str]]) -> list[Difference]:
    """Change libraries where they are, all at once, and return where opening them went otherwise than before.

    First each gets a long folder behind its run path, or a run path where it had none; then the old one again, or none.
    """
    paths = [path for path, _ in libraries]
    before = {path: elf_facts(path) for path in paths}
    said = open_libraries(paths)
    found: list[Difference] = []
    for step, values in enumerate((_longer(before), _old(before))):
        for path, label in libraries:
            found += _edit(path, label, *values[path])
        found += [
            Difference("run-paths", label, "ld.so", ("changed", "put back")[step], f"{old!r} and {new!r}")
            for (_, label), old, new in zip(libraries, said, open_libraries(paths), strict=True)
            if new != old
        ]
    return found


def _longer(before: dict[Path, Elf]) -> dict[Path, tuple[str, RunpathTag]]:
    """Return the run paths to give at first: RPATH where there is none, since a RUNPATH shuts that of the user out."""
    return {
        path: (f"{elf.run_path}:{_LONG}" if elf.run_path else _LONG, elf.run_path_tag or RunpathTag.RPATH)
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
    elf = elf_facts(path)
    written = elf.run_path or ""
    return [] if written == value else [Difference("run-paths", label, "rocwheel", "written", f"{written} and {value}")]
