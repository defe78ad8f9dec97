"""What earlier runs know of an index: which files they have read, and what they have written.

A file is not read again while its size, times and inode are as they were, as git does with its index. Times have a
granularity, so a file that was written to shortly before it was read could have been written to again without a trace:
it is read again (git's documentation calls it "racily clean"). The same goes for what a run has written: the next one
that comes late enough compares it once more.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from rocwheel import __version__
from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import WorkError
from rocwheel.core.names import is_file_name
from rocwheel.core.reading import FileStamp, is_settled, open_regular, read_if_readable
from rocwheel.core.writing import atomic_file
from rocwheel.index.entry import IndexEntry
from rocwheel.index.pages import FRONT_PAGE, PAGES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def write_changed(path: Path, data: bytes) -> bytes | None:
    """Write a file unless it holds ``data`` already, so that web caches and syncs see no change.

    Return the bytes that it held instead, if any.
    """
    try:
        with open_regular(path) as file:
            present = file.read()
    except OSError:
        present = None
    if present == data:
        return None
    with atomic_file(path) as writer:
        writer.write(data)
    return present


class Found(NamedTuple):
    """A distribution, known or just read."""

    known: KnownFile
    metadata: bytes | None = None
    """Its core metadata, if it was just read and has some to show."""


KNOWN_NAME = ".rocwheel-index.json"
"""The file in the output; a hidden name, which no page links to."""
BEGUN_NAME = ".rocwheel-index-begun.json"
"""That of a run that has not ended, or was killed."""
FAMILIES_NAME = ".rocwheel-index-families.json"
"""That of which folders in the output are indexes of families."""
PUBLISHED_NAME = ".rocwheel-published.json"
"""That of an index which `rocwheel publish` has written, in a folder or elsewhere."""
NOTES = (KNOWN_NAME, BEGUN_NAME, FAMILIES_NAME)
"""The names of all of them but the last."""
OWN_NAMES = frozenset((*PAGES, FRONT_PAGE, *NOTES))
"""What an index has that stands among its distributions."""

_T = TypeVar("_T")

_CHECKS = 6
"""Raised with every release of rocwheel, or change between two, that refuses what was listed before."""


class KnownFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A distribution that was read."""

    entry: IndexEntry
    stamp: FileStamp
    is_settled: bool
    """Whether nobody can have written to the file after it was read without a trace in its stamp."""
    placed: tuple[FileStamp, ...] = ()
    """What was written for it: its copy in the index, and its metadata; empty until that is settled, too."""
    placement: str = ""
    """As what its copy was placed: a hard link has the right bytes, but is no copy."""

    def holds_for(self, stamp: FileStamp) -> bool:
        """Return whether the file that has this stamp now is certainly the one that was read."""
        return self.is_settled and stamp == self.stamp


def settled(stamps: Iterable[FileStamp | None], read_at: int) -> tuple[FileStamp, ...]:
    """Return the stamps of what was written, all of which is there and settled; none, unless that is so."""
    found = tuple(stamps)
    present = tuple(stamp for stamp in found if stamp and is_settled(stamp, read_at))
    return present if len(present) == len(found) else ()


