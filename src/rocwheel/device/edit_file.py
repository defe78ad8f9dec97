"""Edits one file's device code, writes the result to another file, and reports the changes."""

from __future__ import annotations

import os
from collections import defaultdict
from functools import partial
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Final, TypeAlias

import msgspec

from rocwheel.binary.bundles.compressed import find_inner_magic
from rocwheel.binary.bundles.runtimes import find_faults
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import (
    CodePlace,
    DeviceCodeError,
    NoRoomError,
    TargetId,
    is_code_object,
    parse_target_id,
    read_code_object,
)
from rocwheel.binary.kind import is_ar_archive, is_elf, is_kpack, is_pe, is_thin_archive
from rocwheel.binary.kpack.archive import KpackArchive, Scheme, read_archive
from rocwheel.binary.kpack.markers import find_split_library
from rocwheel.binary.kpack.write import (
    LEVELS,
    FileSink,
    Storing,
    recompress_archive,
    select_entries,
    unnamed_remark,
    would_change,
)
from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.pe.header import bits_of_pe, is_pe64
from rocwheel.binary.pe.rewrite import SignedFileError, write_edited_image
from rocwheel.core.errors import InputError, write_error
from rocwheel.core.messages import count
from rocwheel.core.patch import write_data, write_patched
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import FileRange
from rocwheel.core.workers import open_workers
from rocwheel.core.writing import atomic_file, safe_mode
from rocwheel.device.edit_bundles import BundleEdit, BundlePlaces, Prune, edit_code_object, iter_changes, list_places
from rocwheel.device.selection import needed_runtime
from rocwheel.device.trim import plan_trim, require_trimmable
from rocwheel.device.trim_space import spool_changes
from rocwheel.device.trim_static import plan_archive_trim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rocwheel.binary.bundles.device_code import DeviceCode
    from rocwheel.binary.bundles.runtimes import HipRuntime
    from rocwheel.binary.bundles.storage import BundleChange, BundleSlot
    from rocwheel.core.reading import Data

    Editing: TypeAlias = Callable[[Data, DeviceCode, Sequence[BundleSlot]], Iterator[BundleChange]]


_SUFFIXES: Final = frozenset({".dll", ".exe", ".pyd"})


def require_sound_image(data: Data, *, name: str) -> None:
    """Raise `PeError` for a damaged DLL or program, as every inspection with `read_pe` would.

    The check covers files with PE headers, and files that begin with ``MZ`` and have a PE file's suffix. Other files
    may also begin with ``MZ``. The check skips 32-bit files, which have no device code.
    """
    bits = bits_of_pe(data)
    if bits == 64 or (bits is None and is_pe(data) and PurePath(name).suffix.lower() in _SUFFIXES):
        read_pe(data, name=name)


def is_signed_image(data: Data, *, name: str) -> bool:
    """Return whether ``data`` is a 64-bit DLL or program with certificates; raise `PeError` for a damaged file."""
    return bits_of_pe(data) == 64 and read_pe(data, name=name).certificate is not None


def signed_warning(error: SignedFileError) -> str:
    """Return the warning about a signed file that is left unchanged when other files are edited."""
    return f"{error.source}: {error.found}, so its device code is left unchanged. {error.remedy}"


