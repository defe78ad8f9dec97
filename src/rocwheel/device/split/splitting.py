"""Plans the split of a list of files, from a tree or a wheel, and writes archives for the libraries among them.

All archives for a library are written in one pass over its bundles, with bounded memory. Several workers compress code
objects at the same time, but the code objects are written in bundle order. So the output doesn't depend on the number
of workers, and a compressed bundle is decompressed only once, for any number of targets.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Executor
from contextlib import ExitStack
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.bundles.sequence import iter_entries
from rocwheel.binary.bundles.wrappers import FatBinary, read_fat_binary
from rocwheel.binary.code_objects import TargetId, is_code_object
from rocwheel.binary.kind import is_bundle, is_kpack
from rocwheel.binary.kpack.archive import KernelKey, Scheme, read_archive
from rocwheel.binary.kpack.write import ArchiveSettings, KpackWriter, compress_kernel
from rocwheel.core.compression import DEVICE_CODE_LEVEL
from rocwheel.core.errors import InputError
from rocwheel.core.patch import FilePatch
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import Data, FileRange
from rocwheel.core.workers import attempt_all, raise_all, work_in_order
from rocwheel.device.edit_bundles import is_any_kept
from rocwheel.device.split.host_file import has_code_to_split, plan_host_file
from rocwheel.device.split.host_layout import NotSplittableError
from rocwheel.device.split.units import ARCHIVE_FOLDER, LibraryPlan, group_units, name_groups, read_units
from rocwheel.targets.catalog import load_catalog, sort_key
from rocwheel.targets.kernel_files import (
    KernelFile,
    check_kernel_file,
    classify_path,
    find_family,
    is_unknown_kernel_file,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from rocwheel.binary.bundles.plain import BundleEntry
    from rocwheel.binary.kpack.write import ArchiveSink
    from rocwheel.core.errors import RocwheelError
    from rocwheel.device.split.units import BundleUnit, PlannedArchive


_NOTABLE = 1 << 20


class NamedFile(msgspec.Struct, frozen=True):
    """A file below a root: its path relative to the root, with ``/``, and its bytes."""

    path: str
    content: FileRange
    shown: str = ""
    """The name in messages, or an empty string to use the path."""

    @property
    def name(self) -> str:
        """The file's name in messages."""
        return self.shown or self.path


class SplitChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for a split: which code to keep, and how archives store it."""

    keep: tuple[TargetId, ...] = ()
    """The targets whose code is kept, or an empty tuple for all targets."""
    scheme: Scheme = Scheme.ZSTD
    level: int = DEVICE_CODE_LEVEL
    archives: str = ARCHIVE_FOLDER
    """The folder for archives, below the root."""


class HostFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file in the host folder: an unchanged file, or a library whose code goes into archives."""

    path: str
    content: FileRange
    library: LibraryPlan | None = None
    """The archives for the file's code, or `None` for an unchanged file."""
    patch: FilePatch | None = None
    """The patch that creates the host file, or `None` for an unchanged file."""
    remark: str = ""
    """Why device code stays in the file, or an empty string if there is no such code."""

    @property
    def size(self) -> int:
        """The size of the host file in bytes."""
        return self.content.size if self.patch is None else self.patch.size

    @property
    def zeros(self) -> int:
        """The number of zero bytes that replace code in the host file, or 0 if there is less than a mebibyte."""
        if self.library is None:
            return 0
        left = self.library.fat.section.size - (self.content.size - self.size)
        return left if left >= _NOTABLE else 0


class DeviceFile(msgspec.Struct, frozen=True):
    """A file that is put unchanged into one target's folder: a kernel file, or an existing archive."""

    path: str
    content: FileRange
    target: str


class LackingCode(msgspec.Struct, frozen=True):
    """A target to keep, and the paths of the libraries that have no code for it."""

    target: str
    paths: tuple[str, ...]


class StayingCode(msgspec.Struct, frozen=True):
    """A file in the host folder with actual or apparent device code, and the reason why the code stays there."""

    path: str
    reason: str


class SplitPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan for all files. Each file is in one of the lists, which are sorted by path."""

    host: tuple[HostFile, ...]
    device: tuple[DeviceFile, ...]
    left_out: tuple[str, ...]
    """Kernel files for targets that aren't kept."""
    lacking: tuple[LackingCode, ...] = ()
    """The libraries without code for one of the targets to keep, grouped by target; other targets are omitted."""

    @property
    def libraries(self) -> tuple[tuple[HostFile, LibraryPlan], ...]:
        """The files whose code goes into archives, with the plans for these archives."""
        return tuple((file, file.library) for file in self.host if file.library is not None)

    @property
    def code_size(self) -> int:
        """The total size in bytes of the code objects that go into archives."""
        return sum(library.code_size for _, library in self.libraries)

    def iter_archives(self) -> Iterator[PlannedArchive]:
        """Yield the archives to write, library by library."""
        for _, library in self.libraries:
            yield from library.archives

    @property
    def targets(self) -> tuple[str, ...]:
        """The distinct targets that have separate files."""
        found = {*(file.target for file in self.device), *(archive.target for archive in self.iter_archives())}
        return tuple(sorted(found, key=sort_key))

    @property
    def packages(self) -> tuple[str, ...]:
        """The targets that device wheels are named for. Several targets may share a wheel."""
        return tuple(sorted(set(map(load_catalog().package_of, self.targets)), key=sort_key))


