"""What users name, as packages with their files: builds, wheels, indexes, artifacts, environments, any folders."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.catalog import open_catalog
from rocwheel.diffing.read_side import open_side
from rocwheel.diffing.values import Item, Package
from rocwheel.foundation.errors import InputError
from rocwheel.installed.reading.read_folders import find_site_packages, is_artifact_folder
from rocwheel.report.components import component_of
from rocwheel.report.values.files import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.artifacts.catalog import Entry
    from rocwheel.foundation.errors import RocwheelError

__all__ = ["HeldFile", "Holding", "open_holdings", "unreadable_holding"]


class HeldFile(msgspec.Struct, frozen=True):
    """A file of a package, and the component that it is of."""

    item: Item
    component: str


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """A package with its files; ``packed`` is the size of the wheel or sdist, in bytes."""

    name: str
    kind: Kind
    source: str
    version: str = ""
    packed: int | None = None
    files: tuple[HeldFile, ...] = ()
    problem: str = ""
    package: Package
    """What it is to those who compare two of them."""


@contextmanager
def open_holdings(path: Path, unread: list[RocwheelError]) -> Iterator[tuple[Holding, ...]]:
    """Yield the packages at ``path``; their files can be read in the block.

    Packages in a folder that can't be read are appended to ``unread``, and come without files. Raises `InputError` for
    a path that is nothing to report on, or empty.
    """
    if path.is_dir() and find_site_packages(path) is None and is_artifact_folder(path):
        with open_catalog(path, unread=unread) as catalog:
            yield _of_artifacts(catalog.entries, path)
        return
    refused: list[RocwheelError] = []
    with open_side(path, unread=refused, every=True) as side:
        unread += refused
        yield (*map(_of_package, side.packages), *map(unreadable_holding, refused))


def _of_artifacts(entries: tuple[Entry, ...], folder: Path) -> tuple[Holding, ...]:
    """Return one package for each name that artifacts have, whose components are what their names say."""
    found: dict[str, list[HeldFile]] = defaultdict(list)
    for entry in entries:
        if entry.source is not None or entry.link is not None:
            found[entry.artifact.name].append(HeldFile(_entry_item(entry), entry.artifact.component))
    return tuple(_of_artifact(name, str(folder), files) for name, files in found.items())


def _of_artifact(name: str, source: str, files: list[HeldFile]) -> Holding:
    package = Package(name=name, source=source, items=tuple(held.item for held in files))
    return Holding(name=name, kind=Kind.ARTIFACT, source=source, files=tuple(files), package=package)


def _entry_item(entry: Entry) -> Item:
    size = entry.source.size if entry.source else len(entry.link or "")
    return Item(
        path=entry.path,
        source=f"{entry.artifact}: {entry.path}",
        size=size,
        mode=entry.mode,
        link=entry.link,
        content=entry.source,
    )


def _of_package(package: Package) -> Holding:
    place = Path(package.source)
    is_packed = place.suffix == ".whl" or place.name.endswith(".tar.gz")
    return Holding(
        name=package.name or place.name,
        kind=_kind_of(package, place),
        source=package.source,
        version=package.version,
        packed=place.stat().st_size if is_packed else None,
        files=tuple(HeldFile(item, component_of(item.path)) for item in package.items),
        package=package,
    )


def _kind_of(package: Package, place: Path) -> Kind:
    if not package.name:
        return Kind.FILES
    if place.suffix == ".whl":
        return Kind.WHEEL
    return Kind.SDIST if place.name.endswith(".tar.gz") else Kind.INSTALLED


def _file_of(source: str) -> Path:
    """Return the file that a problem is about: a member follows a ``!``, unless that is part of the file's path."""
    ends = [at for at, letter in enumerate(source) if letter == "!"]
    places = [Path(source), *(Path(source[:end]) for end in reversed(ends))]
    return next((place for place in places if place.is_file()), places[-1])


def unreadable_holding(problem: RocwheelError, path: Path | None = None) -> Holding:
    """Return what can't be read, with the size of its file: the sums have to count it.

    ``path`` is where it is, by default what the problem names.
    """
    source = str(path or (problem.source if isinstance(problem, InputError) else ""))
    place = _file_of(source)
    packed = place.stat().st_size if source and place.is_file() else None
    package = Package(name=place.name, source=str(place))
    return Holding(
        name=place.name or str(place),
        kind=Kind.UNREADABLE,
        source=str(place),
        packed=packed,
        problem=str(problem),
        package=package,
    )
