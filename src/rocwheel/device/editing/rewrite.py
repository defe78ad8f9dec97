"""Editing the device code of a file into another file, bundle by bundle, with several workers."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from rocwheel.binary.bundles.compressed.versions import find_runtime
from rocwheel.binary.code_objects.code_object import is_code_object, read_code_object
from rocwheel.binary.code_objects.errors import Place
from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.kind import is_ar_archive, is_elf, is_thin_archive
from rocwheel.device.editing.bundle import edit_code_object
from rocwheel.device.editing.patch import iter_changes
from rocwheel.device.editing.places import BundlePlaces, list_places
from rocwheel.device.trimming.library import require_trimmable
from rocwheel.device.trimming.spool import spool_changes
from rocwheel.device.trimming.trim import plan_trim
from rocwheel.foundation.atomic_file import atomic_file
from rocwheel.foundation.errors import InputError, write_error
from rocwheel.foundation.file_view import iter_pieces
from rocwheel.foundation.files import FileRange
from rocwheel.foundation.patch import write_patched
from rocwheel.foundation.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rocwheel.binary.bundles.compressed.versions import HipRuntime
    from rocwheel.binary.bundles.device_code import DeviceCode
    from rocwheel.binary.bundles.storage import BundleChange, BundleSlot, Storage
    from rocwheel.device.editing.bundle import BundleEdit
    from rocwheel.foundation.atomic_file import AtomicFile
    from rocwheel.foundation.file_view import Data

    Editing: TypeAlias = Callable[[Data, DeviceCode, Sequence[BundleSlot]], Iterator[BundleChange]]

__all__ = ["RewriteReport", "rewrite_device_code"]


class RewriteReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to a file: its bundles, how many of them changed, and their size before and after, in bytes.

    A code object by itself is not a bundle, but it counts as changed.
    """

    path: str
    bundles: int
    changed: int
    size_before: int
    size_after: int
    versions: tuple[int, ...] = ()
    """The header versions of the compressed bundles in the result, whether they changed or not."""
    warnings: tuple[str, ...] = ()
    """What is doubtful about the result."""
    hosts_spelled: int = 0
    """The number of compressed bundles whose host entries were spelled so that later readers take them."""
    trimmed: int = 0
    """By how many bytes the file became smaller; 0 unless it was to be trimmed."""


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
    """Write ``source`` to ``output`` with each bundle edited and stored as ``storage`` says.

    The output takes its name only when it is whole; through a symlink, that of its target. Freed space is a hole in it;
    with ``trim``, which is for shared libraries only, it is taken out. Memory holds no more than ``jobs`` bundles and
    one, nor more than ``storage.limit`` bytes of decompressed code, and of plain ones that stay so next to nothing.
    A code object by itself is edited by `edit_code_object`.
    Raises `InputError` when there is nothing to edit, and as `list_places`, `edit_bundle`, `edit_code_object`,
    `require_trimmable` (before any bundle is edited) and `plan_trim` do; `WorkError` when writing fails.
    """
    output = Path(os.path.realpath(output))
    with FileRange.whole(source).view() as data:
        if is_code_object(data):
            return _rewrite_code_object(data, source, output, edit, is_stored_otherwise=storage.compress or trim)
        if trim:
            require_trimmable(data, name=str(source))
        places = _find_places(data, source)
        with atomic_file(output, mode=_mode(source)) as target, ThreadPoolExecutor(jobs) as executor:
            tally = _Tally(source, places, progress)
            runtime = _runtime_of(data, source) if not storage.rocm else None
            edited = partial(iter_changes, edit=edit, storage=storage, executor=executor, jobs=jobs)
            try:
                trimmed = _write_trimmed(target, data, tally, edited) if trim else _write(target, data, tally, edited)
            except OSError as e:
                raise write_error(output, e) from e
            finally:
                progress.end()
    return tally.report(trimmed, _warnings(source, runtime, tally.written_versions))


