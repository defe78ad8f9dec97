"""Records the files that earlier runs of an index have read and written.

As in Git's index, a file is not read again as long as its size, times, and inode remain the same. Timestamps have a
limited resolution. If a file was modified shortly before it was read, its timestamps might not reveal a later change,
so the file is read again. Git's documentation calls such a file "racily clean". The same applies to files that a run
has written: the first run that starts late enough compares them again.
"""

from __future__ import annotations

import hashlib
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from rocwheel import __version__
from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import WorkError
from rocwheel.core.names import is_file_name
from rocwheel.core.reading import FileStamp, belongs_to_user, is_settled, open_regular, read_if_readable
from rocwheel.core.writing import atomic_file
from rocwheel.index.entry import IndexEntry
from rocwheel.index.pages import FRONT_PAGE, PAGES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def write_changed(path: Path, data: bytes) -> bytes | None:
    """Write a file unless it already contains ``data``, so that web caches and syncing tools see no change.

    Return the previous content if the file was replaced, or `None`.
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
    """A distribution that is already known or was newly read."""

    known: KnownFile
    metadata: bytes | None = None
    """The core metadata, if the distribution was newly read and its pages list the metadata."""


KNOWN_NAME = ".rocwheel-index.json"
"""The name of the record file in the output. It is hidden, and no page links to it."""
BEGUN_NAME = ".rocwheel-index-begun.json"
"""The name of the record file of a run that is unfinished or was killed."""
FAMILIES_NAME = ".rocwheel-index-families.json"
"""The name of the file that lists the folders of family indexes in the output."""
PUBLISHED_NAME = ".rocwheel-published.json"
"""The name of the file in an index that `rocwheel publish` wrote, in a folder or elsewhere."""
LINKS_NAME = ".rocwheel-links.json"
"""The name of the file in an index that lists files on other servers."""
NOTES = (KNOWN_NAME, BEGUN_NAME, FAMILIES_NAME)
"""The names of all files above, except for the last two."""
OWN_NAMES = frozenset((*PAGES, FRONT_PAGE, *NOTES))
"""Names of files that belong to an index and can be next to its distributions."""

_T = TypeVar("_T")

_CHECKS = 6
"""A number that increases whenever a version of rocwheel rejects files that earlier versions listed."""


class KnownFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A distribution that was read."""

    entry: IndexEntry
    stamp: FileStamp
    is_settled: bool
    """Whether the stamp would reveal any modification since the file was read."""
    placed: tuple[FileStamp, ...] = ()
    """The stamps of the distribution's copy in the index and of its metadata; empty until these stamps are settled."""
    placement: str = ""
    """How the copy was placed. A hard link has the correct bytes but is not a copy."""

    def holds_for(self, stamp: FileStamp) -> bool:
        """Return whether the file with this stamp is definitely the file that was read."""
        return self.is_settled and stamp == self.stamp


def settled(stamps: Iterable[FileStamp | None], read_at: int) -> tuple[FileStamp, ...]:
    """Return the stamps of the written files if all exist and are settled, or an empty tuple."""
    found = tuple(stamps)
    present = tuple(stamp for stamp in found if stamp and is_settled(stamp, read_at))
    return present if len(present) == len(found) else ()


