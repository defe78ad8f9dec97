"""Joins a host folder and target folders into one tree, with the device code restored in its libraries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.kind import is_kpack
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.patch import write_patch
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import FileRange, have_same_bytes
from rocwheel.core.workers import attempt_all, map_collecting, raise_all
from rocwheel.core.writing import new_folder
from rocwheel.device.edit_tree import copy_file, copy_status
from rocwheel.device.split.joining import Joins, JoinStorage, plan_join, plan_joins
from rocwheel.device.split.split_tree import TreeListing, list_source
from rocwheel.device.split.splitting import NamedFile
from rocwheel.device.split.units import ARCHIVE_FOLDER
from rocwheel.wheels.binaries import is_given_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Overlay(msgspec.Struct, frozen=True, kw_only=True):
    """The combined content of several trees, keyed by path below their roots.

    If several trees have the same path, the first tree wins.
    """

    root_of: dict[str, Path]
    """The root of the tree that contains each folder, link, file, and alias."""
    folders: tuple[str, ...]
    links: tuple[str, ...]
    files: tuple[NamedFile, ...]
    aliases: dict[str, str]


def lay_over(host: Path, devices: Sequence[Path]) -> Overlay:
    """List ``host``, a tree or a file, and the trees ``devices`` as one tree.

    Raises `InputError` for a path with different contents in two trees, and `ProblemsError` for several such paths.
    """
    listings = [list_source(source) for source in (host, *devices)]
    raise_all(str(host), list(_conflicts(listings)))
    root_of: dict[str, Path] = {}
    aliases: dict[str, str] = {}
    files: dict[str, NamedFile] = {}
    for listing in listings:
        aliases |= {alias: first for alias, first in listing.aliases.items() if alias not in root_of}
        files = {file.path: file for file in listing.files} | files
        for path in (*listing.folders, *listing.links, *files, *listing.aliases):
            root_of.setdefault(path, listing.root)
    return Overlay(
        root_of=root_of,
        folders=tuple(sorted({folder for listing in listings for folder in listing.folders})),
        links=tuple(sorted({link for listing in listings for link in listing.links})),
        files=tuple(files[path] for path in sorted(files) if path not in aliases),
        aliases=aliases,
    )


def _conflicts(listings: Sequence[TreeListing]) -> Iterator[InputError]:
    first: dict[str, tuple[TreeListing, NamedFile | str]] = {}
    for listing in listings:
        files = {file.path: file for file in listing.files}
        files |= {alias: files[first] for alias, first in listing.aliases.items()}
        things: dict[str, NamedFile | str] = {**files}
        things |= {link: str((listing.root / link).readlink()) for link in listing.links}
        things |= dict.fromkeys(listing.folders, "a folder")
        for path, thing in things.items():
            other, known = first.setdefault(path, (listing, thing))
            if other is not listing and not _is_same(known, thing):
                expected = f"the same content as {other.root / path}"
                remedy = "The folders are from different builds. Join folders from the same build."
                yield InputError(listing.root / path, "has different content", expected=expected, remedy=remedy)


def _is_same(one: NamedFile | str, other: NamedFile | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    with one.content.view() as data, other.content.view() as more:
        return have_same_bytes(data, more)


class JoinedLibrary(msgspec.Struct, frozen=True, kw_only=True):
    """A library with its code restored: the number of its bundles, the size of its code, and its targets."""

    path: str
    bundles: int
    code: int
    targets: tuple[str, ...]
    missing: tuple[str, ...]
    """The targets for which there was code before the split, but for which no folder has code."""
    size: int = 0
    """The size of the joined file in bytes."""


class JoinReport(msgspec.Struct, frozen=True, kw_only=True):
    """The results for the folders: joined libraries, the number of other files, and omitted archives."""

    libraries: tuple[JoinedLibrary, ...]
    copied: int
    left_out: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    """Faults in archives from another tool. Wrong indices were corrected if the correct indices are known."""


def join_tree(
    host: Path,
    devices: Sequence[Path],
    output: Path,
    storage: JoinStorage | None = None,
    *,
    progress: Progress = SILENT,
) -> JoinReport:
    """Write the tree of ``host``, a folder or file, combined with the folders ``devices`` and with its code joined.

    An archive is omitted if all of its code was restored in libraries. ``output`` must be new or empty, and outside all
    input folders. The output appears only when it is complete. Raises `InputError`, or `ProblemsError` for several
    problems, for devices that aren't folders, and for a library without any of its archives. Also raises these errors
    for archives that are damaged or lack a unit, and for files with the same path but different contents. Raises
    `WorkError` if writing fails.
    """
    map_collecting("devices", _require_folder, devices)
    overlay = lay_over(host, devices)
    has_wheels = any(file.path.endswith(".whl") for file in overlay.files)
    remedy = "Specify the host wheel directly." if has_wheels else "Specify the folder 'host' from the split."
    found = plan_joins(overlay.files, subject=str(host), remedy=remedy)
    with new_folder(output, host, *devices) as made:
        progress.begin(f"joining {output.name}", sum(join.code_size for join in found.joins.values()))
        _Joining(overlay, found, storage or JoinStorage(), made, progress).run(str(host))
    libraries = tuple(
        JoinedLibrary(
            path=path,
            bundles=len(join.units),
            code=join.code_size,
            targets=join.targets,
            missing=join.missing,
            size=(output / path).stat().st_size,
        )
        for path, join in found.joins.items()
    )
    copied = len(overlay.files) - len(libraries) - len(found.used)
    return JoinReport(libraries=libraries, copied=copied, left_out=tuple(sorted(found.used)), warnings=found.warnings)


def _require_folder(device: Path) -> None:
    """Reject a file, because its path below the root is unknown."""
    if device.is_dir():
        return
    expected = "the folder of a target"
    if is_given_wheel(device):
        raise InputError(
            device, "is a wheel", expected=expected, remedy="Specify the host wheel as HOST, or unpack this wheel."
        )
    with FileRange.whole(device).view() as data:
        is_archive = is_kpack(data)
    found = "is a standalone archive" if is_archive else "isn't a folder"
    folder = device.resolve().parent
    root = folder.parent if folder.name == ARCHIVE_FOLDER else folder
    remedy = f"Specify the folder to merge into the host folder, such as {root}." if is_archive else ""
    raise InputError(device, found, expected=expected, remedy=remedy)


class _Joining:
    """Writes one tree below ``made``."""

    def __init__(self, overlay: Overlay, found: Joins, storage: JoinStorage, made: Path, progress: Progress) -> None:
        self._overlay, self._found, self._storage = overlay, found, storage
        self._made, self._progress = made, progress

    def run(self, subject: str) -> None:
        """Write everything; raise the problems with all files in one error about ``subject``."""
        overlay, made, problems = self._overlay, self._made, list[RocwheelError]()
        try:
            for folder in overlay.folders:
                (made / folder).mkdir(parents=True, exist_ok=True)
            written = [file for file in overlay.files if file.path not in self._found.used]
            attempt_all(self._write_file, written, problems)
        finally:
            self._progress.end()
        raise_all(subject, problems)
        for alias, first in overlay.aliases.items():
            if first not in self._found.used:
                (made / alias).hardlink_to(made / first)
        for link in overlay.links:
            (made / link).symlink_to((overlay.root_of[link] / link).readlink())
        # Folders get their old permissions and times, deepest first. Folders that contain only archives are removed.
        emptied = {path.rpartition("/")[0] for path in self._found.used}
        for folder in sorted(self._overlay.folders, reverse=True):
            made = self._made / folder
            if folder in emptied and not any(made.iterdir()):
                made.rmdir()
            else:
                copy_status(self._overlay.root_of[folder] / folder, made)

    def _write_file(self, file: NamedFile) -> None:
        old, new = self._overlay.root_of[file.path] / file.path, self._made / file.path
        join = self._found.joins.get(file.path)
        if join is None:
            copy_file(old, new)
            return
        with (
            file.content.view() as data,
            plan_join(data, join, self._storage, name=file.path) as patch,
            new.open("xb") as output,
        ):
            write_patch(output, data, patch)
        copy_status(old, new)
        self._progress.advance(join.code_size)
