"""Reading what a user names as one side of a comparison: each of its packages with a list of its files."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.artifacts.catalog import open_catalog
from rocwheel.diffing.read_packages import METADATA_FILES, read_sdist_package, read_wheel_package, with_metadata
from rocwheel.diffing.values import Item, Package, Side
from rocwheel.distributions.build_manifest.values import BUILT_FOLDER
from rocwheel.distributions.index.entries.find_files import find_distributions
from rocwheel.distributions.index_reading.local_files import files_of_local_index
from rocwheel.foundation.collecting import attempt_all, convert_all, raise_all
from rocwheel.foundation.errors import InputError, read_error
from rocwheel.foundation.files.reading.file_range import FileRange
from rocwheel.installed.reading.read_dist_info import read_distribution
from rocwheel.installed.reading.read_folders import find_prefix, find_site_packages, is_artifact_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rocwheel.artifacts.catalog import Entry
    from rocwheel.foundation.errors import RocwheelError
    from rocwheel.installed.tree import Distribution

__all__ = ["open_side"]

_SKIPPED = {"__pycache__"}
_DASHES = 2
"""Of a compatibility tag (:pep:`425`)."""
_EXPECTED = "a wheel, an sdist, a folder of them, an index, artifacts, an environment or files"


class _Reading(NamedTuple):
    """How a side is read: what its artifacts stay open in, where its problems go, and whether nothing is left out."""

    stack: ExitStack
    unread: list[RocwheelError] | None = None
    every: bool = False

    def convert(self, paths: list[Path], read: Callable[[Path], Package]) -> list[Package]:
        """Return the packages at some paths; raise what is wrong with them, or note it."""
        if self.unread is None:
            return convert_all("Packages that can't be read", read, paths)
        return attempt_all(read, paths, self.unread)


@contextmanager
def open_side(path: Path, *, unread: list[RocwheelError] | None = None, every: bool = False) -> Iterator[Side]:
    """Yield the packages at ``path``: a wheel, an sdist, a binary, or a folder; its files can be read in the block.

    A folder is an environment, that of a build or of distributions, an index, artifacts, or any files, whichever is
    found first. Nothing is read of the files but metadata. Compiled Python files in folders count only with ``every``.
    Raises `InputError` for what is none of these or empty, and `ProblemsError` for several packages that can't be
    read; with a list ``unread``, the problems of packages in a folder are appended to it, and the
    side is that of all others.
    """
    with ExitStack() as stack:
        try:
            side = Side(str(path), tuple(_read(path, _Reading(stack, unread, every))))
        except OSError as e:
            raise read_error(e.filename or path, e) from e
        yield side


def _read(path: Path, how: _Reading) -> list[Package]:
    if path.is_dir():
        return _read_folder(path, how)
    if not stat.S_ISREG(path.stat().st_mode):
        raise InputError(path, "is neither a file nor a folder", expected=_EXPECTED)
    return [_read_file(path)]


def _read_file(path: Path) -> Package:
    if path.suffix == ".whl":
        return read_wheel_package(path)
    if path.name.endswith(".tar.gz"):
        return read_sdist_package(path)
    if path.stat().st_size == 0:
        raise InputError(path, "is an empty file", expected=_EXPECTED)
    return Package(name="", source=str(path), items=(_disk_item(path, path.parent),))


def _read_folder(folder: Path, how: _Reading) -> list[Package]:
    if (site := find_site_packages(folder)) is not None:
        return _read_environment(site, how)
    if found := find_distributions(folder / BUILT_FOLDER) or find_distributions(folder):
        return how.convert(found, _read_file)
    if listed := _of_index(folder, how):
        return how.convert(listed, _read_file)
    is_artifacts = is_artifact_folder(folder)
    items = _artifact_items(folder, how.stack) if is_artifacts else tuple(_walk(folder, every=how.every))
    if not items:
        raise InputError(folder, "is an empty folder", expected=_EXPECTED)
    return [Package(name="", source=str(folder), items=items)]


def _of_index(folder: Path, how: _Reading) -> list[Path]:
    """Return the distributions on this disk that the pages of an index list; no others are looked for."""
    problems: list[RocwheelError] = []
    listed = sorted(files_of_local_index(folder, problems))
    if listed and how.unread is None:
        raise_all("Pages of an index that can't be read", problems)
    elif listed and how.unread is not None:
        how.unread.extend(problems)
    return listed


def _read_environment(site: Path, how: _Reading) -> list[Package]:
    """Return the packages of an environment; files that no RECORD names are in one without a name.

    Of the files beside site-packages, such as programs, those count that a RECORD names and the environment holds.
    """
    infos = sorted(site.glob("*.dist-info"))
    packages = how.convert(infos, _installed)
    owners = {path: info.name for info in infos for path in _listed(info)}
    groups: dict[str, list[Item]] = {info.name: [] for info in infos}
    for item in (*_walk(site, every=how.every), *_beside(site, owners, every=how.every)):
        groups.setdefault(owners.get(item.path, ""), []).append(item)
    read = {package.dist_info for package in packages}
    rest = [item for name, items in groups.items() if name not in read for item in items]
    owned = [msgspec.structs.replace(package, items=tuple(groups[package.dist_info])) for package in packages]
    return [*owned, *([Package(name="", source=str(site), items=tuple(rest))] if rest else [])]


def _beside(site: Path, listed: Iterable[str], *, every: bool) -> Iterator[Item]:
    """Yield the files outside of site-packages that RECORD lists, unless they are outside of the environment, too."""
    prefix = str(find_prefix(site))
    for name in listed:
        if not name.startswith(("../", "/")) or "\0" in name:
            continue
        place = os.path.normpath(site.absolute() / name)
        path = Path(place)
        is_inside = path.is_relative_to(prefix) and not path.is_relative_to(site.absolute())
        if is_inside and (every or not _SKIPPED.intersection(path.parts)) and (path.is_symlink() or path.is_file()):
            yield msgspec.structs.replace(_disk_item(path, Path(prefix)), path=name)


def _installed(info: Path) -> Package:
    texts = _texts(info, METADATA_FILES)
    return with_metadata(Package(name="", source=str(info), dist_info=info.name), texts, tags=_tags(info))


def _tags(info: Path) -> tuple[str, str, str]:
    """Return the tags of the wheel that was installed, as its name had them."""
    parts = [tag.split("-") for tag in _describe(info, ("WHEEL",)).tags if tag.count("-") == _DASHES]
    python, abi, platform = (".".join(dict.fromkeys(part[place] for part in parts)) for place in range(_DASHES + 1))
    return python, abi, platform


def _listed(info: Path) -> list[str]:
    return [entry.path for entry in _describe(info, ("RECORD",)).record]


def _describe(info: Path, names: Iterable[str]) -> Distribution:
    return read_distribution(_texts(info, names), source=str(info), dist_info=info.name, is_wheel=False)


def _texts(info: Path, names: Iterable[str]) -> dict[str, bytes]:
    return {name: (info / name).read_bytes() for name in names if (info / name).is_file()}


def _walk(folder: Path, *, every: bool) -> Iterator[Item]:
    for root, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = sorted(name for name in folders if every or name not in _SKIPPED)
        links = [name for name in folders if Path(root, name).is_symlink()]
        for name in sorted([*names, *links]):
            path = Path(root, name)
            if path.is_symlink() or path.is_file():
                yield _disk_item(path, folder)


def _raise(error: OSError) -> None:
    raise error


def _disk_item(path: Path, folder: Path) -> Item:
    status = path.lstat()
    is_link = stat.S_ISLNK(status.st_mode)
    return Item(
        path=path.relative_to(folder).as_posix(),
        source=str(path),
        size=status.st_size,
        mode=status.st_mode,
        link=str(path.readlink()) if is_link else None,
        content=None if is_link else FileRange.whole(path),
    )


def _artifact_items(folder: Path, stack: ExitStack) -> tuple[Item, ...]:
    """Return the files of the prefix that artifacts merge into; of several at one path the first."""
    entries = stack.enter_context(open_catalog(folder)).entries
    held = [entry for entry in entries if entry.source or entry.link is not None]
    return tuple(_entry_item(entry) for entry in {entry.path: entry for entry in reversed(held)}.values())


def _entry_item(entry: Entry) -> Item:
    return Item(
        path=entry.path,
        source=f"{entry.artifact}: {entry.path}",
        size=entry.source.size if entry.source else 0,
        mode=entry.mode,
        link=entry.link,
        content=entry.source,
    )
