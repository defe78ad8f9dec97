"""Plans how code is restored in host files: the archive with each unit's code, and the resulting bundles."""

from __future__ import annotations

import posixpath
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.compressed import write_compressed_bundle
from rocwheel.binary.bundles.plain import BUNDLE_ALIGNMENT, CODE_ENTRY, HOST_ENTRY, lay_out_bundle, spell_host
from rocwheel.binary.bundles.runtimes import last_stopping_release
from rocwheel.binary.bundles.storage import announce_level, choose_version, stronger_level
from rocwheel.binary.code_objects import BundleEntryId, CodePlace, DeviceCodeError, TargetId, parse_target_id
from rocwheel.binary.kind import is_kpack
from rocwheel.binary.kpack.archive import KERNEL_LIMIT, KpackArchive, KpackEntry, iter_kernel, read_archive, split_key
from rocwheel.binary.kpack.markers import SplitLibrary, check_sizes, find_split_library, leads_to
from rocwheel.binary.kpack.write import FileSink, Storing, recompress_archive, select_entries
from rocwheel.core.compression import DEVICE_CODE_LEVEL
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, first_of
from rocwheel.core.patch import FilePatch, write_patch
from rocwheel.core.reading import Data, FileRange, FileView, load
from rocwheel.core.scratch import no_room, open_temporary, path_of
from rocwheel.core.workers import attempt_all, map_collecting, open_workers, raise_all
from rocwheel.device.edit_file import require_sound_image
from rocwheel.device.kpack_code import NamedArchive, UnitFault, find_unit_faults
from rocwheel.device.split.host_layout import NoRoomForCodeError
from rocwheel.device.split.joined_file import plan_fat_file
from rocwheel.device.split.splitting import NamedFile
from rocwheel.device.split.units import code_keys, named_features
from rocwheel.targets.kernel_files import check_kernel_file, classify_path
from rocwheel.targets.target_set import text_sort_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from rocwheel.binary.kpack.markers import Marker, SplitUnit
    from rocwheel.core.errors import RocwheelError


class ArchiveFile(msgspec.Struct, frozen=True):
    """An archive at a path below the root of the combined host and device tree."""

    path: str
    content: FileRange
    archive: KpackArchive

    def holds_only(self, binaries: Collection[str]) -> bool:
        """Return whether all of the archive's code belongs to ``binaries``, which contains kernel names."""
        return all(entry.binary in binaries for entry in self.archive.entries)


class FoundCode(msgspec.Struct, frozen=True):
    """A bundle entry: its ID and the location of its code. The host entry has no code, so its location is `None`."""

    spelling: str
    file: ArchiveFile | None = None
    entry: KpackEntry | None = None


class UnitCode(msgspec.Struct, frozen=True):
    """The entries of a unit's bundle, in order, and the targets whose code isn't in any archive."""

    entries: tuple[FoundCode, ...]
    missing: tuple[str, ...] = ()
    was_compressed: bool = False
    """Whether the bundle was compressed, according to the marker."""


def archives_of(binary: str, unit: SplitUnit, archives: Sequence[ArchiveFile]) -> tuple[ArchiveFile, ...]:
    """Return the archives that a unit's marker refers to for the file at ``binary``, in the marker's order."""
    places = [_place(binary, path) for path in unit.marker.search_paths]
    named = (file for place in places for file in archives if leads_to(place, file.path))
    return tuple({file.path: file for file in named}.values())


def needs_archives(unit: SplitUnit) -> bool:
    """Return whether a unit has code in archives. A unit has no code in archives if a split kept only other targets."""
    entries = unit.marker.entries
    return not entries or any(BundleEntryId.parse(spelling).target for spelling in entries)


def _place(binary: str, search_path: str) -> str:
    """Return the path, below the root, of the archives that a search path refers to.

    If a file is used outside its tree, its path may go above the root. In that case, only the remaining part of the
    path is used.
    """
    path = posixpath.normpath(posixpath.join(posixpath.dirname(binary), search_path)).lstrip("/")
    while path.startswith("../"):
        path = path.removeprefix("../")
    return path