def find_kernels(data: Data, file: NamedFile) -> KernelFile | None:
    """Return the target of a file whose bytes are ``data``, or `None` if the file isn't for only one target.

    Raises `InputError` for a file whose name and content disagree, and for a damaged archive.
    """
    kernels = classify_path(file.path)
    if kernels is not None:
        raise_all(file.name, check_kernel_file(data, file.path, name=file.name))
        return kernels
    if not is_kpack(data):
        return None
    processors = read_archive(data, name=file.name).processors
    return KernelFile(min(processors), "kpack") if len(processors) == 1 else None


class _Sorted(msgspec.Struct, frozen=True):
    """A file and its kind: for one target, a fat binary, or neither."""

    file: NamedFile
    kernels: KernelFile | None = None
    has_code: bool = False
    remark: str = ""
    """Why device code stays in the file, if the reason is known."""


def plan_split(files: Sequence[NamedFile], choice: SplitChoice, *, subject: str) -> SplitPlan:
    """Plan the split of ``files``, whose paths are relative to one root. Only headers are read.

    Archives and known kernel files go to their targets' folders. Libraries that can't be split, other files with device
    code, and unknown kernel files stay in the host folder, each with a remark. Raises `InputError` for damaged files,
    for two archives with the same name, and if nothing is left for the targets to keep. Errors for all files are raised
    together; if there are several, ``subject`` introduces them.
    """
    problems: list[RocwheelError] = []
    ordered = sorted(files, key=lambda file: file.path)
    sorted_files = attempt_all(_sort, ordered, problems)
    groups = name_groups(found.file.path for found in sorted_files if found.has_code)
    others = [found for found in sorted_files if found.kernels is None]
    host = attempt_all(lambda found: _plan_host(found, groups, choice), others, problems)
    kernels = [DeviceFile(one.file.path, one.file.content, one.kernels.target) for one in sorted_files if one.kernels]
    device = tuple(file for file in kernels if _is_kept(file.target, choice.keep))
    left_out = tuple(file.path for file in kernels if file not in device)
    plan = SplitPlan(host=tuple(host), device=device, left_out=left_out, lacking=tuple(_lacking(host, choice.keep)))
    problems += _conflicts(plan)
    if not problems and choice.keep and not plan.targets and (left_out or groups):
        expected = f"code for {', '.join(map(str, choice.keep))}"
        problems.append(InputError(subject, "has no code for any of the targets to keep", expected=expected))
    raise_all(subject, problems)
    return plan


def _sort(file: NamedFile) -> _Sorted:
    with file.content.view() as data:
        kernels = find_kernels(data, file)
        if kernels is not None or is_kpack(data):
            return _Sorted(file, kernels)
        try:
            return _Sorted(file, has_code=has_code_to_split(data, name=file.name))
        except NotSplittableError as e:
            return _Sorted(file, remark=e.reason)


def _plan_host(found: _Sorted, groups: dict[str, str], choice: SplitChoice) -> HostFile:
    path, content = found.file.path, found.file.content
    if not found.has_code:
        return HostFile(path=path, content=content, remark=found.remark or _remark(found.file))
    with content.view() as data:
        fat = read_fat_binary(data, name=found.file.name)
        assert isinstance(fat, FatBinary), "it has code to split"
        try:
            units = group_units(read_units(data, fat, choice.keep), groups[path])
            library = LibraryPlan(path=path, kernel_name=path, fat=fat, groups=units, folder=choice.archives)
            patch = plan_host_file(data, library.markers(), library.links(), name=found.file.name)
        except NotSplittableError as e:
            return HostFile(path=path, content=content, remark=e.reason)
    return HostFile(path=path, content=content, library=library, patch=patch)


def _remark(file: NamedFile) -> str:
    """Return why device code stays in a file that isn't a fat binary, or an empty string if there is no device code."""
    if is_unknown_kernel_file(file.path):
        return "a kernel file that no rule covers"
    with file.content.view() as data:
        if is_kpack(data):
            return "an archive for several targets"
        targets = device_targets(data, name=file.name)
        is_file_of_code = is_bundle(data) or is_code_object(data)
    what = "device code that no rule covers" if is_file_of_code else "device code in an object file or a static library"
    return f"{what}, for {', '.join(map(str, targets))}" if targets else ""


def _is_kept(target: str, keep: Sequence[TargetId]) -> bool:
    """Return whether a file for ``target``, which may be a family, serves one of the targets to keep."""
    family = find_family(target)
    members = family.targets if family else (target,)
    return not keep or is_any_kept(map(TargetId, members), keep)


