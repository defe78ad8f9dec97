"""Finds files to publish, their locations in a store, and the files that already exist there."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from rocwheel.core.errors import InputError, RocwheelError, WorkError, each_problem, read_error
from rocwheel.core.names import is_utf8
from rocwheel.core.progress import SILENT
from rocwheel.core.reading import ChangedFileError, FileStamp
from rocwheel.core.workers import open_workers, raise_all, serialized
from rocwheel.index.entry import IndexEntry, read_metadata
from rocwheel.index.folder import Listing, Source, find_families, list_folder, read_folders, require_addresses, unite
from rocwheel.index.folder_notes import PUBLISHED_NAME, KnownIndex, read_known, write_known
from rocwheel.index.pages import METADATA_SUFFIX
from rocwheel.index.placing import FilePlacement, Placer
from rocwheel.index.store_notes import NotesFile
from rocwheel.stores.store import UPLOADS, MissingStoreError, Store, StoredFile, TakenError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from rocwheel.core.progress import Progress
    from rocwheel.index.folder_notes import Found, KnownFile


def require_same(store: Store, stored: StoredFile, size: int | None, sha256: str) -> None:
    """Raise `TakenError` unless a file in the store has this hash and, if known, this size.

    If the store has a hash for the file, that hash is trusted. Otherwise, the file is read.
    """
    if size not in {None, stored.size}:
        raise _other(store, stored.name, f"{stored.size} bytes, not {size}")
    found = stored.sha256 or store.head(stored.name).sha256 or _hash(store, stored.name)
    if found != sha256:
        raise _other(store, stored.name, f"sha256 {found[:16]}..., not {sha256[:16]}...")


def put_same(
    store: Store,
    name: str,
    source: bytes | Path,
    size: int,
    sha256: str,
    *,
    stamp: FileStamp | None = None,
    advance: Callable[[int], object] = SILENT.advance,
) -> None:
    """Store a file unless it already exists. Raises the same errors as `require_same`.

    ``advance`` is the same as in `Store.put`.

    ``stamp`` belongs to the file with this hash. A file with a different stamp is not stored with that hash.
    """
    try:
        store.put(name, source, sha256=sha256, stamp=stamp, advance=advance)
    except TakenError:
        require_same(store, store.head(name), size, sha256)


def _hash(store: Store, name: str) -> str:
    digest = hashlib.sha256()
    for piece in store.stream(name):
        digest.update(piece)
    return digest.hexdigest()


def _other(store: Store, name: str, difference: str) -> TakenError:
    found = f"exists with different bytes ({difference})"
    remedy = "Files are never replaced. Use a different version or build number for the new file."
    return TakenError(store.place(name), found, remedy=remedy)


class Layout(msgspec.Struct, frozen=True):
    """The folders in a store, relative to its URL.

    They are the same as for `rocwheel index packages/dist` in ``packages``.
    """

    index: str = "simple"
    """The folder of the index. Empty if the index is in the store's root folder."""
    files: str = "dist"
    """The folder of the distributions and their core metadata. Each family has a subfolder with its name."""

    def __post_init__(self) -> None:
        for option, folder in (("--output", self.index), ("--files", self.files)):
            if posixpath.normpath(f"/{folder}") != f"/{folder}" or folder.startswith("/") or not is_utf8(folder):
                expected = "a folder below the store, such as simple or rocm/simple"
                raise InputError(option, f"is {folder!r}", expected=expected)

    def of_family(self, family: str) -> Layout:
        """Return the layout of a family's index, which is below the main index.

        If ``family`` is empty, return this layout.
        """
        return Layout(posixpath.join(self.index, family).rstrip("/"), self.files)

    def file(self, name: str) -> str:
        """Return the name of a distribution in the store."""
        return posixpath.join(self.files, name)

    def page(self, project: str, form: str) -> str:
        """Return the name of a page in the store. An empty project means the page of all projects."""
        return posixpath.join(self.index, project, f"index.{form}")

    def beside(self, project: str, name: str) -> str:
        """Return the name of a file next to the pages of a project, or next to the page of all projects."""
        return posixpath.join(self.index, project, name)

    def base(self, stored: str) -> str:
        """Return the relative path from a project's page to the folder of the distribution ``stored``."""
        return f"{posixpath.relpath(posixpath.dirname(f'/{stored}'), f'/{self.index}/project')}/"