class KnownProject(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The pages of a project as they were written."""

    files: tuple[str, ...]
    """Names of what they list."""
    stamps: tuple[FileStamp, ...]
    """Of the project's folder and of its pages, whose bytes were known then; empty until they are settled."""
    digests: tuple[str, ...] = ()
    """Of the pages' bytes: other ones are somebody's edit."""


class KnownExtras(msgspec.Struct, frozen=True, array_like=True):
    """The files that others have made of what an index lists."""

    maker: str = ""
    """The digest of what they make of nothing: the same makers make the same of it."""
    digests: dict[str, str] = {}
    """Of the files' bytes, by name."""
    families: str = ""
    """The digest of what the indexes of families listed; empty for none."""


class _Kept(msgspec.Struct, frozen=True):
    """What holds whichever rocwheel has noted it, and can't be found out again."""

    version: str = __version__
    """Of the rocwheel that wrote it; another may judge the same files otherwise."""
    checks: int = 0
    """Which checks the files have passed; those of another number are checked again."""
    written: dict[str, tuple[str, ...]] = {}
    """Names of the files in each project's folder, beside its pages."""
    yanked: dict[str, str] = {}
    """Reasons of what is yanked, by file name."""
    extras: tuple[str, ...] = ()
    """Names of the files that are neither pages nor distributions."""
    folders: tuple[str, ...] = ()
    """Where the distributions are: what leads from the output there, each ending in a slash."""
    placement: str = ""
    """How the distributions were placed."""
    machine: tuple[str, ...] = ()
    """The targets of the machines that the variants are listed for; empty for any."""


_KEPT = ("written", "yanked", "extras", "folders", "placement", "machine")


class KnownIndex(_Kept, frozen=True):
    """The content of the file."""

    files: dict[str, KnownFile] = {}
    """By what leads to each from the output."""
    projects: dict[str, KnownProject] = {}
    """By name."""
    root: KnownProject | None = None
    """The page that lists the projects; its files are the families that it names, its stamps those of the pages."""
    made: KnownExtras = KnownExtras()
    """The files that are neither pages nor distributions, as they were written."""
    is_finished: bool = True
    """Whether the last run came to its end."""


class Journal(msgspec.Struct, frozen=True):
    """What a run notes before it writes anything, in a file of its own that goes when the run ends."""

    written: dict[str, tuple[str, ...]]
    """Names of the files that it may write or remove in each project's folder, beside its pages."""
    extras: tuple[str, ...]
    yanked: dict[str, str] | None = None
    """As that of an index; a page that somebody marked a file on may go before the run ends."""


class _Families(msgspec.Struct, frozen=True):
    families: tuple[str, ...]


def read_known(output: Path) -> KnownIndex:
    """Return what earlier runs of this version know; nothing when there is no such file, or a damaged one.

    Of what another version has noted, or other fields than this one notes, what was written and yanked is still known.
    """
    known = _read_last(output)
    begun = _decode(read_if_readable(output / BEGUN_NAME), Journal)
    if begun is None:
        return known
    names = {project: tuple({*known.written.get(project, ()), *more}) for project, more in begun.written.items()}
    return msgspec.structs.replace(
        known,
        written={**known.written, **names},
        extras=tuple({*known.extras, *begun.extras}),
        yanked=known.yanked if begun.yanked is None else begun.yanked,
        projects={project: noted for project, noted in known.projects.items() if project not in begun.written},
        root=None,
        is_finished=False,
    )


def _read_last(output: Path) -> KnownIndex:
    data = read_if_readable(output / KNOWN_NAME)
    # To decode all of it only to learn that would take as long as all else that is done with it.
    is_current = data.startswith(msgspec.json.encode(KnownIndex(checks=_CHECKS)).partition(b',"written"')[0])
    if is_current and (known := _decode(data, KnownIndex)):
        return known
    kept = _decode(data, _Kept) or _Kept()
    return KnownIndex(**{name: getattr(kept, name) for name in _KEPT})


def _decode(data: bytes, kind: type[_T]) -> _T | None:
    with suppress(msgspec.DecodeError):
        return decode_json(data, kind)
    return None


def write_known(output: Path, known: KnownIndex) -> None:
    """Write what a run knows that has come to its end. Raises `WorkError` when the output can't be written."""
    write_changed(output / KNOWN_NAME, msgspec.json.encode(msgspec.structs.replace(known, checks=_CHECKS)))
    remove_notes(output, BEGUN_NAME)


def write_begun(output: Path, begun: Journal) -> None:
    """Write what a run may do. Raises `WorkError` when the output can't be written."""
    write_changed(output / BEGUN_NAME, msgspec.json.encode(begun))


def read_families(output: Path) -> tuple[str, ...]:
    """Return the names of the folders that earlier runs have made indexes of families in."""
    noted = _decode(read_if_readable(output / FAMILIES_NAME), _Families)
    return tuple(filter(is_file_name, noted.families)) if noted else ()


def write_families(output: Path, families: Iterable[str]) -> None:
    """Write these names, or remove their file where there are none. Raises `WorkError` when that can't be done."""
    if names := tuple(sorted(families)):
        write_changed(output / FAMILIES_NAME, msgspec.json.encode(_Families(names)))
    else:
        remove_notes(output, FAMILIES_NAME)


def remove_notes(output: Path, *names: str) -> None:
    """Remove files of notes. Raises `WorkError` when that can't be done."""
    try:
        for name in names:
            (output / name).unlink(missing_ok=True)
    except OSError as e:
        raise WorkError(output, f"its notes can't be removed ({e.strerror})", remedy="Check its permissions.") from e
