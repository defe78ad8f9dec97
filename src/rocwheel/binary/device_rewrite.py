"""Editing the device code of a file into another file, bundle by bundle, with several workers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.binary.bundle_edit import Storage, iter_replacements, list_slots, patched_size
from rocwheel.binary.compressed_bundle import header_version
from rocwheel.binary.device_code import read_device_code
from rocwheel.binary.fat_trim import plan_fat_trim, write_trimmed
from rocwheel.binary.file_patch import write_patched
from rocwheel.errors import InputError, WorkError
from rocwheel.files import FileRange, atomic_file
from rocwheel.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.binary.bundle_edit import BundleEdit, BundleSlot
    from rocwheel.binary.device_code import DeviceCode
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
    """The header versions of the compressed bundles that were written."""
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
    libraries only, it is taken out. Memory holds a few bundles at a time.
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
            replacements = iter_replacements(data, code, slots, edit, storage, executor=executor)
            progress.begin(f"Rewriting {source.name}", sum(slot.bundle.size for slot in slots))
            sizes = {code.section[0] + slot.bundle.start: slot.bundle.size for slot in slots}
            changed: dict[int, int] = {}
            versions: set[int] = set()
            try:
                _write(target.file, data, code, slots, _note(replacements, changed, versions, sizes, progress))
            except OSError as e:
                raise _write_error(output, e) from e
            finally:
                progress.end()
    return RewriteReport(
        path=str(source),
        bundles=len(slots),
        changed=len(changed),
        size_before=sum(sizes.values()),
        size_after=sum((sizes | changed).values()),
        versions=tuple(sorted(versions)),
    )


def _write(
    file: IO[bytes],
    data: memoryview,
    code: DeviceCode,
    slots: tuple[BundleSlot, ...],
    replacements: Iterable[Replacement],
) -> None:
    last = write_patched(file, data, replacements)
    file.truncate(patched_size(data, code, slots, last))


def _note(
    replacements: Iterable[Replacement],
    changed: dict[int, int],
    versions: set[int],
    sizes: dict[int, int],
    progress: Progress,
) -> Iterator[Replacement]:
    """Pass replacements through, noting the new size of each bundle and the versions of headers."""
    for replacement in replacements:
        if (version := header_version(replacement.data)) is not None:
            versions.add(version)
        progress.advance(sizes[replacement.start])
        changed[replacement.start] = len(replacement.data)
        yield replacement


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
                    write_trimmed(target.file, data, trim)
            except OSError as e:
                raise _write_error(output, e) from e
    return trim.saved if trim else 0


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def _write_error(path: Path, error: OSError) -> WorkError:
    return WorkError(path, f"cannot be written ({error.strerror})", remedy="Check the free space.")