def find_code(
    unit: SplitUnit,
    archives: Sequence[ArchiveFile],
    *,
    name: str,
    renumbered: Mapping[tuple[str, int], int],
) -> UnitCode:
    """Return the code of ``unit`` from the archives that its marker refers to.

    If the marker has the IDs of the bundle's entries, these entries keep their order. These entries are followed by
    code from archives for other targets, which exist, for example, after retargeting. Without these IDs, the entries
    are the host and each code object, sorted by target. ``renumbered`` contains the correct unit of each code object
    with a wrong index, keyed by the archive and the wrong index. Raises `DeviceCodeError`, with the host file's
    ``name``, if an archive for one of its targets lacks the unit.
    """
    if unit.marker.entries:
        return _by_ids(unit, archives, name)
    return UnitCode((FoundCode(HOST_ENTRY), *_by_targets(unit, archives, renumbered)))


def _by_targets(
    unit: SplitUnit, archives: Sequence[ArchiveFile], renumbered: Mapping[tuple[str, int], int]
) -> list[FoundCode]:
    """Return a unit's code from archives, with one entry for each code object, sorted by target."""
    found: dict[tuple[str, int], tuple[ArchiveFile, KpackEntry]] = {}
    for file in archives:
        for entry in file.archive.entries:
            if entry.binary != unit.marker.kernel_name or entry.index is None:
                continue
            if renumbered.get((file.path, entry.index), entry.index) == unit.index:
                key = (file.path, entry.ordinal)
                found[key] = min(found.get(key, (file, entry)), (file, entry), key=lambda pair: len(pair[1].target))
    entries = (FoundCode(f"{CODE_ENTRY}{entry.target}", file, entry) for file, entry in found.values())
    return sorted(entries, key=lambda code: code.spelling)


def _by_ids(unit: SplitUnit, archives: Sequence[ArchiveFile], name: str) -> UnitCode:
    ids = [(spelling, BundleEntryId.parse(spelling, source=name)) for spelling in unit.marker.entries]
    targets = [entry_id.target for _, entry_id in ids if entry_id.target is not None]
    entries, missing = [], []
    for spelling, entry_id in ids:
        if entry_id.target is None:
            entries.append(FoundCode(spelling))
            continue
        file = next((file for file in archives if entry_id.target.processor in file.archive.processors), None)
        if file is None:
            missing.append(str(entry_id.target))
        else:
            entries.append(FoundCode(spelling, file, _entry(unit, file, targets, entry_id.target, name)))
    own = {target.processor for target in targets}
    further = [file for file in archives if own.isdisjoint(file.archive.processors)]
    further_code = _by_targets(unit, further, {})
    return UnitCode((*entries, *further_code), tuple(missing), unit.marker.compressed)


def _entry(unit: SplitUnit, file: ArchiveFile, targets: Sequence[TargetId], target: TargetId, name: str) -> KpackEntry:
    listed = [parse_target_id(text, source=file.path) for text in file.archive.targets]
    features = named_features(key for key in listed if key.processor == target.processor)
    position = targets.index(target)
    for key, at in code_keys(targets, target.processor, features).items():
        entry = file.archive.find(unit.marker.kernel_name, unit.index, str(key)) if at == position else None
        if entry is not None:
            return entry
    raise DeviceCodeError(
        CodePlace(name, unit.offset),
        f"{file.path} has no code for {target} in {unit.marker.kernel_name}#{unit.index}",
        expected="code for every unit in the archives that the file refers to",
        remedy="The archive may be from another build. Use an archive that was made with this file.",
    )


class IndexCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The faults in a library's archives; ``name`` identifies the library in messages."""

    name: str
    faults: tuple[UnitFault, ...]
    renumbered: dict[tuple[str, int], int]
    """The correct unit of each code object with a wrong index, keyed by the archive's path and the wrong index."""

    def texts(self) -> tuple[str, ...]:
        """Return descriptions of the faults, one for each archive."""
        return tuple(map(self._text, self.faults))

    def _text(self, fault: UnitFault) -> str:
        units = f"{count(len(fault.lacking), 'unit')} ({first_of([str(_index(key)) for key in fault.lacking])})"
        outcome = (
            f"if it lists a GPU, runtimes up to {last_stopping_release()} don't search any other archives and "
            "reject every GPU"
        )
        text = (
            f"{self.name}: {fault.archive} lacks {units}: {outcome}; later runtimes do the same unless another archive "
            "has the units"
        )
        if fault.owners:
            wrong = [f"{_index(key)} should be {_index(owner)}" for key, owner in fault.owners.items()]
            return f"{text}; other units have wrong indices ({first_of(wrong)})"
        return (
            text
            if fault.is_clear
            else f"{text}; indices may also be wrong, because the kernels don't identify the units"
        )


