"""A simple index as a tree of static files, for ``file://`` and for any web server."""

from __future__ import annotations

import enum
import os
import secrets
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

import msgspec

from rocwheel.distributions.index.entry import SUFFIXES, IndexEntry, read_entry
from rocwheel.distributions.index.previous import PAGES, check_pages, read_previous, remove_stale
from rocwheel.distributions.index.simple_pages import Page, group_by_project, make_project_page, make_root_page
from rocwheel.foundation.atomic_file import atomic_file
from rocwheel.foundation.errors import InputError, ProblemsError, RocwheelError, WorkError
from rocwheel.foundation.progress import SILENT, Progress

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FilePlacement", "IndexReport", "default_output", "write_index"]


class FilePlacement(enum.Enum):
    """Where the files that an index lists are."""

    RELATIVE = "relative"
    """In the folder of distributions; pages link to them."""
    HARDLINK = "hardlink"
    """In the index, as hard links to them."""
    COPY = "copy"
    """In the index, as copies."""

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        parameter, names = "files", ", ".join(placement.value for placement in cls)
        raise InputError(parameter, f"is {value!r}", expected=f"one of {names}")


class IndexReport(msgspec.Struct, frozen=True):
    """What an index holds."""

    output: str
    projects: dict[str, list[str]]
    """File names by project."""
    ignored: tuple[str, ...]
    """Names in the folder that are neither wheels nor sdists."""


def default_output(dist_dir: Path) -> Path:
    """Return the absolute path where the index of ``dist_dir`` goes by default: folders side by side have one each."""
    folder = dist_dir.resolve()
    return folder.parent / ("simple" if folder.name in ("dist", "") else f"simple-{folder.name}")


def write_index(
    dist_dir: Path,
    output: Path,
    *,
    placement: FilePlacement = FilePlacement.RELATIVE,
    progress: Progress = SILENT,
) -> IndexReport:
    """Write a simple index over the wheels and sdists that stand in ``dist_dir`` into the folder ``output``.

    Each page is replaced as a whole, after the files that it lists: a reader sees each project either as it was or as
    it is now. Core metadata stands next to each file as ``FILE.metadata``. Only what an earlier run has written is
    replaced or removed.

    Raises `ProblemsError` with everything that is wrong in ``dist_dir``, before anything is written; `InputError` for
    folders that can't be used; `WorkError` when the index can't be written.
    """
    names, ignored = _list_folder(dist_dir)
    _check_places(dist_dir, output, placement)
    projects = group_by_project(_read_all(dist_dir, names, progress))
    check_pages(output, projects)
    previous = read_previous(output)
    base = _find_base(dist_dir, output) if placement is FilePlacement.RELATIVE else ""
    for project, found in projects.items():
        _place_files(dist_dir, found, output / project, placement)
        _write_page(output / project, make_project_page(project, found, base))
    remove_stale(dist_dir, output, previous, _name_wanted(projects, placement))
    # Last: if this run is killed, the old root still lists all that the next run has to remove.
    _write_page(output, make_root_page(projects))
    files = {project: [item.filename for item in found] for project, found in projects.items()}
    return IndexReport(str(output), files, tuple(ignored))


def _name_wanted(projects: dict[str, list[IndexEntry]], placement: FilePlacement) -> dict[str, set[str]]:
    """Return the names that belong in each project's folder."""
    wanted = {project: {*PAGES} for project in projects}
    if placement is not FilePlacement.RELATIVE:
        for project, found in projects.items():
            wanted[project].update(item.filename for item in found)
            wanted[project].update(f"{item.filename}.metadata" for item in found if item.metadata is not None)
    return wanted


def _list_folder(dist_dir: Path) -> tuple[list[str], list[str]]:
    try:
        names = sorted(entry.name for entry in os.scandir(dist_dir) if not entry.is_dir())
    except OSError as e:
        remedy = "Give the folder that holds the wheels and sdists."
        raise InputError(dist_dir, f"cannot be listed ({e.strerror})", remedy=remedy) from e
    wanted = [name for name in names if name.endswith(SUFFIXES) and not name.startswith(".")]
    if not wanted:
        raise InputError(dist_dir, "holds no distributions", expected="*.whl or *.tar.gz files")
    return wanted, [name for name in names if name not in wanted and not name.endswith(".metadata")]


