"""What stands in a folder of distributions, by names alone."""

from __future__ import annotations

import os
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.core.errors import InputError, is_fault, read_error
from rocwheel.core.reading import FileStamp
from rocwheel.distributions.build_manifest.values import BUILT_FOLDER
from rocwheel.distributions.index.entries.file_name import is_distribution_name
from rocwheel.distributions.index.notes.known_files import NOTES
from rocwheel.distributions.index.pages.simple_pages import FRONT_PAGE, PAGES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

__all__ = ["SUFFIXES", "Listing", "find_families", "list_folder", "list_names"]

SUFFIXES = (".whl", ".tar.gz")
"""How the names of the files that an index lists end."""
_METADATA = ".metadata"
_OWN = frozenset((*PAGES, FRONT_PAGE, *NOTES))
"""What an index has that stands among its distributions."""


class Listing(msgspec.Struct, frozen=True):
    """The names in a folder, sorted."""

    distributions: tuple[str, ...]
    stamps: dict[str, FileStamp]
    """Of the distributions, links followed; those alone that can be had."""
    beside: dict[str, FileStamp]
    """Of the core metadata that stand beside distributions, by the name of the distribution; links not followed."""
    ignored: tuple[str, ...]
    """What is neither a wheel nor an sdist: folders named like one, and files but those of an index."""
    subfolders: tuple[str, ...]
    """Folders in it that hold distributions, at any depth; without hidden folders and those of other indexes."""
    hidden: tuple[str, ...] = ()
    """Files and folders that begin with a dot."""

    def without(self, names: Collection[str]) -> Listing:
        """Return the listing without some distributions."""
        if not names:
            return self
        kept = tuple(name for name in self.distributions if name not in names)
        return msgspec.structs.replace(self, distributions=kept)


def list_folder(dist_dir: Path, output: Path, *, may_be_empty: bool = False) -> Listing:
    """Return what stands in ``dist_dir``; ``output`` is no subfolder, nor is a folder that has the pages of an index.

    Raises `InputError` for a folder that can't be listed, for one that holds no distributions itself unless it
    ``may_be_empty``, and for the folder of a build or a mirror in the place of its `BUILT_FOLDER`.
    """
    try:
        seen = _look(dist_dir)
        folders = [name for name in seen.folders if _is_subfolder(dist_dir / name, output)]
    except OSError as e:
        remedy = "Give the folder that holds the wheels and sdists."
        raise InputError(dist_dir, f"can't be listed ({e.strerror})", remedy=remedy) from e
    if not seen.distributions and (folders == [BUILT_FOLDER] or not may_be_empty):
        raise InputError(
            dist_dir, "holds no distributions", expected="*.whl or *.tar.gz files", remedy=_advice(folders)
        )
    misnamed = {name for name in seen.folders if _is_distribution(name)} - {*folders}
    ignored = tuple(sorted(misnamed.union(seen.others)))
    return Listing(seen.distributions, seen.stamps, seen.beside, ignored, tuple(folders), seen.hidden)


def _advice(folders: list[str]) -> str:
    """Return what they may have meant who name a folder without distributions, of the folders in it that have some."""
    if folders == [BUILT_FOLDER]:  # of a build or a mirror, which is no family of GPUs
        return f"Give {BUILT_FOLDER} in it, which has some."
    return f"Index its folders one by one: {', '.join(folders)}." if folders else ""


class _Seen(NamedTuple):
    """The names in a folder, sorted."""

    distributions: tuple[str, ...]
    stamps: dict[str, FileStamp]
    beside: dict[str, FileStamp]
    others: tuple[str, ...]
    """Files that are no part of an index."""
    folders: tuple[str, ...]
    hidden: tuple[str, ...]


def _look(dist_dir: Path) -> _Seen:
    """Return what stands in a folder; raise `OSError` when it can't be listed."""
    # By its descriptor, and each entry asked once: a folder may have many thousands.
    descriptor = os.open(dist_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found: list[os.DirEntry[str]] = []
        others: list[os.DirEntry[str]] = []
        folders: list[str] = []
        for entry in os.scandir(descriptor):
            if entry.is_dir():
                folders.append(entry.name)
            else:
                (found if _is_distribution(entry.name) else others).append(entry)
        found.sort(key=attrgetter("name"))
        stamps = dict(_stamps(found))
        names = tuple(entry.name for entry in found)
        beside = dict(_metadata_stamps(others, names))
    finally:
        os.close(descriptor)
    left = (entry.name for entry in others if _is_other(entry.name))
    hidden = [name for name in (*folders, *(entry.name for entry in others)) if name.startswith(".")]
    return _Seen(names, stamps, beside, tuple(sorted(left)), tuple(sorted(folders)), tuple(sorted(hidden)))


def find_families(dist_dir: Path, output: Path) -> tuple[str, ...]:
    """Return the subfolders of a `Listing` that have distributions themselves; none where that may not be listed.

    Where the index stands among the distributions, there is no room for more of them. Raises `InputError` for a disk
    that fails.
    """
    try:
        if dist_dir.resolve() == output.resolve():
            return ()
        names = sorted(entry.name for entry in os.scandir(dist_dir) if entry.is_dir())
    except OSError as e:
        if is_fault(e):
            raise read_error(dist_dir, e) from e
        return ()
    folders = [name for name in names if _is_subfolder(dist_dir / name, output)]
    return tuple(name for name in folders if list_names(dist_dir / name))


def list_names(folder: Path) -> list[str]:
    """Return the names of what looks like distributions in a folder; none if it may not be listed.

    Raises `InputError` for a disk that fails.
    """
    try:
        return [entry.name for entry in os.scandir(folder) if is_distribution_name(entry.name) and not entry.is_dir()]
    except OSError as e:
        if is_fault(e):
            raise read_error(folder, e) from e
        return []


def _is_other(name: str) -> bool:
    """Return whether a file that is no distribution is no part of an index either."""
    return not (name.endswith(_METADATA) or name in _OWN)


def _stamps(entries: Iterable[os.DirEntry[str]]) -> Iterator[tuple[str, FileStamp]]:
    for entry in entries:
        try:
            status = entry.stat()
        except OSError:  # gone, or a link to nothing: reading it tells
            continue
        yield entry.name, FileStamp.of(status)


def _metadata_stamps(
    entries: Iterable[os.DirEntry[str]], distributions: Iterable[str]
) -> Iterator[tuple[str, FileStamp]]:
    wanted = {f"{name}{_METADATA}": name for name in distributions}
    for entry in entries:
        if name := wanted.get(entry.name):
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:  # gone
                continue
            yield name, FileStamp.of(status)


def _is_distribution(name: str) -> bool:
    return name.endswith(SUFFIXES) and not name.startswith(".")


def _is_subfolder(folder: Path, output: Path) -> bool:
    if folder.name.startswith(".") or folder.parent.resolve().is_relative_to(folder.resolve()):
        return False  # hidden, or a link to where we are
    return any(is_distribution_name(name) for names in _names_outside_of_indexes(folder, output) for name in names)


def _names_outside_of_indexes(folder: Path, output: Path) -> Iterator[list[str]]:
    for place, folders, names in os.walk(folder):
        if PAGES[1] in names or Path(place).resolve() == output.resolve():
            folders.clear()
        else:
            folders[:] = [name for name in folders if not name.startswith(".")]
            yield names