class KnownProject(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The pages of a project as they were written."""

    files: tuple[str, ...]
    """The names of the listed files."""
    stamps: tuple[FileStamp, ...]
    """The stamps of the project's folder and pages after they were written; empty until they are settled."""
    digests: tuple[str, ...] = ()
    """The digests of the pages. A page with a different digest was edited."""


class KnownExtras(msgspec.Struct, frozen=True, array_like=True):
    """The additional files that makers generated for an index."""

    maker: str = ""
    """The digest of the makers. Makers with the same digest generate the same files."""
    digests: dict[str, str] = {}
    """The digests of the files, keyed by name."""
    families: str = ""
    """The digest of the family indexes' contents; empty if there are no families."""


class _Kept(msgspec.Struct, frozen=True):
    """The records that can't be reconstructed and that remain valid for any version of rocwheel."""

    version: str = __version__
    """The rocwheel version that wrote the record. Another version may check the same files differently."""
    checks: int = 0
    """The version of the checks that the files passed. If this version changes, files are checked again."""
    written: dict[str, tuple[str, ...]] = {}
    """The names of the files in each project's folder, next to its pages."""
    yanked: dict[str, str] = {}
    """The reasons for yanking files, keyed by file name."""
    extras: tuple[str, ...] = ()
    """The names of the files that are neither pages nor distributions."""
    folders: tuple[str, ...] = ()
    """The relative paths from the output to the folders of the distributions. Each path ends with a slash."""
    placement: str = ""
    """How the distributions were placed."""
    machine: tuple[str, ...] = ()
    """The GPU targets of the machines for which variants are listed. Empty means any machine."""


_KEPT = ("written", "yanked", "extras", "folders", "placement", "machine")


class KnownIndex(_Kept, frozen=True):
    """The contents of the record file."""

    files: dict[str, KnownFile] = {}
    """The distributions, keyed by their path relative to the output."""
    projects: dict[str, KnownProject] = {}
    """The projects, keyed by name."""
    root: KnownProject | None = None
    """The page that lists the projects.

    Its ``files`` are the families, and its ``stamps`` are the stamps of the pages.
    """
    made: KnownExtras = KnownExtras()
    """The files that are neither pages nor distributions, as they were written."""
    is_finished: bool = True
    """Whether the last run was completed."""


class Journal(msgspec.Struct, frozen=True):
    """The record that a run writes before any other file. When the run ends, it removes the file with this record."""

    written: dict[str, tuple[str, ...]]
    """The names of the files that the run may write or remove in each project's folder, next to its pages."""
    extras: tuple[str, ...]
    yanked: dict[str, str] | None = None
    """The yank marks in the index. A page on which someone marked a file may be removed before the run ends."""


_SEAL = b'{"sha256":"'
_AFTER_SEAL = len(_SEAL) + 64
_logger = logging.getLogger(__name__)


def _seal(document: bytes) -> bytes:
    """Return a JSON object with a first field that contains the hash of all other fields."""
    rest = document[1:]
    return b'%s%s",%s' % (_SEAL, hashlib.sha256(rest).hexdigest().encode(), rest)


def _unseal(path: Path, data: bytes) -> bytes:
    """Return the JSON object that was sealed, or an empty object if the record may have been changed since then.

    Without this hash, a corrupted digit in a file's record would be published as part of the file's hash.
    """
    rest = data[_AFTER_SEAL + 2 :]
    is_whole = data.startswith(_SEAL) and data[len(_SEAL) : _AFTER_SEAL] == hashlib.sha256(rest).hexdigest().encode()
    with suppress(OSError):
        if is_whole and belongs_to_user(path.stat()):
            return b"{" + rest
    if data:
        _logger.warning("%s: was changed, or belongs to another user; rocwheel reads all files again", path)
    return b"{}"


class _Families(msgspec.Struct, frozen=True):
    families: tuple[str, ...]


def read_known(output: Path) -> KnownIndex:
    """Return the records of earlier runs with this version, or empty records if the file is missing or damaged.

    If the file has a different format or is from a different version, only the lists of written and yanked files are
    used. The same is true if another user may have written the file. Someone who can change these lists can also change
    the pages.
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
    path = output / KNOWN_NAME
    data = read_if_readable(path)
    sealed = _unseal(path, data)
    # Decoding the whole file only to check its version would take as long as all other work with the file.
    is_current = sealed.startswith(msgspec.json.encode(KnownIndex(checks=_CHECKS)).partition(b',"written"')[0])
    if is_current and (known := _decode(sealed, KnownIndex)):
        return known
    kept = _decode(data, _Kept) or _Kept()
    return KnownIndex(**{name: getattr(kept, name) for name in _KEPT})


def _decode(data: bytes, kind: type[_T]) -> _T | None:
    with suppress(msgspec.DecodeError):
        return decode_json(data, kind)
    return None


def write_known(output: Path, known: KnownIndex) -> None:
    """Write the records of a completed run. Raises `WorkError` if the output can't be written to."""
    write_changed(output / KNOWN_NAME, _seal(msgspec.json.encode(msgspec.structs.replace(known, checks=_CHECKS))))
    remove_notes(output, BEGUN_NAME)


def write_begun(output: Path, begun: Journal) -> None:
    """Write the record of the changes that a run may make. Raises `WorkError` if the output can't be written to."""
    write_changed(output / BEGUN_NAME, msgspec.json.encode(begun))


def read_families(output: Path) -> tuple[str, ...]:
    """Return the names of the folders with family indexes from earlier runs."""
    noted = _decode(read_if_readable(output / FAMILIES_NAME), _Families)
    return tuple(filter(is_file_name, noted.families)) if noted else ()


def write_families(output: Path, families: Iterable[str]) -> None:
    """Write these names, or remove the file if there are no names. Raises `WorkError` if that fails."""
    if names := tuple(sorted(families)):
        write_changed(output / FAMILIES_NAME, msgspec.json.encode(_Families(names)))
    else:
        remove_notes(output, FAMILIES_NAME)


def remove_notes(output: Path, *names: str) -> None:
    """Remove the record files. Raises `WorkError` if that fails."""
    try:
        for name in names:
            (output / name).unlink(missing_ok=True)
    except OSError as e:
        raise WorkError(
            output, f"contains notes that can't be removed ({e.strerror})", remedy="Check its permissions."
        ) from e