def _check_places(dist_dir: Path, output: Path, placement: FilePlacement) -> None:
    check_pages(output)
    if placement is FilePlacement.RELATIVE and not dist_dir.resolve().is_relative_to(output.resolve().parent):
        remedy = (
            "Write the index next to the folder or above it, or put the files into it with --files hardlink or copy."
        )
        raise InputError(output, f"a web server for it would not serve {dist_dir.resolve()}", remedy=remedy)


def _read_all(dist_dir: Path, names: list[str], progress: Progress) -> list[IndexEntry]:
    progress.begin("hashing", sum(_find_size(dist_dir / name) for name in names))
    distributions: list[IndexEntry] = []
    problems: list[RocwheelError] = []
    with ThreadPoolExecutor() as executor:
        for result in executor.map(_try_reading, (dist_dir / name for name in names)):
            if isinstance(result, IndexEntry):
                distributions.append(result)
                progress.advance(result.size)
            else:
                problems.append(result)
    progress.end()
    problems += _find_doubles(dist_dir, distributions)
    if problems:
        raise ProblemsError(str(dist_dir), problems)
    return distributions


def _try_reading(path: Path) -> IndexEntry | RocwheelError:
    try:
        return read_entry(path)
    except RocwheelError as e:
        return e


def _find_size(path: Path) -> int:
    # The reader reports a link to nothing, with all other problems.
    return path.stat().st_size if path.exists() else 0


def _find_doubles(dist_dir: Path, distributions: list[IndexEntry]) -> list[RocwheelError]:
    problems: list[RocwheelError] = []
    seen: dict[tuple[str, str], str] = {}
    for found in distributions:
        first = seen.setdefault((found.project, found.identity), found.filename)
        if first != found.filename:
            what = f"the same distribution as {first} under another name"
            problems.append(InputError(dist_dir / found.filename, what, remedy="Remove one of the two."))
    return problems


def _find_base(dist_dir: Path, output: Path) -> str:
    relative = os.path.relpath(dist_dir.resolve(), output.resolve() / "project")
    return f"{relative}/"


def _place_files(dist_dir: Path, found: list[IndexEntry], folder: Path, placement: FilePlacement) -> None:
    target = dist_dir if placement is FilePlacement.RELATIVE else folder
    for distribution in found:
        if placement is not FilePlacement.RELATIVE:
            _place_file(dist_dir / distribution.filename, folder / distribution.filename, placement)
        if distribution.metadata is not None:
            _write_changed(target / f"{distribution.filename}.metadata", distribution.metadata)


def _place_file(source: Path, target: Path, placement: FilePlacement) -> None:
    if placement is FilePlacement.COPY:
        with source.open("rb") as reader, atomic_file(target) as writer:
            shutil.copyfileobj(reader, writer, 1 << 20)
    else:
        _hardlink(source, target)


def _hardlink(source: Path, target: Path) -> None:
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.hardlink_to(source)
        try:
            temporary.replace(target)
        finally:
            # Renaming one name of a file onto another of the same file does nothing.
            temporary.unlink(missing_ok=True)
    except OSError as e:
        remedy = "Use --files copy when the folders are on different file systems."
        raise WorkError(target, f"cannot be a hard link to {source} ({e.strerror})", remedy=remedy) from e


def _write_page(folder: Path, page: Page) -> None:
    _write_changed(folder / "index.json", page.json)
    _write_changed(folder / "index.html", page.html)


def _write_changed(path: Path, data: bytes) -> None:
    """Write a file unless it holds ``data`` already, so that web caches and syncs see no change."""
    with suppress(OSError):
        if path.read_bytes() == data:
            return
    with atomic_file(path) as file:
        file.write(data)
