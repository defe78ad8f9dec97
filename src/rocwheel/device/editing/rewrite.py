"""Editing the device code of a file into another file, bundle by bundle, with several workers."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

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
from rocwheel.device.trimming.trim import plan_fat_trim
from rocwheel.foundation.errors import InputError, write_error
from rocwheel.foundation.files import FileRange, atomic_file
from rocwheel.foundation.patch import write_patched
from rocwheel.foundation.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.binary.bundles.compressed.versions import HipRuntime
    from rocwheel.binary.bundles.storage import BundleChange, Storage
    from rocwheel.device.editing.bundle import BundleEdit
    from rocwheel.foundation.patch import Replacement

__all__ = ["RewriteReport", "rewrite_device_code", "trim_fat_binary"]


class RewriteReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a file: its bundles, how many of them changed, and their size before and after, in bytes.

    A code object by itself is no bundle; it counts as changed, though.
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
    `require_trimmable` (before any bundle is edited) and `plan_fat_trim` do; `WorkError` when writing fails.
    """
    output = Path(os.path.realpath(output))
    with FileRange.whole(source).map() as data:
        if is_code_object(data):
            return _rewrite_code_object(data, source, output, edit, is_stored_anew=storage.compress or trim)
        if trim:
            require_trimmable(data, name=str(source))
    if not trim:
        return _rewrite(source, output, edit, storage, jobs=jobs, progress=progress)
    with TemporaryDirectory(prefix=f".{output.name}.", dir=_made(output.parent)) as folder:
        whole = Path(folder) / source.name
        report = _rewrite(source, whole, edit, storage, jobs=jobs, progress=progress)
        return msgspec.structs.replace(report, trimmed=trim_fat_binary(whole, output, name=str(source)))


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise write_error(folder, e) from e
    return folder


def _rewrite_code_object(
    data: memoryview, source: Path, output: Path, edit: BundleEdit | None, *, is_stored_anew: bool
) -> RewriteReport:
    if edit is None or is_stored_anew:
        raise InputError(
            source, "a code object by itself", expected="bundles, which alone can be compressed or trimmed"
        )
    place = Place(str(source))
    edited = edit_code_object(data, read_code_object(data, place=place), edit, place=place)
    with atomic_file(output, mode=_mode(source)) as target:
        for buffer in edited or (data,):
            target.write(buffer)
    size = len(data)
    return RewriteReport(
        path=str(source), bundles=0, changed=int(edited is not None), size_before=size, size_after=size
    )


def _rewrite(
    source: Path, output: Path, edit: BundleEdit | None, storage: Storage, *, jobs: int, progress: Progress
) -> RewriteReport:
    with FileRange.whole(source).map() as data:
        places = list_places(data, name=str(source))
        if not places:
            found = "a thin archive" if is_thin_archive(data) else "no bundles of device code"
            raise InputError(source, found, expected="a fat binary or a file of bundles")
        with atomic_file(output, mode=_mode(source)) as target, ThreadPoolExecutor(jobs) as executor:
            tally = _Tally(source, places, progress)
            runtime = _runtime_of(data, source) if not storage.rocm else None
            edited = partial(iter_changes, edit=edit, storage=storage, executor=executor, jobs=jobs)
            replacements = (tally.note(place, edited(place.data, place.code, place.slots)) for place in places)
            try:
                write_patched(target.file, data, chain.from_iterable(replacements))
                if not is_ar_archive(data):
                    target.file.truncate(places[0].patched_size(tally.last))
            except OSError as e:
                raise write_error(output, e) from e
            finally:
                progress.end()
    return msgspec.structs.replace(tally.report(), warnings=_warnings(source, runtime, tally.written_versions))


def _runtime_of(data: memoryview, source: Path) -> HipRuntime | None:
    return find_runtime(read_elf(data, name=str(source)).needed) if is_elf(data) else None


def _warnings(source: Path, runtime: HipRuntime | None, versions: Iterable[int]) -> tuple[str, ...]:
    if runtime is None or all(map(runtime.reads, versions)):
        return ()
    releases = f"{runtime.first} to {runtime.last}"
    found = (
        f"needs {runtime.soname}, the HIP runtime of ROCm {releases}, which doesn't read bundles compressed like this"
    )
    return (f"{source}: {found}; use the result with a later runtime alone",)


class _Tally:
    """Counts changes as they pass through."""

    def __init__(self, source: Path, places: Sequence[BundlePlaces], progress: Progress) -> None:
        self.source, self.progress = source, progress
        bundles = {(place.base, slot.bundle.start): slot.bundle for place in places for slot in place.slots}
        self.bundles = len(bundles)
        self.size_before = self.size_after = sum(bundle.size for bundle in bundles.values())
        self.versions = {key: bundle.compressed.version for key, bundle in bundles.items() if bundle.compressed}
        self.changed = self.hosts_spelled = 0
        self.written_versions: set[int] = set()
        self.last: BundleChange | None = None
        progress.begin(f"Rewriting {source.name}", self.size_before)

    def note(self, place: BundlePlaces, changes: Iterable[BundleChange]) -> Iterator[Replacement]:
        """Give the replacements of changes."""
        for change in changes:
            self.progress.advance(change.bundle.size)
            self.size_after += change.size - change.bundle.size
            if change.version is not None:
                self.versions[place.base, change.bundle.start] = change.version
                self.written_versions.add(change.version)
                self.hosts_spelled += change.bundle.plain.short_host is not None
            self.changed += 1
            self.last = change
            yield from place.replacements(change)

    def report(self) -> RewriteReport:
        """Sum up."""
        return RewriteReport(
            path=str(self.source),
            bundles=self.bundles,
            changed=self.changed,
            size_before=self.size_before,
            size_after=self.size_after,
            versions=tuple(sorted(set(self.versions.values()))),
            hosts_spelled=self.hosts_spelled,
        )


def trim_fat_binary(source: Path, output: Path, *, name: str = "") -> int:
    """Write the shared library ``source`` to ``output`` without the free pages among its device code.

    ``name`` is what errors call it, if not by its path. Returns by how many bytes the file became smaller.
    Raises `InputError` as `plan_fat_trim` does, and `WorkError`.
    """
    with FileRange.whole(source).map() as data:
        trim = plan_fat_trim(data, name=name or str(source))
        with atomic_file(output, mode=_mode(source)) as target:
            try:
                if trim is None:
                    target.write(data)
                else:
                    write_patched(target.file, data, trim.replacements, size=trim.size)
            except OSError as e:
                raise write_error(output, e) from e
    return source.stat().st_size - trim.size if trim else 0


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777
