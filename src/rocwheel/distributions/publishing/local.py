"""The distributions of a folder, which are to be published, and which index each of them goes into."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import RocwheelError, WorkError, each_problem
from rocwheel.core.reading import FileStamp
from rocwheel.core.workers import raise_all
from rocwheel.distributions.index.entries.entry import IndexEntry
from rocwheel.distributions.index.notes.known_files import KnownIndex, read_known, write_known
from rocwheel.distributions.index.placing.place_files import FilePlacement, Places
from rocwheel.distributions.index.reading.listing import Listing, find_families, list_folder
from rocwheel.distributions.index.reading.read_folder import Listed, Source, read_folders, unite

if TYPE_CHECKING:
    from rocwheel.core.progress import Progress
    from rocwheel.distributions.index.notes.found import Found
    from rocwheel.distributions.index.notes.known_files import KnownFile

__all__ = ["Local", "Upload", "read_local"]


class Upload(msgspec.Struct, frozen=True):
    """A distribution that was read."""

    name: str
    """Below the folder of distributions, here and on the store."""
    path: Path
    entry: IndexEntry
    stamp: FileStamp


class Local(msgspec.Struct, frozen=True):
    """All distributions of a folder."""

    groups: dict[str, tuple[Upload, ...]]
    """What each index lists, by the name of its family; that of all, which is none's, is the first."""
    ignored: tuple[str, ...]
    """Names of what is neither a wheel nor an sdist nor the folder of a family."""

    @property
    def uploads(self) -> dict[str, Upload]:
        """What is to be on the store, by its name there."""
        return {upload.name: upload for group in self.groups.values() for upload in group}


def read_local(dist_dir: Path, cache: Path | None, progress: Progress) -> Local:
    """Return what stands in a folder, and in its folders for families; those are as `write_indexes` finds them.

    ``cache`` is the folder where earlier runs have noted which files they have read: none is read again that is
    certainly the same. Raises everything that is wrong with the files, and `InputError` for a folder without any.
    """
    listings = _list_folders(dist_dir)
    sources = {name: _source(dist_dir, name, listing) for name, listing in listings.items()}
    known = read_known(cache).files if cache else {}
    memory: dict[Path, Found] = {}
    problems: list[RocwheelError] = []
    noted: dict[str, KnownFile] = {}
    groups = {}
    for name in listings:
        both = [sources[""], sources[name]] if name else [sources[""]]
        try:
            found = read_folders(both, known, progress, None, memory)
        except RocwheelError as e:
            problems += each_problem([e])
            continue
        noted |= {key: one.known for key, one in found.items()}
        groups[name] = tuple(_upload(dist_dir, one) for one in unite(both, found).values())
    raise_all(str(dist_dir), list({str(problem): problem for problem in problems}.values()))
    if cache and noted != known:
        _write_cache(cache, noted)
    return Local(groups, _ignored(listings))


def _list_folders(dist_dir: Path) -> dict[str, Listing]:
    """Return what is in the folder itself, under an empty name, and in its folders for families."""
    families = find_families(dist_dir, dist_dir.parent)
    listings = {"": list_folder(dist_dir, dist_dir, may_be_empty=bool(families))}
    return listings | {name: list_folder(dist_dir / name, dist_dir / name) for name in families}


def _source(dist_dir: Path, family: str, listing: Listing) -> Source:
    folder = dist_dir / family if family else dist_dir
    return Source(Places(folder, folder, FilePlacement.RELATIVE), listing, f"{family}/" if family else "")


def _upload(dist_dir: Path, one: Listed) -> Upload:
    return Upload(one.key, dist_dir / one.key, one.known.entry, one.known.stamp)


def _ignored(listings: dict[str, Listing]) -> tuple[str, ...]:
    names = [name for name in listings[""].subfolders if name not in listings]
    for family, listing in listings.items():
        names += [f"{family}/{name}" if family else name for name in (*listing.ignored, *_below(family, listing))]
    return tuple(sorted(names))


def _below(family: str, listing: Listing) -> tuple[str, ...]:
    return listing.subfolders if family else ()


def _write_cache(cache: Path, files: dict[str, KnownFile]) -> None:
    try:
        cache.mkdir(parents=True, exist_ok=True)
        write_known(cache, KnownIndex(files=files))
    except (OSError, WorkError):  # the next run reads the files again
        return
