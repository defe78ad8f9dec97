"""Editing the device code of a file into another file, bundle by bundle, with several workers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundle_edit import Storage, iter_changes, list_slots, patched_size
from rocwheel.binary.device_code import read_device_code
from rocwheel.binary.fat_trim import plan_fat_trim
from rocwheel.binary.file_patch import write_patched
from rocwheel.errors import InputError, WorkError
from rocwheel.files import FileRange, atomic_file
from rocwheel.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.binary.bundle_edit import BundleChange, BundleEdit, BundleSlot
    from rocwheel.binary.file_patch import Replacement

__all__ = ["RewriteReport", "rewrite_device_code", "trim_fat_binary"]


class RewriteReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a file: its bundles, how many of them changed, and their size before and after, in bytes."""

    path: str
    bundles: int
    changed: int
    size_before: int
    size_after: int
    versions: tuple[int, ...] = ()
    """The header versions of the compressed bundles in the result, whether they changed or not."""
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

    The output takes its name only when it is whole. Freed space is a hole in it; with ``trim``, which is for shared
    libraries only, it is taken out. Memory holds no more than ``jobs`` bundles and one, and of plain ones that stay so
    next to nothing.
    Raises `InputError` when there are no bundles, and as `edit_bundle` and `plan_fat_trim` do; `WorkError` when writing
    fails.
    """
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
        raise _write_error(folder, e) from e
    return folder


def _rewrite(
    source: Path, output: Path, edit: BundleEdit | None, storage: Storage, *, jobs: int, progress: Progress
) -> RewriteReport:
    with FileRange.whole(source).map() as data:
        code = read_device_code(data, name=str(source))
        slots = list_slots(data, code) if code else ()
        if code is None or not slots:
            raise InputError(source, "no bundles of device code", expected="a fat binary or a file of bundles")
        with atomic_file(output, mode=_mode(source)) as target, ThreadPoolExecutor(jobs) as executor:
            changes = iter_changes(data, code, slots, edit, storage, executor=executor, jobs=jobs)
            tally = _Tally(source, slots, progress)
            try:
                write_patched(target.file, data, tally.note(changes))
                target.file.truncate(patched_size(data, code, slots, tally.last))
            except OSError as e:
                raise _write_error(output, e) from e
            finally:
                progress.end()
    return tally.report()


class _Tally:
    """Counts changes as they pass through."""

    def __init__(self, source: Path, slots: Iterable[BundleSlot], progress: Progress) -> None:
        self.source, self.progress = source, progress
        self.bundles = [slot.bundle for slot in slots]
        self.sizes = {bundle.start: bundle.size for bundle in self.bundles}
        self.versions = {bundle.start: bundle.compressed.version for bundle in self.bundles if bundle.compressed}
        self.changed = 0
        self.last: BundleChange | None = None
        progress.begin(f"Rewriting {source.name}", sum(self.sizes.values()))

    def note(self, changes: Iterable[BundleChange]) -> Iterator[Replacement]:
        """Give the replacements of changes."""
        for change in changes:
            self.progress.advance(change.bundle.size)
            self.sizes[change.bundle.start] = change.size
            if change.version is not None:
                self.versions[change.bundle.start] = change.version
            self.changed += 1
            self.last = change
            yield from change.replacements

    def report(self) -> RewriteReport:
        """Sum up."""
        return RewriteReport(
            path=str(self.source),
            bundles=len(self.bundles),
            changed=self.changed,
            size_before=sum(bundle.size for bundle in self.bundles),
            size_after=sum(self.sizes.values()),
            versions=tuple(sorted(set(self.versions.values()))),
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
                raise _write_error(output, e) from e
    return source.stat().st_size - trim.size if trim else 0


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def _write_error(path: Path, error: OSError) -> WorkError:
    return WorkError(path, f"cannot be written ({error.strerror})", remedy="Check the free space.")