class RewriteReport(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to a file: its bundles, the number of changed bundles, and their old and new sizes in bytes.

    A standalone code object isn't a bundle, but counts as changed.
    """

    path: str
    bundles: int
    changed: int
    size_before: int
    size_after: int
    versions: tuple[int, ...] = ()
    """The header versions of all compressed bundles in the result, whether changed or not."""
    warnings: tuple[str, ...] = ()
    """Warnings about the result."""
    faults: tuple[str, ...] = ()
    """Faults in packaged runtimes that may load the result. They affect compressed bundles, even valid ones."""
    hosts_spelled: int = 0
    """The number of compressed bundles whose host entries were rewritten so that later readers accept them."""
    is_archive: bool = False
    """Whether the file is a kpack archive. If so, its code objects are counted instead of bundles."""
    trimmed: int = 0
    """The number of bytes that trimming removed from the file, or 0 without trimming."""


class RewriteOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for rewriting device code: the edit (`None` to only compress), and how to store bundles."""

    edit: BundleEdit | None
    storage: Storage
    trim: bool = False
    """Whether to remove freed space, which works only for shared libraries."""
    jobs: int = 1
    """The number of bundles to process at a time."""
    progress: Progress = SILENT


class KpackRewrite:
    """Rewrites the archive ``name``, whose bytes are ``data``.

    An archive has no free space, so trimming does nothing. The constructor raises `InputError` for a damaged archive,
    if no code would be left, and for any order except compressing or pruning the archive.
    """

    def __init__(self, data: Data, name: str, order: RewriteOrder) -> None:
        edit = order.edit
        if not (order.storage.compress if edit is None else isinstance(edit, Prune)):
            expected = "bundles, because this edit applies only to bundles"
            remedy = "To change a standalone archive, use device compress, prune, or retarget."
            raise DeviceCodeError(CodePlace(name), "a kpack archive", expected=expected, remedy=remedy)
        self._data, self._order = data, order
        self._whole = read_archive(data, name=name)
        self._archive = _pruned(self._whole, edit) if isinstance(edit, Prune) else self._whole

    def write(self, file: IO[bytes]) -> RewriteReport:
        """Write the new archive and return a report; code objects whose storage format doesn't change keep their bytes.

        Raises `InputError` for damaged code objects, and `OSError` if writing fails.
        """
        archive, order, storing = self._archive, self._order, self._storing()
        changed = len(archive.blobs) if would_change(archive, storing) else 0
        gone = len(self._whole.blobs) - len(archive.blobs)
        if not changed and len(archive.entries) == len(self._whole.entries):
            write_data(file, self._data[: len(self._data) - archive.trailing])
            return self._report(sum(blob.size for blob in archive.blobs), 0)
        sizes = {entry.ordinal: entry.size for entry in archive.entries}
        order.progress.begin(f"rewriting {archive.name}", sum(sizes.values()))
        try:
            with open_workers(order.jobs) as executor:
                sink = FileSink(file)
                stored = recompress_archive(self._data, archive, sink, storing, executor, progress=order.progress)
        finally:
            order.progress.end()
        return self._report(stored, max(1, changed + gone), unnamed_remark(self._whole))

    def _storing(self) -> Storing:
        level = self._order.storage.archive_level
        if not self._order.storage.compress:
            return Storing(self._archive.scheme)
        return Storing(Scheme.ZSTD, None if level is None else min(level, LEVELS[-1]))

    def _report(self, size_after: int, changed: int, unnamed: str = "") -> RewriteReport:
        whole = self._whole
        rest = f"left out {count(whole.trailing, 'byte')} after the table of contents, which some readers reject"
        level, storage = LEVELS[-1], self._order.storage
        is_lower = storage.compress and storage.archive_level is not None and storage.archive_level > level
        lower = f"compressed at level {level}, the highest for kpack archives, instead of {storage.archive_level}"
        remarks = (rest if whole.trailing else "", unnamed, lower if is_lower else "")
        return RewriteReport(
            path=whole.name,
            bundles=len(whole.blobs),
            changed=changed,
            size_before=sum(blob.size for blob in whole.blobs),
            size_after=size_after,
            is_archive=True,
            warnings=tuple(f"{whole.name}: {remark}" for remark in remarks if remark),
        )


def _pruned(archive: KpackArchive, edit: Prune) -> KpackArchive:
    """Return the part of an archive that is needed for the GPUs to keep; raise `DeviceCodeError` if no code is left."""
    targets = {text: parse_target_id(text, source=archive.name) for text in {e.target for e in archive.entries}}
    units: dict[str, list[TargetId]] = defaultdict(list)
    for entry in archive.entries:
        units[entry.key].append(targets[entry.target])
    needed = edit.needed(units.values())
    if not needed:
        raise edit.nothing_left(targets.values(), CodePlace(archive.name))
    return select_entries(archive, (entry for entry in archive.entries if targets[entry.target] in needed))


def holds_places(data: Data) -> bool:
    """Return whether a file is a binary that contains bundles, rather than a bundle file or a code archive."""
    return is_elf(data) or is_pe(data) or is_ar_archive(data)


class FileRewrite:
    """Rewrites the file ``name``, whose bytes are ``data``.

    The constructor raises `InputError` if there is nothing to edit. Before it edits any bundle, it also raises the same
    errors as `require_sound_image`, `list_places`, and `require_trimmable`.
    """

    def __init__(self, data: Data, name: str, order: RewriteOrder) -> None:
        self._data, self._name, self._order = data, name, order
        self._is_code_object = is_code_object(data)
        self._places: tuple[BundlePlaces, ...] = ()
        self._kpack = KpackRewrite(data, name, order) if is_kpack(data) else None
        if self._kpack is not None:
            return
        if self._is_code_object:
            if order.edit is None or order.storage.compress or order.trim:
                expected = "bundles, because only bundles can be compressed or trimmed"
                raise InputError(name, "a standalone code object", expected=expected)
            return
        require_sound_image(data, name=name)
        if order.trim:
            require_trimmable(data, name=name)
        self._places = list_places(data, name=name)
        if not self._places:
            split, remedy = find_split_library(data, name=name), ""
            found = "a thin archive" if is_thin_archive(data) else "no bundles of device code"
            if split is not None:
                paths = dict.fromkeys(path for unit in split.units for path in unit.marker.search_paths)
                found = f"is a split library, whose code is in {', '.join(paths)}"
                remedy = "Specify one of these archives, or the folder that contains all of them."
            raise InputError(name, found, expected="a fat binary or a bundle file", remedy=remedy)

    def write(self, file: IO[bytes], spool_folder: Path | None = None) -> RewriteReport:
        """Write the edited file and return a report. An unnamed temporary file contains the bundles that move.

        Raises `SignedFileError` if a signature would become invalid, even if the code doesn't fit either, because more
        room wouldn't help. Raises the same errors as `edit_bundle`, `edit_code_object`, and `plan_trim`, and `OSError`
        if writing fails.
        """
        if self._kpack is not None:
            return self._kpack.write(file)
        if self._is_code_object:
            return self._write_code_object(file)
        order, data = self._order, self._data
        tally = _Tally(self._name, self._places, order.progress, looks_within=order.storage.check)
        with open_workers(order.jobs) as executor:
            runtime = needed_runtime(data, name=self._name) if not order.storage.rocm else None
            edited = partial(iter_changes, edit=order.edit, storage=order.storage, executor=executor, jobs=order.jobs)
            try:
                if order.trim:
                    trimmed = self._write_trimmed(file, tally, edited, spool_folder)
                else:
                    trimmed = self._write_in_place(file, tally, edited)
                tally.finish()
            except NoRoomError as e:
                if is_signed_image(data, name=self._name):
                    raise SignedFileError(self._name) from e
                raise
            finally:
                order.progress.end()
        warnings = _warnings(self._name, runtime, tally.written_versions, is_dll=is_pe64(data))
        # The faults of the release's packages, of the runtime's packages, or of all packages if neither is known.
        faults = find_faults(runtime.first, runtime.last) if runtime else find_faults(order.storage.rocm)
        return tally.report(trimmed, warnings, tuple(map(str, faults)))

    def _write_code_object(self, file: IO[bytes]) -> RewriteReport:
        place = CodePlace(self._name)
        assert self._order.edit is not None
        code = read_code_object(self._data, place=place)
        edited = edit_code_object(self._data, code, self._order.edit, place=place)
        for buffer in edited or (self._data,):
            write_data(file, buffer)
        size = len(self._data)
        changed = int(edited is not None)
        return RewriteReport(path=self._name, bundles=0, changed=changed, size_before=size, size_after=size)

    def _write_in_place(self, file: IO[bytes], tally: _Tally, edited: Editing) -> int:
        """Write each change when it is ready; return 0, because no space is trimmed."""
        changes = ((place, tally.count(place, edited(place.data, place.code, place.slots))) for place in self._places)
        replacements = (new for place, made in changes for change in made for new in place.replacements(change))
        if is_pe64(self._data):
            write_edited_image(file, self._data, replacements, name=self._name)
        else:
            write_patched(file, self._data, replacements)
        if not is_ar_archive(self._data):
            file.truncate(self._places[0].patched_size(tally.last))
        return 0

    def _write_trimmed(self, file: IO[bytes], tally: _Tally, edited: Editing, spool_folder: Path | None) -> int:
        """Write the file without the pages that its bundles no longer need; return the size of these pages in bytes."""
        owners: list[int] = []

        def counted() -> Iterator[BundleChange]:
            for place in self._places:
                for change in tally.count(place, edited(place.data, place.code, place.slots)):
                    owners.append(place.base)
                    yield change

        changes: dict[int, list[BundleChange]] = {place.base: [] for place in self._places}
        spooled = spool_changes(counted(), spool_folder)  # one file for all members
        for base, change in zip(owners, spooled, strict=True):
            changes[base].append(change)
        patches = {
            place.base: plan_trim(place.data, name=place.code.name, changes=changes[place.base])
            for place in self._places
        }
        patch = plan_archive_trim(self._data, patches, name=self._name) if is_ar_archive(self._data) else patches[0]
        write_patched(file, self._data, patch.replacements, size=patch.size)
        return len(self._data) - patch.size


def _warnings(source: str, runtime: HipRuntime | None, versions: Iterable[int], *, is_dll: bool) -> tuple[str, ...]:
    if runtime is None or all(map(runtime.reads, versions)):
        return ()
    name = runtime.dll if is_dll else runtime.soname
    releases = f"{runtime.first} to {runtime.last}"
    found = f"needs {name}, the HIP runtime of ROCm {releases}, which can't read bundles in this compression format"
    return (f"{source}: {found}; use the result only with a later runtime",)


class _Tally:
    """Counts the changes to a file's bundles as they pass through."""

    def __init__(self, source: str, places: Sequence[BundlePlaces], progress: Progress, *, looks_within: bool) -> None:
        self.source, self.places, self.progress = source, places, progress
        bundles = {(place.base, slot.bundle.start): slot.bundle for place in places for slot in place.slots}
        self.bundles = len(bundles)
        self.size_before = self.size_after = sum(bundle.size for bundle in bundles.values())
        self.versions = {key: bundle.compressed.version for key, bundle in bundles.items() if bundle.compressed}
        self.changed = self.hosts_spelled = self.seen = 0
        self.written_versions: set[int] = set()
        self.inner_magics = {
            (place.base, slot.bundle.start)
            for place in places
            for slot in place.slots
            if looks_within and slot.bundle.compressed
            if find_inner_magic(place.code.view(place.data)[slot.bundle.start : slot.bundle.stop]) is not None
        }
        self.last: BundleChange | None = None
        progress.begin(f"rewriting {PurePath(source).name}", self.size_before)

    def count(self, place: BundlePlaces, changes: Iterable[BundleChange]) -> Iterator[BundleChange]:
        """Count and yield the changes to the bundles in ``place``."""
        for change in changes:
            self.seen += change.bundle.size
            self.progress.advance(change.bundle.size)
            self.size_after += change.size - change.bundle.size
            self.inner_magics.discard((place.base, change.bundle.start))
            if change.version is not None:
                if find_inner_magic(change.replacements[0].data) is not None:
                    self.inner_magics.add((place.base, change.bundle.start))
                self.versions[place.base, change.bundle.start] = change.version
                self.written_versions.add(change.version)
                self.hosts_spelled += change.bundle.plain.short_host is not None
            self.changed += 1
            self.last = change
            yield change

    def finish(self) -> None:
        """Report progress for unchanged bundles."""
        self.progress.advance(self.size_before - self.seen)

    def report(self, trimmed: int, warnings: tuple[str, ...], faults: tuple[str, ...]) -> RewriteReport:
        """Return the totals, together with ``warnings``, and with ``faults`` if any bundle is compressed."""
        if self.inner_magics:
            bundles = count(len(self.inner_magics), "compressed bundle contains", "compressed bundles contain")
            found = f"{self.source}: {bundles} the bytes CCOB, which some readers mistake for another bundle"
            warnings = (*warnings, found)
        return RewriteReport(
            path=self.source,
            bundles=self.bundles,
            changed=self.changed,
            size_before=self.size_before,
            size_after=self.size_after,
            versions=tuple(sorted(set(self.versions.values()))),
            warnings=warnings,
            faults=faults if self.versions else (),
            trimmed=trimmed,
            hosts_spelled=self.hosts_spelled,
        )


def rewrite_device_code(
    source: Path,
    output: Path,
    edit: BundleEdit | None,
    storage: Storage,
    *,
    trim: bool = False,
    jobs: int = 1,
    progress: Progress = SILENT,
) -> RewriteReport:
    """Write ``source`` to ``output``, with each bundle edited and stored according to ``storage``.

    The output gets its name only when it is complete. If the name is a symlink, the symlink's target is replaced. Freed
    space becomes a hole. With ``trim``, which works only for shared libraries, it is removed. At most ``jobs`` + 1
    bundles, and ``storage.limit`` bytes of decompressed code, are in memory. Bundles that stay plain use almost no
    memory. `edit_code_object` edits a standalone code object. Raises `InputError` if there is nothing to edit, and the
    same errors as `FileRewrite`. Raises `WorkError` if writing fails.
    """
    output = Path(os.path.realpath(output))
    order = RewriteOrder(edit=edit, storage=storage, trim=trim, jobs=jobs, progress=progress)
    with FileRange.whole(source).view() as data:
        rewrite = FileRewrite(data, str(source), order)
        with atomic_file(output, mode=safe_mode(source.stat().st_mode)) as target:
            try:
                return rewrite.write(target.file, output.parent)
            except OSError as e:
                raise write_error(output, e) from e