class StoredIndex(msgspec.Struct, frozen=True):
    """An index in a store, with the information that is available before any page is read."""

    store: Store
    layout: Layout
    stored: Mapping[str, StoredFile]
    """The files of the index in the store, which were listed after the notes were read."""
    notes_file: NotesFile
    family: str = ""
    """The family of the index. Empty for the main index."""
    families: frozenset[str] = frozenset()
    """The families that have, or will have, indexes below this index."""


def find_family_indexes(layout: Layout, stored: Collection[str]) -> frozenset[str]:
    """Return the names of the folders directly below an index that are also published indexes.

    ``stored`` contains the names of the files that the store lists there.
    """
    notes = (name for name in stored if posixpath.basename(name) == PUBLISHED_NAME)
    folders = {posixpath.dirname(name) for name in notes}
    found = {posixpath.basename(folder) for folder in folders if posixpath.dirname(folder) == layout.index}
    return frozenset(name for name in found if name and layout.of_family(name).page("", "html") in stored)


class Upload(msgspec.Struct, frozen=True):
    """A distribution that was read."""

    name: str
    """The path below the folder of distributions, both locally and in the store."""
    path: Path
    entry: IndexEntry
    stamp: FileStamp


class Local(msgspec.Struct, frozen=True):
    """All distributions in a folder."""

    groups: dict[str, tuple[Upload, ...]]
    """The distributions in each index, keyed by family. The main index has an empty name and comes first."""
    ignored: tuple[str, ...]
    """The names of entries that are not wheels, sdists, or family folders."""

    @property
    def uploads(self) -> dict[str, Upload]:
        """The files to upload, keyed by their name in the store."""
        return {upload.name: upload for group in self.groups.values() for upload in group}


def read_local(dist_dir: Path, cache: Path | None, progress: Progress) -> Local:
    """Return the distributions in a folder and in its family folders, as `write_indexes` defines them.

    ``cache`` is the folder with the records of earlier runs. Files that are definitely unchanged are not read again.
    Raises all problems with the files, and `InputError` for a folder without distributions.
    """
    # The files in the folder itself have an empty key, and the files in its family folders have the family's name.
    families = find_families(dist_dir, dist_dir.parent)
    require_addresses(str(dist_dir), {dist_dir / name: name for name in families})
    listings = {"": list_folder(dist_dir, dist_dir, may_be_empty=bool(families))}
    listings = listings | {name: list_folder(dist_dir / name, dist_dir / name) for name in families}
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
        groups[name] = tuple(
            Upload(one.key, dist_dir / one.key, one.known.entry, one.known.stamp) for one in unite(both, found).values()
        )
    raise_all(str(dist_dir), list({str(problem): problem for problem in problems}.values()))
    if cache and noted != known:
        _write_cache(cache, noted)
    names = [name for name in listings[""].subfolders if name not in listings]
    for family, listing in listings.items():
        if family:
            names += [f"{family}/{name}" for name in (*listing.ignored, *listing.subfolders)]
    return Local(groups, tuple(sorted([*names, *listings[""].ignored])))


def _source(dist_dir: Path, family: str, listing: Listing) -> Source:
    folder = dist_dir / family if family else dist_dir
    return Source(Placer(folder, folder, FilePlacement.RELATIVE), listing, f"{family}/" if family else "")


def _write_cache(cache: Path, files: dict[str, KnownFile]) -> None:
    try:
        cache.mkdir(parents=True, exist_ok=True)
        write_known(cache, KnownIndex(files=files))
    except (OSError, WorkError):  # the next run reads the files again
        return


Item = TypeVar("Item")

AT_ONCE = 16
"""The maximum number of small requests at the same time. Each request mostly waits for a response."""
_LARGE_AT_ONCE = 6
"""The maximum number of large files at the same time. Each file may need 32 MiB of memory."""
_LARGE = 4 << 20


def list_stored(store: Store, folder: str) -> dict[str, StoredFile]:
    """Return the files in a folder of a store, keyed by name. Empty if the folder doesn't exist yet."""
    try:
        return {file.name: file for file in store.list(folder)}
    except MissingStoreError:
        if not store.is_folder:
            raise
        return {}