def _lacking(host: Sequence[HostFile], keep: Sequence[TargetId]) -> Iterator[LackingCode]:
    """Yield each target to keep for which some library has no code."""
    targets = {file.path: {t for unit in file.library.units for t in unit.targets} for file in host if file.library}
    for wanted in keep:
        paths = tuple(path for path, found in targets.items() if not is_any_kept(found, [wanted]))
        if paths:
            yield LackingCode(str(wanted), paths)


def _conflicts(plan: SplitPlan) -> list[InputError]:
    """Return an error for each archive whose name conflicts with an archive, a file of the tree, or a parent folder."""
    taken = {path.lower() for path in [*(file.path for file in plan.host), *(file.path for file in plan.device)]}
    above = {str(parent) for archive in plan.iter_archives() for parent in PurePosixPath(archive.path).parents}
    in_the_way = [
        InputError(
            path,
            "is a file, but the split puts archives below it",
            expected="another folder for archives",
        )
        for path in sorted(above)
        if path.lower() in taken
    ]
    there = [
        InputError(
            archive.path,
            "is already in the tree, but the split would create it",
            expected="a tree without this file",
            remedy="Join the tree first.",
        )
        for archive in plan.iter_archives()
        if archive.path.lower() in taken
    ]
    users = Counter(archive.path.lower() for archive in plan.iter_archives())
    made_twice = [
        InputError(path, "would be created from two libraries", expected="names that differ by more than '-part2'")
        for path in dict.fromkeys(archive.path for archive in plan.iter_archives())
        if users[path.lower()] > 1
    ]
    return made_twice + in_the_way + there


class Workers(msgspec.Struct, frozen=True):
    """The workers that compress code, and the progress display."""

    executor: Executor
    progress: Progress = SILENT
    jobs: int = 0
    """The number of workers for a step that starts its own workers; 0 means one for each core."""


def write_archives(
    file: HostFile,
    choice: SplitChoice,
    open_sink: Callable[[PlannedArchive], AbstractContextManager[ArchiveSink]],
    workers: Workers,
) -> None:
    """Write all archives for a library to the sinks from ``open_sink``.

    An archive is complete when its sink's block ends without an error.

    Raises `DeviceCodeError` for damaged bundles, `KpackError` for archives that readers refuse, and any errors from the
    files.
    """
    library = file.library
    assert library is not None, "it has archives"
    with file.content.view() as data, ExitStack() as stack:
        writers: dict[tuple[str, str], KpackWriter] = {}
        for archive in library.archives:
            facts = ArchiveSettings(archive.group, archive.target, choice.scheme)
            sink = stack.enter_context(open_sink(archive))
            writers[archive.group, archive.target] = KpackWriter(sink, facts, name=archive.path)
        for made in work_in_order(workers.executor, _iter_work(data, library, writers, choice)):
            writer, keys, size, stored = made
            writer.add(keys, stored, size)
            workers.progress.advance(size)
            del made, stored  # before waiting for the next result
        for writer in writers.values():
            writer.finish()


_Stored: TypeAlias = "tuple[KpackWriter, tuple[KernelKey, ...], int, Data]"
"""A code object in its stored form, with its archive's writer, its keys in the archive, and its original size."""


def _iter_work(
    data: Data, library: LibraryPlan, writers: dict[tuple[str, str], KpackWriter], choice: SplitChoice
) -> Iterator[tuple[int, Callable[[], _Stored]]]:
    """Yield the size of each code object, and the function that compresses it, in bundle order."""
    group_of = library.group_of()
    view = library.fat.view(data)
    for unit in library.units:
        group = group_of[unit.index]
        places = {
            unit.entries[position].offset: (writers[group.name, target], keys)
            for target in group.targets
            for position, keys in group.keys_of(unit, target).items()
        }
        for entry, code in _iter_code(view, unit):
            writer, keys = places[entry.offset]
            kernel_keys = tuple(KernelKey(library.kernel_name, unit.index, key) for key in keys)
            yield entry.size, partial(_compress, writer, kernel_keys, code, choice)


def _compress(writer: KpackWriter, keys: tuple[KernelKey, ...], code: Data, choice: SplitChoice) -> _Stored:
    return writer, keys, len(code), compress_kernel(code, choice.scheme, choice.level)


def _iter_code(view: Data, unit: BundleUnit) -> Iterator[tuple[BundleEntry, Data]]:
    """Yield each entry of a unit with its code, in file order.

    The code of a plain bundle is read only when it is used.
    """
    code = bytearray()
    ordered = sorted(unit.entries, key=lambda entry: entry.offset)
    for entry, piece in iter_entries(view, unit.bundle, ordered):
        if len(piece) == entry.size:
            yield entry, piece
            continue
        code += piece if isinstance(piece, memoryview) else bytes(piece)
        if len(code) == entry.size:
            yield entry, memoryview(code)
            code = bytearray()
