"""Which libraries the loader finds for each file of the published wheels, and which the model says it finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.host import FileSystem, HostLibraries
from tests.support.reality import (
    list_libraries,
    loadable_files,
    model_libraries,
    model_undefined_symbols,
    undefined_symbols,
)
from trials.corpora.compare import show
from trials.corpora.row import Difference, Row
from trials.corpora.wheels import local_wheels, unpack_all

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["compare_loaders", "compare_tree"]


def compare_loaders() -> Row:
    """Compare the model of the loader with the loader, over every program and library of the wheels for Linux."""
    files = 0
    found: list[Difference] = []
    for wheel, folder in unpack_all(local_wheels("linux")):
        number, differences = compare_tree(folder, "-".join(wheel.name.split("-")[:2]))
        files += number
        found += differences
    return Row("loader", files, 2 * files, tuple(sorted(found)))


def compare_tree(folder: Path, name: str) -> tuple[int, list[Difference]]:
    """Return how many files below a folder were compared, and where the loader and the model differ."""
    disk = FileSystem()
    system = HostLibraries(disk)
    files = 0
    found = []
    for path in loadable_files(folder, disk):
        real = list_libraries(path)
        if real is None:
            continue
        files += 1
        answers = {
            "libraries": (_inside(model_libraries(path, disk, system), folder), _inside(real, folder)),
            "undefined symbols": (model_undefined_symbols(path, disk, system), undefined_symbols(path)),
        }
        label = f"{name}!{path.relative_to(folder)}"
        found += [
            Difference("loader", label, "ld.so", fact, show(_shown(ours), _shown(theirs)))
            for fact, (ours, theirs) in answers.items()
            if ours != theirs
        ]
    return files, found


def _inside(libraries: dict[str, str] | None, folder: Path) -> dict[str, str] | None:
    return libraries and {name: path.replace(str(folder), "") for name, path in libraries.items()}


def _shown(answer: dict[str, str] | set[str] | None) -> object:
    return list(answer.items()) if isinstance(answer, dict) else answer