def _rewrite_code_object(
    data: Data, source: Path, output: Path, edit: BundleEdit | None, *, is_stored_otherwise: bool
) -> RewriteReport:
    if edit is None or is_stored_otherwise:
        raise InputError(source, "a code object by itself", expected="bundles: only these can be compressed or trimmed")
    place = Place(str(source))
    edited = edit_code_object(data, read_code_object(data, place=place), edit, place=place)
    with atomic_file(output, mode=_mode(source)) as target:
        for buffer in edited or (data,):
            for piece in iter_pieces(buffer):
                target.write(piece)
    size = len(data)
    return RewriteReport(
        path=str(source), bundles=0, changed=int(edited is not None), size_before=size, size_after=size
    )


def _find_places(data: Data, source: Path) -> tuple[BundlePlaces, ...]:
    places = list_places(data, name=str(source))
    if not places:
        found = "a thin archive" if is_thin_archive(data) else "no bundles of device code"
        raise InputError(source, found, expected="a fat binary or a file of bundles")
    return places


def _write(target: AtomicFile, data: Data, tally: _Tally, edited: Editing) -> int:
    """Write each change as it is made; return 0, as nothing is trimmed."""
    changes = ((place, tally.count(place, edited(place.data, place.code, place.slots))) for place in tally.places)
    replacements = (new for place, made in changes for change in made for new in place.replacements(change))
    write_patched(target.file, data, replacements)
    if not is_ar_archive(data):
        target.file.truncate(tally.places[0].patched_size(tally.last))
    return 0


def _write_trimmed(target: AtomicFile, data: Data, tally: _Tally, edited: Editing) -> int:
    """Write the shared library without the pages that its bundles leave free; return how many bytes these are."""
    [place] = tally.places
    changes = spool_changes(tally.count(place, edited(data, place.code, place.slots)), target.path.parent)
    patch = plan_trim(data, name=place.code.name, changes=changes)
    write_patched(target.file, data, patch.replacements, size=patch.size)
    return len(data) - patch.size


def _runtime_of(data: Data, source: Path) -> HipRuntime | None:
    return find_runtime(read_elf(data, name=str(source)).needed) if is_elf(data) else None


def _warnings(source: Path, runtime: HipRuntime | None, versions: Iterable[int]) -> tuple[str, ...]:
    if runtime is None or all(map(runtime.reads, versions)):
        return ()
    releases = f"{runtime.first} to {runtime.last}"
    found = (
        f"needs {runtime.soname}, the HIP runtime of ROCm {releases}, which doesn't read bundles compressed like this"
    )
    return (f"{source}: {found}; use the result only with a later runtime",)


class _Tally:
    """Counts the changes of a file's bundles as they pass through."""

    def __init__(self, source: Path, places: Sequence[BundlePlaces], progress: Progress) -> None:
        self.source, self.places, self.progress = source, places, progress
        bundles = {(place.base, slot.bundle.start): slot.bundle for place in places for slot in place.slots}
        self.bundles = len(bundles)
        self.size_before = self.size_after = sum(bundle.size for bundle in bundles.values())
        self.versions = {key: bundle.compressed.version for key, bundle in bundles.items() if bundle.compressed}
        self.changed = self.hosts_spelled = 0
        self.written_versions: set[int] = set()
        self.last: BundleChange | None = None
        progress.begin(f"Rewriting {source.name}", self.size_before)

    def count(self, place: BundlePlaces, changes: Iterable[BundleChange]) -> Iterator[BundleChange]:
        """Yield the changes of the bundles in ``place``, once counted."""
        for change in changes:
            self.progress.advance(change.bundle.size)
            self.size_after += change.size - change.bundle.size
            if change.version is not None:
                self.versions[place.base, change.bundle.start] = change.version
                self.written_versions.add(change.version)
                self.hosts_spelled += change.bundle.plain.short_host is not None
            self.changed += 1
            self.last = change
            yield change

    def report(self, trimmed: int, warnings: tuple[str, ...]) -> RewriteReport:
        """Return the sum of what was counted, with what else there is to report."""
        return RewriteReport(
            path=str(self.source),
            bundles=self.bundles,
            changed=self.changed,
            size_before=self.size_before,
            size_after=self.size_after,
            versions=tuple(sorted(set(self.versions.values()))),
            warnings=warnings,
            trimmed=trimmed,
            hosts_spelled=self.hosts_spelled,
        )


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777