def check_indices(path: str, library: SplitLibrary, archives: Sequence[ArchiveFile], *, name: str) -> IndexCheck:
    """Check the archives of the library at ``path``, which ``name`` identifies in messages.

    Code is read only if units are missing. Raises `KpackError` and `DeviceCodeError` for damaged code.
    """
    wanted: dict[str, set[str]] = {}
    files: dict[str, ArchiveFile] = {}
    for unit in library.units:
        for file in archives_of(path, unit, archives):
            files[file.path] = file
            wanted.setdefault(file.path, set()).add(f"{unit.marker.kernel_name}#{unit.index}")
    with ExitStack() as stack:
        named = [
            NamedArchive(stack.enter_context(file.content.view()), file.archive, frozenset(wanted[file.path]))
            for _, file in sorted(files.items())
        ]
        faults = find_unit_faults(named, (unit.marker.kernel_name for unit in library.units))
    path_of = {file.archive.name: file.path for file in files.values()}
    renumbered = {
        (path_of[fault.archive], _index(key)): _index(owner) for fault in faults for key, owner in fault.owners.items()
    }
    return IndexCheck(name=name, faults=faults, renumbered=renumbered)


def _index(key: str) -> int:
    index = split_key(key)[1]
    assert index is not None, "keys of units have an index"
    return index


class JoinPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A library's bundles, keyed by index, and the bundle for each wrapper."""

    units: tuple[UnitCode, ...]
    links: tuple[int, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        """The distinct targets for which the library gets code, as written in bundles."""
        spellings = {code.spelling for unit in self.units for code in unit.entries if code.entry}
        found = {str(BundleEntryId.parse(spelling).target) for spelling in spellings}
        return tuple(sorted(found, key=text_sort_key))

    @property
    def missing(self) -> tuple[str, ...]:
        """The targets for which some unit had code, but for which no archive has code."""
        return tuple(sorted({target for unit in self.units for target in unit.missing}, key=text_sort_key))

    @property
    def code_size(self) -> int:
        """The total size of all code objects in bytes."""
        return sum(code.entry.size for unit in self.units for code in unit.entries if code.entry)


def plan_library_join(
    path: str,
    library: SplitLibrary,
    archives: Sequence[ArchiveFile],
    *,
    renumbered: Mapping[tuple[str, int], int],
) -> JoinPlan:
    """Plan the joining of ``library``, at ``path`` below the root, with ``archives`` below the same root.

    ``renumbered`` has the same meaning as in `find_code`. Raises `InputError` if the library's markers don't refer to
    any of the archives. Raises the same errors as `find_code`.
    """
    distinct = sorted(dict.fromkeys(map(_key, library.units)), key=lambda key: key[0])
    by_key: dict[tuple[int, str], SplitUnit] = {_key(unit): unit for unit in library.units}
    named = {key: archives_of(path, by_key[key], archives) for key in distinct}
    if any(needs_archives(unit) for unit in library.units) and not any(named.values()):
        paths = dict.fromkeys(path for unit in library.units for path in unit.marker.search_paths)
        found = "the archives with its code are missing"
        remedy = "Also specify the targets' folders, or the device wheels."
        raise InputError(path, found, expected=f"at least one of {', '.join(paths)}", remedy=remedy)
    units = tuple(find_code(by_key[key], named[key], name=path, renumbered=renumbered) for key in distinct)
    raise_all(path, list(_strangers(path, [by_key[key] for key in distinct], units)))
    return JoinPlan(units=units, links=tuple(distinct.index(_key(unit)) for unit in library.units))


def _strangers(path: str, split: Sequence[SplitUnit], units: Sequence[UnitCode]) -> Iterator[InputError]:
    """Yield an error for each bundle entry whose code sizes differ from the sizes before the split."""
    members: dict[Marker, list[tuple[int, UnitCode]]] = {}
    for unit, code in zip(split, units, strict=True):
        members.setdefault(unit.marker, []).append((unit.index, code))
    for marker, codes in members.items():
        for spelling, check in zip(marker.entries if marker.checks else (), marker.checks, strict=True):
            found = [(index, one) for index, code in codes for one in code.entries if one.spelling == spelling]
            sizes = [(index, one.entry.size) for index, one in found if one.entry is not None]
            if len(sizes) == len(codes) and check_sizes(sizes) != check:
                files = dict.fromkeys(one.file.path for _, one in found if one.file is not None)
                yield InputError(
                    path,
                    f"{', '.join(files)}: code objects with different sizes than before the split",
                    expected="an archive from the same build",
                    remedy="Use the folders that were created together with this file.",
                )


def _key(unit: SplitUnit) -> tuple[int, str]:
    return unit.index, unit.marker.kernel_name


class JoinStorage(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for restoring bundles.

    By default, a bundle is compressed if the host file records that it was compressed before the split.
    """

    compress: bool = False
    """Whether to compress all bundles."""
    level: int = DEVICE_CODE_LEVEL
    """The zstd level. If the compressed bundles don't fit in the file, higher levels are tried."""


@contextmanager
def plan_join(data: Data, join: JoinPlan, storage: JoinStorage | None = None, *, name: str) -> Iterator[FilePatch]:
    """Yield the patch that puts the code of a plan into the host file ``data``.

    During the block, an unnamed file contains the bundles, so only a few megabytes of one bundle are in memory. If the
    bundles don't fit in the file, all bundles are compressed, at the lowest level that makes them fit. Raises
    `NotJoinableError` if the bundles don't fit at any level, `KpackError` for damaged archives, and `WorkError` if
    there is no space for the unnamed file.
    """
    with ExitStack() as stack:
        yield _fit(data, join, storage or JoinStorage(), name, stack)


def _fit(data: Data, join: JoinPlan, storage: JoinStorage, name: str, stack: ExitStack) -> FilePatch:
    level, packed = storage.level, [storage.compress or unit.was_compressed for unit in join.units]
    plain = _spool_plain(join.units, packed, name, stack)
    while True:
        found = _plan(data, _spool_packed(plain, packed, level, name, stack), join.links, name)
        if isinstance(found, FilePatch):
            return found
        if not all(packed):
            packed = [True] * len(join.units)
            plain = _spool_plain(join.units, packed, name, stack)
            continue
        raw_size = sum(map(len, plain))
        stronger = stronger_level(level, raw_size, found.size, found.room)
        if stronger is None:
            raise found
        announce_level(name, raw_size, stronger, found.size, found.room)
        level = stronger


def _plan(data: Data, bundles: Sequence[Data], links: Sequence[int], name: str) -> FilePatch | NoRoomForCodeError:
    try:
        return plan_fat_file(data, bundles, links, name=name)
    except NoRoomForCodeError as e:
        return e


def _spool_plain(units: Sequence[UnitCode], packed: Sequence[bool], name: str, stack: ExitStack) -> tuple[Data, ...]:
    writers = [
        partial(_write_bundle, unit, spell_hosts=is_packed and not unit.was_compressed)
        for unit, is_packed in zip(units, packed, strict=True)
    ]
    return stack.enter_context(_spooled(writers, name))


def _spool_packed(
    plain: Sequence[Data], packed: Sequence[bool], level: int, name: str, stack: ExitStack
) -> tuple[Data, ...]:
    """Return the bundles, compressed where ``packed`` is true."""
    writers = [
        partial(_pack_bundle, bundle, level, name) for bundle, is_packed in zip(plain, packed, strict=True) if is_packed
    ]
    compressed = iter(stack.enter_context(_spooled(writers, name)))
    return tuple(next(compressed) if is_packed else bundle for bundle, is_packed in zip(plain, packed, strict=True))


@contextmanager
def _spooled(writers: Iterable[Callable[[IO[bytes]], None]], name: str) -> Iterator[tuple[Data, ...]]:
    """Yield the bundles that ``writers`` write to an unnamed file."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open_temporary(buffering=-1))
            places = []
            for write in writers:
                start = file.seek(-(-file.tell() // BUNDLE_ALIGNMENT) * BUNDLE_ALIGNMENT)
                write(file)
                places.append((start, file.tell()))
            file.truncate()
            file.flush()
        except OSError as e:
            raise no_room(name, "its device code", e) from e
        yield tuple(FileView(FileRange(path_of(file), start, stop - start)) for start, stop in places)


def _write_bundle(unit: UnitCode, file: IO[bytes], *, spell_hosts: bool) -> None:
    """Write a plain bundle, with holes between its payloads and before an empty payload at its end."""
    start = file.tell()
    spelled = [spell_host(code.spelling) if spell_hosts else code.spelling for code in unit.entries]
    sizes = [code.entry.size if code.entry else 0 for code in unit.entries]
    header, offsets = lay_out_bundle([*zip(spelled, sizes, strict=True)])
    file.write(header)
    for code, offset in zip(unit.entries, offsets, strict=True):
        file.seek(start + offset)
        if code.file is None or code.entry is None:
            continue
        with code.file.content.view() as data:
            for piece in iter_kernel(data, code.file.archive, code.entry, limit=KERNEL_LIMIT):
                file.write(load(piece))


def _pack_bundle(plain: Data, level: int, name: str, file: IO[bytes]) -> None:
    version = choose_version(len(plain), source=name)
    write_compressed_bundle(file, [plain], version=version, level=level)


class Joins(msgspec.Struct, frozen=True):
    """The plan for each library, keyed by path, and the archives whose code is completely restored in libraries."""

    joins: dict[str, JoinPlan]
    used: frozenset[str]
    warnings: tuple[str, ...] = ()
    """Faults in archives from another tool. Wrong indices are corrected if the correct indices are known."""


def plan_joins(files: Sequence[NamedFile], *, subject: str, remedy: str) -> Joins:
    """Plan the joining of every split library in ``files`` with the archives in ``files``.

    Raises `InputError` with ``remedy`` if there is no such library. Raises the same errors as `plan_library_join` and
    `read_archive`. If there are several problems, ``subject`` introduces them.
    """
    problems: list[RocwheelError] = []
    archives = [file for found in attempt_all(read_archive_file, files, problems) for file in found]
    raise_all(subject, problems)
    joins: dict[str, JoinPlan] = {}
    names: set[str] = set()
    read: set[str] = set()
    warnings: list[str] = []

    def plan_file(file: NamedFile) -> None:
        with file.content.view() as data:
            library = find_split_library(data, name=file.name)
        if library is not None:
            names.update(unit.marker.kernel_name for unit in library.units)
            read.update(found.path for unit in library.units for found in archives_of(file.path, unit, archives))
            check = check_indices(file.path, library, archives, name=file.name)
            warnings.extend(check.texts())
            joins[file.path] = plan_library_join(file.path, library, archives, renumbered=check.renumbered)

    attempt_all(plan_file, files, problems)
    if not joins and not problems:
        problems.append(InputError(subject, "no library with code in archives", remedy=remedy))
    raise_all(subject, problems)
    used = (file.path for file in archives if file.path in read and file.holds_only(names))
    return Joins(joins, frozenset(used), tuple(warnings))


def read_archive_file(file: NamedFile) -> list[ArchiveFile]:
    """Return a file as an archive, or an empty list if the file isn't an archive.

    Raises `KpackError` for a damaged archive. Raises `InputError` if the archive lists invalid targets, or targets that
    differ from the target in its name. Raises `ProblemsError` for several faults.
    """
    kernels = classify_path(file.path)
    with file.content.view() as data:
        if not is_kpack(data) and (kernels is None or kernels.rule != "kpack"):
            return []
        raise_all(file.name, check_kernel_file(data, file.path, name=file.name))
        archive = read_archive(data, name=file.name)
    for target in dict.fromkeys((*archive.targets, *(entry.target for entry in archive.entries))):
        parse_target_id(target, source=file.name)
    return [ArchiveFile(file.path, file.content, archive)]


class MendedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a tree, with corrected libraries instead of the old libraries, and the faults."""

    files: tuple[NamedFile, ...]
    warnings: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    """The paths of the corrected libraries."""


@contextmanager
def checked_files(files: Sequence[NamedFile], subject: str, *, mend: bool) -> Iterator[MendedFiles]:
    """Yield ``files`` and the faults in split libraries among them.

    With ``mend``, these libraries are joined in unnamed files during the block, so that they can be split again. Their
    code is removed from archives, and archives without other code are omitted. Raises `InputError`, or `ProblemsError`
    for several problems, if a library can't be corrected because its code objects can't be distinguished. Raises the
    same errors as `plan_library_join` and `plan_join`.
    """
    archives = [archive for found in map_collecting(subject, read_archive_file, files) for archive in found]
    libraries = [found for libraries in map_collecting(subject, _read_library, files) for found in libraries]
    lost = tuple(text for file, library in libraries for text in _lost_archives(file, library, archives))
    checks = map_collecting(
        subject, lambda one: check_indices(one[0].path, one[1], archives, name=one[0].name), libraries
    )
    faults = [(*one, check) for one, check in zip(libraries, checks, strict=True) if check.faults]
    if not mend:
        texts = (text for _, _, check in faults for text in check.texts())
        yield MendedFiles(files=tuple(files), warnings=(*lost, *texts))
        return
    with ExitStack() as stack:
        joined = map_collecting(subject, lambda fault: _joined(*fault, archives, stack), faults)
        names = {unit.marker.kernel_name for _, library, _ in faults for unit in library.units}
        replaced = {file.path: file for file in joined}
        gone = {file.path for file in archives if file.holds_only(names)}
        others = [file for file in archives if file.path not in gone]
        parts = map_collecting(subject, lambda file: _without(file, names, stack), others)
        replaced |= {file.path: file for found in parts for file in found}
        kept = tuple(replaced.get(file.path, file) for file in files if file.path not in gone)
        yield MendedFiles(files=kept, warnings=lost, mended=tuple(file.path for file in joined))


def _without(file: ArchiveFile, names: Collection[str], stack: ExitStack) -> list[NamedFile]:
    """Return the archive without code of the libraries ``names``, in an unnamed file; empty if nothing changes."""
    name = file.archive.name
    part = select_entries(file.archive, [entry for entry in file.archive.entries if entry.binary not in names])
    if len(part.entries) == len(file.archive.entries):
        return []
    with file.content.view() as data, open_workers(1) as executor:

        def write(made: IO[bytes]) -> None:
            recompress_archive(data, part, FileSink(made), Storing(part.scheme), executor)

        return [NamedFile(file.path, _nameless(write, stack, name, "its remaining code"), name)]


def _nameless(write: Callable[[IO[bytes]], None], stack: ExitStack, name: str, what: str) -> FileRange:
    """Return the output of ``write``, in an unnamed file that ``stack`` closes; raise `WorkError` if space runs out."""
    try:
        made = stack.enter_context(open_temporary(buffering=-1))
        write(made)
        made.flush()
        return FileRange(path_of(made), 0, made.seek(0, 2))
    except OSError as e:
        raise no_room(name, what, e) from e


def _read_library(file: NamedFile) -> list[tuple[NamedFile, SplitLibrary]]:
    with file.content.view() as data:
        require_sound_image(data, name=file.name)
        library = find_split_library(data, name=file.name)
    return [] if library is None else [(file, library)]


def _lost_archives(file: NamedFile, library: SplitLibrary, archives: Sequence[ArchiveFile]) -> Iterator[str]:
    """Yield a problem for search paths in a library's markers that don't point to the archives with its code."""
    lost = (unit for unit in library.units if needs_archives(unit) and not archives_of(file.path, unit, archives))
    paths = dict.fromkeys(path for unit in lost for path in unit.marker.search_paths)
    if paths:
        yield f"{file.name}: was split before, but none of the archives with its code exist: {', '.join(paths)}"


def _joined(
    file: NamedFile, library: SplitLibrary, check: IndexCheck, archives: Sequence[ArchiveFile], stack: ExitStack
) -> NamedFile:
    """Return the library with its code, in an unnamed file that ``stack`` closes."""
    # In archives that lack units, kernels might not identify each code object's unit.
    if doubtful := [fault.archive for fault in check.faults if not fault.is_clear]:
        found = f"units are missing from {', '.join(doubtful)}, and some indices may be wrong"
        expected = "an archive that has all units, with different kernel names in each unit"
        raise InputError(file.name, found, expected=expected, remedy="Omit --mend, or split the original again.")
    join = plan_library_join(file.path, library, archives, renumbered=check.renumbered)
    with file.content.view() as data, plan_join(data, join, name=file.name) as patch:
        made = _nameless(lambda new: write_patch(new, data, patch), stack, file.name, "the library with its code")
    return NamedFile(file.path, made, file.name)