def find_leftovers(store: Store, uploads: Iterable[Upload]) -> tuple[str, ...]:
    """Return the names of unfinished uploads from other runs, except uploads of the files in ``uploads``.

    Their runs are still active or were killed. When the files in ``uploads`` are uploaded, their unfinished uploads are
    removed.
    """
    own = {upload.entry.sha256 for upload in uploads}
    found = (name.removeprefix(f"{UPLOADS}/").partition(".")[0] for name in list_stored(store, UPLOADS))
    return tuple(sorted({f"{UPLOADS}/{name}" for name in found if name not in own}))


def find_missing(
    store: Store, layout: Layout, uploads: Iterable[Upload], stored: Mapping[str, StoredFile], known: Mapping[str, str]
) -> list[Upload]:
    """Return the uploads whose file or core metadata is absent from the store.

    ``stored`` contains the existing files, keyed by name. ``known`` contains the hashes that pages list, keyed by the
    name in the store. No request is necessary for these files. Raises `TakenError` or `ProblemsError` if existing files
    or core metadata have different bytes.
    """
    missing, doubtful = [], []
    for upload in uploads:
        # A distribution has two files on the store: the distribution, and the core metadata that its page lists.
        name, entry = layout.file(upload.name), upload.entry
        metadata = [_Promise(f"{name}{METADATA_SUFFIX}", None, entry.metadata_sha256)] if entry.metadata_sha256 else []
        promised = [_Promise(name, entry.size, entry.sha256), *metadata]
        present = [(stored[one.name], one) for one in promised if one.name in stored]
        if len(present) < len(promised):
            missing.append(upload)
        file, entry = stored.get(promised[0].name), upload.entry
        if not (file and known.get(file.name) == entry.sha256 and file.size == entry.size):
            doubtful += present

    def check(pair: tuple[StoredFile, _Promise]) -> None:
        require_same(store, pair[0], pair[1].size, pair[1].sha256)

    with open_workers(AT_ONCE) as executor:
        problems = [error for error in executor.map(partial(_find_taken, check), doubtful) if error]
    raise_all(store.url, problems)
    return missing


class _Promise(msgspec.Struct, frozen=True):
    """A file that must be in the store."""

    name: str
    size: int | None
    """The size, which is unknown for core metadata because a page lists only its hash."""
    sha256: str


def _find_taken(check: Callable[[Item], None], item: Item) -> RocwheelError | None:
    try:
        check(item)
    except TakenError as e:
        return e
    return None


def upload_all(store: Store, layout: Layout, uploads: Sequence[Upload], progress: Progress) -> None:
    """Upload distributions, each one before its metadata. Raises the first error."""
    if not uploads:
        return
    progress.begin("uploading", sum(upload.entry.size for upload in uploads))
    advance = serialized(progress.advance)

    def upload(one: Upload) -> None:
        # If the file has changed since it was read, `ChangedFileError` is raised before anything is stored.
        name = layout.file(one.name)
        entry, path = one.entry, one.path
        metadata = _read_same_metadata(one) if entry.metadata_sha256 else b""
        sent = 0

        def advance_within(amount: int) -> None:
            nonlocal sent
            amount = min(amount, entry.size - sent)  # bytes that are sent again after a failure were already counted
            sent += amount
            advance(amount)

        put_same(store, name, path, entry.size, entry.sha256, stamp=one.stamp, advance=advance_within)
        if entry.metadata_sha256:
            put_same(store, f"{name}{METADATA_SUFFIX}", metadata, len(metadata), entry.metadata_sha256)
        advance_within(entry.size)

    for at_once, is_large in ((_LARGE_AT_ONCE, True), (AT_ONCE, False)):
        some = [one for one in uploads if (one.entry.size > _LARGE) == is_large]
        with open_workers(at_once) as executor:
            for _ in executor.map(upload, sorted(some, key=lambda one: (-one.entry.size, one.name))):
                pass
    progress.end()


def _read_same_metadata(upload: Upload) -> bytes:
    path = upload.path
    try:
        upload.stamp.require(path.stat(), str(path))  # any damage would be a consequence of the change
    except OSError as e:
        raise read_error(path, e) from e
    metadata = read_metadata(path)
    if hashlib.sha256(metadata).hexdigest() != upload.entry.metadata_sha256:
        raise ChangedFileError(str(path), "has different metadata than when it was read")
    return metadata
