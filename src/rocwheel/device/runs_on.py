"""Determines which code objects in a binary a GPU would use, and why."""

from __future__ import annotations

import glob
import os
from collections import Counter
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from rocwheel.binary.bundles.device_code import iter_code_sources
from rocwheel.binary.bundles.runtimes import (
    Archives,
    HipRuntime,
    find_faults,
    known_release,
    next_release,
    other_readers,
    release_of,
    releases,
    series_of,
)
from rocwheel.binary.bundles.sequence import iter_entries
from rocwheel.binary.code_objects import (
    FIRST_WITH_OPEN_FEATURES,
    CodePlace,
    TargetId,
    is_code_object,
    parse_target_id,
    read_code_object,
    read_loaded_header,
)
from rocwheel.binary.elf.facts import read_soname
from rocwheel.binary.elf.header import HEADER_SIZE
from rocwheel.binary.kind import is_elf
from rocwheel.binary.kpack.archive import KpackError
from rocwheel.binary.pe.header import is_pe64
from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.scratch import temporary_folder
from rocwheel.core.workers import map_skipping, raise_all
from rocwheel.device.kpack_code import GivenArchives, UnitLookup, open_kpack_code
from rocwheel.device.selection import (
    BundleCode,
    EntryCode,
    OtherGpus,
    SelectedCode,
    needed_runtime,
    select_loaded,
    select_registered,
    select_stored,
)
from rocwheel.device.surroundings import completeness_of, find_debs, unpack_deb
from rocwheel.targets.catalog import first_knowing, why_unknown
from rocwheel.targets.compatibility import Fit, Runtime, fit, settings_of
from rocwheel.targets.kernel_files import Without, is_kernel_file, targets_in_path, without_targets
from rocwheel.targets.kernel_folders import KernelFolder, KernelFolders, Loss, opener_of
from rocwheel.targets.serving import split_overlay_path
from rocwheel.wheels.binaries import Binary, find_all_binaries, find_places, installed_place, tracked_binaries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rocwheel.binary.bundles.runtimes import HipRelease
    from rocwheel.binary.code_objects import LoadedHeader
    from rocwheel.core.errors import RocwheelError
    from rocwheel.core.reading import Data
    from rocwheel.device.kpack_code import CodeUnit, KpackCode
    from rocwheel.device.surroundings import GivenDeb
    from rocwheel.targets.kernel_files import Opener


# Later than any release.
_ANY_RELEASE = "9999"


class FolderLack(msgspec.Struct, frozen=True):
    """The kernels that a folder lacks for a GPU.

    In messages, ``found`` comes after the folder's path and the word "which".
    """

    folder: str
    found: str
    compiles: bool
    """Whether the library compiles the kernels at first use."""
    is_given: bool = True
    """Whether the kernels would be among the input files. If not, the folder isn't judged."""


class FileVerdict(msgspec.Struct, frozen=True):
    """The code that one file offers a GPU under one runtime's rules."""

    path: str
    place: str
    """The path in the folder or wheel that contained the file; empty for a file that was specified directly."""
    gpu: TargetId
    """The GPU, with a setting for each feature that matters for the file's code."""
    runtime: Runtime
    uses: tuple[SelectedCode, ...]
    kpacked: bool = False
    """Whether the code is in kpack archives that are all missing."""
    up_to: str = ""
    """The last ROCm release with this verdict and its reasons; empty if they also apply to later releases."""
    since: str = ""
    """The first ROCm release with this verdict and its reasons; empty if they also apply to earlier releases."""
    faults: tuple[str, ...] = ()
    """The faults in these releases' packages that affect the file, even though the file is valid."""
    lack: FolderLack | None = None
    """The kernels that the library's folder lacks, or `None` if it lacks nothing."""

    @property
    def runs(self) -> bool:
        """Whether every bundle has code that runs, and the folder of kernels has everything that the library needs."""
        lost = self.lack is not None and self.lack.is_given and not self.lack.compiles
        return all(use.code is not None for use in self.uses) and not lost


def judge_file(path: Path, agent: TargetId, *, rocm: str = "") -> tuple[FileVerdict, ...]:
    """Return the code that a GPU would use under each runtime's rules, or an empty tuple without device code.

    A split library's code is in the kpack archives that its markers refer to, relative to the library's location.

    If code sets a feature that ``agent`` doesn't set, there is a verdict for each setting, because the GPU has one of
    these settings. Raises `InputError` for an unreadable or damaged file.
    """
    return judge_files([path], [agent], rocm=rocm)


def judge_files(
    paths: Iterable[Path],
    agents: Iterable[TargetId],
    *,
    rocm: str = "",
    is_machine: bool = False,
    unread: list[RocwheelError] | None = None,
    progress: Progress = SILENT,
) -> tuple[FileVerdict, ...]:
    """Judge every binary at ``paths`` (files, folders, and packages) for each GPU.

    Packages are wheels and Debian packages.

    A split library's code comes from the archives that are installed next to it, and from the archives among all
    inputs. The inputs are treated as if installed together. With ``is_machine``, all GPUs are in one machine, in this
    order. In that case, a library that lacks code for one of the GPUs blocks its code for the other GPUs. An archive
    that lists one of the GPUs but lacks its code blocks the code for all GPUs.

    With ``rocm``, a ROCm release, there is one verdict for that release. Otherwise, there is one verdict for each range
    of releases with the same code and reasons. The ranges cover the releases of the runtime that a library depends on,
    or all releases. They omit releases older than the first one with support for the GPU. They also omit releases that
    find less code because they are too old for some of the file's code.

    If the code or the name of one file sets a feature that a GPU doesn't set, the verdicts on all files also set the
    feature.

    Raises `InputError` for a damaged or unreadable file, and `ProblemsError` for several such files. If ``unread`` is a
    list, the errors are appended to it instead, and are raised only if there are no other files.
    """
    gpus, paths = tuple(dict.fromkeys(agents)), list(paths)
    if rocm:
        release_of(rocm)
    problems: list[RocwheelError] = [] if unread is None else unread
    with TemporaryDirectory(dir=temporary_folder()) as scratch:
        debs = map_skipping("packages", lambda deb: unpack_deb(deb, scratch), find_debs(paths), problems)
        others = [path for path in paths if path.suffix != ".deb" or path.is_dir()]
        binaries = [
            found
            for found in find_all_binaries(others)
            if isinstance(found, InputError) or found.member is not None or not found.name.endswith(".deb")
        ]
        binaries += [binary for deb in debs for binary in deb.binaries]
        archives = GivenArchives(binaries)
        given = tracked_binaries(binaries, "reading device code", progress)
        read = map_skipping("binaries", lambda found: _read(found, archives), given, problems)
    if unread is None:
        raise_all("binaries", problems)
    places = (*find_places(others), *(place for deb in debs for place in deb.places))
    folders = KernelFolders(map(installed_place, places))
    openers = {found.name: opener for found, _, opener in read}
    kept = [(found, code, _opened(found, openers[found.name], folders, debs)) for found, code in _together(read)]
    files = [(found, code) for found, code, _ in kept if code is not None]
    settings = {agent: settings_of(agent, _features_that_matter(files, agent)) for agent in gpus}
    return tuple(verdict for each in kept for verdict in _judge_with_folder(*each, settings, is_machine, rocm))


_Read: TypeAlias = "tuple[Binary, _Code | None, Opener | None]"


def _read(found: Binary | InputError, archives: GivenArchives) -> _Read:
    if isinstance(found, InputError):
        raise found
    with found.view() as data:
        opener = opener_of(found.name, read_soname(data, name=found.name))
        return found, _read_code(data, found, archives), opener


def _together(read: Sequence[_Read]) -> Iterator[tuple[Binary, _Code | None]]:
    """Yield each file together with all the code that a runtime finds for it.

    If a library among the inputs opens an archive, the archive is judged only together with that library. Other
    archives are grouped if their names differ only in the target, because one marker in a library would refer to all of
    them.
    """
    lookups = [lookup for _, code, _ in read if code is not None for lookup in code.lookups]
    opened = {searched.archive.name for lookup in lookups for searched in lookup.archives}
    units: dict[tuple[str, str], dict[EntryCode, None]] = {}
    for found, code, _ in read:
        for key, bundle in zip(code.keys, code.loaded, strict=True) if code and code.keys else ():
            units.setdefault((without_targets(found.place or found.name), key), {}).update(
                dict.fromkeys(bundle.entries)
            )
    for found, code, _ in read:
        if code is None or not code.keys:
            yield found, code
        elif found.name not in opened and (found.member or str(Path(found.name).resolve()) not in opened):
            alike = without_targets(found.place or found.name)
            yield found, code._replace(loaded=tuple(_archived(units[alike, key]) for key in code.keys))


def _archived(entries: Iterable[EntryCode]) -> BundleCode:
    """Return the code that archives have under one key."""
    return BundleCode(tuple(entries), is_bundle=False, is_archived=True)


class _Opened(NamedTuple):
    """The folder of kernels that a library opens, and whether the kernels would be among the input files."""

    folder: KernelFolder
    is_given: bool = True


def _opened(found: Binary, opener: Opener | None, folders: KernelFolders, debs: Sequence[GivenDeb]) -> _Opened | None:
    """Return the folder that a library opens, among all inputs or next to it on disk."""
    place = installed_place(found.place)
    folder = folders.opened_by(place, opener)
    if folder is None or opener is None or not folder.is_bare:
        return _Opened(folder) if folder else None
    beside = _folder_beside(found, opener)
    if beside is not None and not beside.is_bare:
        return _Opened(beside)
    about = completeness_of(found, debs)
    loss = folders.find_loss(place, opener, divided=about.is_divided, closed=about.is_closed)
    if loss is Loss.NONE:
        return None
    named = beside if beside and not found.place else folder
    return _Opened(named, loss is Loss.LOST and not about.is_alone)


def _folder_beside(found: Binary, opener: Opener) -> KernelFolder | None:
    """Return the folder that a library on disk opens."""
    if found.folder is None:
        return None
    library = found.folder.resolve() / PurePath(found.name).name
    patterns = (f"{glob.escape(str(library.parent))}/{pattern}" for pattern in opener.folders)
    beside = [folder for pattern in patterns for folder in glob.glob(pattern)]  # noqa: PTH207
    places = (Path(os.path.normpath(folder), place) for folder in beside for place in find_places([Path(folder)]))
    return KernelFolders(map(str, places)).opened_by(str(library), opener)


def _judge_with_folder(
    found: Binary,
    code: _Code | None,
    opened: _Opened | None,
    settings: Mapping[TargetId, Sequence[TargetId]],
    is_machine: bool,
    rocm: str,
) -> Iterator[FileVerdict]:
    """Yield the verdicts on a file. For a library without code, yield only verdicts on a folder that lacks kernels."""
    for verdict in _judge(found, code or _Code(), settings, is_machine, rocm):
        lacking = opened.folder.find_lack(verdict.gpu, verdict.runtime) if opened else ""
        if opened and lacking and (opened.is_given or code is not None):
            compiles = opened.folder.opener.without is Without.COMPILES
            lack = FolderLack(opened.folder.place, lacking, compiles, opened.is_given)
            yield msgspec.structs.replace(verdict, lack=lack)
        elif code is not None:
            yield verdict


def _judge(
    found: Binary,
    code: _Code,
    settings: Mapping[TargetId, Sequence[TargetId]],
    is_machine: bool,
    rocm: str,
) -> Iterator[FileVerdict]:
    each = [tuple(gpus) for gpus in settings.values()]
    for number, gpus in enumerate(each):
        beside = OtherGpus(tuple(each[:number]), tuple(each[number + 1 :])) if is_machine else OtherGpus()
        for gpu in gpus:
            for runtime in Runtime:
                verdict = FileVerdict(found.name, found.place, gpu, runtime, (), code.is_elsewhere)
                yield from _verdicts_by_release(verdict, code, beside, rocm)


class _Code(NamedTuple):
    """A file's code: its own code, an archive's code, or the code that a split library finds in archives."""

    loaded: tuple[BundleCode, ...] = ()
    """The facts that matter to runtimes, for each bundle or for an archive's content under each key."""
    keys: tuple[str, ...] = ()
    """For an archive, the lookup key for each bundle's code."""
    lookups: tuple[UnitLookup, ...] = ()
    """For a split library, each bundle's archives."""
    headers: Mapping[tuple[str, int], LoadedHeader] = MappingProxyType({})
    """For a split library, the headers of the code objects, keyed by archive name and ordinal."""
    hip: HipRuntime | None = None
    """The HIP runtime that a library needs."""
    is_registered: bool = False
    """Whether a library registers the bundles. A program loads other bundles itself, for one GPU at a time."""

    def uses(self, gpu: TargetId, runtime: Runtime, release: HipRelease, beside: OtherGpus) -> tuple[SelectedCode, ...]:
        """Return the code that a release uses from each bundle."""
        others = beside if self.is_registered else OtherGpus()
        own = (select_registered(bundle, gpu, runtime, release, others) for bundle in self.loaded)
        found = (select_stored(lookup, gpu, release, self.headers, beside.targets) for lookup in self.lookups)
        return tuple(msgspec.structs.replace(use, bundles=count) for use, count in Counter((*own, *found)).items())

    def unused(self, reason: str) -> tuple[SelectedCode, ...]:
        """Return the result for bundles whose code isn't used because of ``reason``."""
        bundles = len(self.loaded) + len(self.lookups)
        return (SelectedCode(None, Fit.NONE, reason, bundles),) if bundles else ()

    def is_read_by(self, release: HipRelease) -> bool:
        """Return whether a release can read all of the code, for any GPU."""
        if self.lookups and release.archives is Archives.NONE:
            return False
        versions = {header.version for header in self.headers.values()}
        return versions <= {*release.code_objects} and all(bundle.is_read_by(release) for bundle in self.loaded)

    @property
    def listed(self) -> Sequence[Sequence[TargetId]]:
        """Each bundle's targets, including targets that only its archives list and targets in code objects' flags."""
        own = [[entry.target for entry in bundle.entries] for bundle in self.loaded]
        headers = [*(entry.header for bundle in self.loaded for entry in bundle.entries), *self.headers.values()]
        flags = tuple({header.target for header in headers if header is not None and header.target is not None})
        found = (targets for lookup in self.lookups for targets in (lookup.targets, lookup.listed))
        return [*own, *found, flags]

    @property
    def is_elsewhere(self) -> bool:
        """Whether the code is in archives that are all missing."""
        return bool(self.lookups) and not any(lookup.archives for lookup in self.lookups)


def _read_code(data: Data, found: Binary, given: GivenArchives) -> _Code | None:
    with open_kpack_code(data, name=found.name, folder=found.folder, beside=given.beside(found)) as kpack:
        if kpack is not None and kpack.is_library:
            problems = zip(kpack.unreadable, kpack.problems, strict=True)
            raise_all(found.name, [InputError(found.name, text) for name, text in problems if not given.holds(name)])
            headers = _stored_headers(kpack, given)
            lookups = tuple(UnitLookup(unit.wrapper, unit.searched) for unit in kpack.units if unit.wrapper is not None)
            return _Code(lookups=lookups, headers=headers, hip=needed_runtime(data, name=found.name))
        if kpack is not None:
            headers = _stored_headers(kpack)
            loaded = tuple(_archived(_unit_entries(unit, headers, found.name)) for unit in kpack.units)
            return _Code(loaded, keys=tuple(unit.key for unit in kpack.units))
    loaded = tuple(_loaded(data, found.name))
    is_host = is_pe64(data) or (is_elf(data) and not is_code_object(data))
    return _Code(loaded, hip=needed_runtime(data, name=found.name), is_registered=is_host) if loaded else None


def _stored_headers(kpack: KpackCode, given: GivenArchives | None = None) -> dict[tuple[str, int], LoadedHeader]:
    """Return the headers of the code objects in archives. Damage to archives in ``given`` is reported separately."""
    found: dict[tuple[str, int], LoadedHeader | None] = {}
    for stored in (stored for unit in kpack.units for stored in unit.codes):
        if stored.identity not in found:
            try:
                found[stored.identity] = read_loaded_header(stored.head(HEADER_SIZE))
            except KpackError:
                if given is None or not given.holds(stored.archive.name):
                    raise
    return {identity: header for identity, header in found.items() if header is not None}


def _unit_entries(unit: CodeUnit, headers: Mapping[tuple[str, int], LoadedHeader], name: str) -> Iterator[EntryCode]:
    for stored in unit.codes:
        target = parse_target_id(stored.entry.target, source=name)
        if target.processor.startswith("gfx"):
            yield EntryCode(target, "hipv4", headers.get(stored.identity))


def opened_verdicts(verdicts: Sequence[FileVerdict]) -> list[FileVerdict]:
    """Return the verdicts on the files that are opened; a kernel library doesn't open files named for other targets.

    The names of the folders above a folder or wheel with the library's files don't matter. With an extended runtime, a
    library opens a file for a similar GPU, unless the same file exists for the GPU itself. A library for only one
    target replaces the library for all GPUs (`rocwheel.targets.serving`).
    """
    # Omit verdicts on libraries for other targets, and on libraries that libraries for the GPU replace.
    overlays = {v.place: split for v in verdicts if (split := split_overlay_path(v.place))}
    taken = {(v.gpu, overlays[v.place][0]) for v in verdicts if v.place in overlays and _is_for(v, overlays)}
    verdicts = [v for v in verdicts if (_is_for(v, overlays) if v.place in overlays else (v.gpu, v.place) not in taken)]
    named = {v.place: _named_targets(v.place) for v in verdicts}
    own = {
        (v.gpu, without_targets(v.place))
        for v in verdicts
        if any(fit(target, v.gpu) is not Fit.NONE for target in named[v.place])
    }
    return [v for v in verdicts if _is_opened(v, named[v.place], (v.gpu, without_targets(v.place)) in own)]


def _is_for(verdict: FileVerdict, overlays: Mapping[str, tuple[str, str]]) -> bool:
    return fit(TargetId(overlays[verdict.place][1]), verdict.gpu) is not Fit.NONE


def _named_targets(place: str) -> tuple[TargetId, ...]:
    return targets_in_path(place) if is_kernel_file(place) else ()


def _is_opened(verdict: FileVerdict, named: Sequence[TargetId], has_own: bool) -> bool:
    runtime = Runtime.STOCK if has_own else verdict.runtime
    return not named or any(fit(target, verdict.gpu, runtime) is not Fit.NONE for target in named)


def _verdicts_by_release(verdict: FileVerdict, code: _Code, beside: OtherGpus, rocm: str) -> Iterator[FileVerdict]:
    """Yield the verdict for a release, or for each range of releases that use the same code for the same reasons.

    If the release, or any runtime that a library depends on by name, doesn't know the GPU, no code runs.
    """
    processor = verdict.gpu.processor
    newest = rocm or (code.hip.last if code.hip else "") or known_release(_ANY_RELEASE)
    # A release that doesn't exist, such as 7.3, is judged like the release before it.
    unknown = why_unknown(processor, newest) or why_unknown(processor, known_release(newest) or newest)
    if unknown:
        yield msgspec.structs.replace(verdict, uses=code.unused(unknown))
        return
    all_rows = [release_of(rocm)] if rocm else [row for row in releases() if not code.hip or code.hip.is_of(row)]
    oldest = code.hip.first if code.hip else all_rows[0].since
    rows = all_rows if rocm else _rows_for(processor, all_rows, oldest)
    is_cut = rows[0].since != all_rows[0].since
    lacking = [row for row in rows if not rocm and row.last and why_unknown(processor, row.last)]
    unknown = why_unknown(processor, lacking[-1].last) if lacking else ""
    spans: list[tuple[tuple[SelectedCode, ...], int, int]] = []
    for number, row in enumerate(rows):
        others = beside.known_to(rocm or row.last)
        uses = code.unused(unknown) if row in lacking else code.uses(verdict.gpu, verdict.runtime, row, others)
        begin = spans.pop()[1] if spans and set(spans[-1][0]) == set(uses) else number
        spans.append((uses, begin, number))
    floor, last = next((number for number, row in enumerate(rows) if code.is_read_by(row)), 0), len(rows) - 1
    # The faults of packages from releases that load compressed code for the GPU.
    own = find_faults(code.hip.first, code.hip.last) if code.hip else find_faults()
    loading = [
        (rocm or row.since, rocm or row.last)
        for row in rows
        if row not in lacking and _loads_compressed(verdict, code, row)
    ]
    faults = tuple(dict.fromkeys(str(fault) for span in loading for fault in find_faults(*span) if fault in own))
    for uses, begin, end in spans:
        if end >= floor or (uses and all(use.code is not None for use in uses)):
            since, up_to = rows[begin].since if begin or is_cut else "", rows[end].last if end < last else ""
            yield msgspec.structs.replace(verdict, uses=uses, since=since, up_to=up_to, faults=faults)


def _rows_for(processor: str, rows: Sequence[HipRelease], oldest: str) -> Sequence[HipRelease]:
    """Return the rows for all releases since the first one that knows a GPU. The first row starts with that release.

    If no such release was observed, return all rows, and split the row that contains the last release that doesn't know
    the GPU. In that case, the next release is assumed to know the GPU, which might be wrong. ``oldest`` is the first
    relevant release.
    """
    without, first = first_knowing(processor)
    since = first or (next_release(without) if without else "")
    if not since or series_of(since) <= series_of(oldest):
        return rows
    begin = series_of(since)
    later = [
        msgspec.structs.replace(row, since=since) if series_of(row.since) < begin else row
        for row in rows
        if not row.last or series_of(row.last) >= begin
    ]
    if first:
        # If a runtime ends before the first release that was observed to know the GPU, it counts as knowing the GPU.
        return later or rows
    earlier = [
        msgspec.structs.replace(row, last=without) if not row.last or series_of(row.last) >= begin else row
        for row in rows
        if series_of(row.since) < begin
    ]
    return [*earlier, *later]


def _loads_compressed(verdict: FileVerdict, code: _Code, row: HipRelease) -> bool:
    """Return whether packages of a release load code from a compressed bundle.

    AMD's packages may support fewer header versions.
    """
    read = (b for b in code.loaded if b.compressed and (b.compressed in row.compressed or other_readers(b.compressed)))
    return any(select_loaded(b._replace(compressed=None), verdict.gpu, verdict.runtime, row).code for b in read)


def _loaded(data: Data, name: str) -> Iterator[BundleCode]:
    """Yield the facts that matter to runtimes for each bundle, standalone code object, or piece of unlinked code."""
    if is_code_object(data):
        header = read_loaded_header(bytes(data[:HEADER_SIZE]))
        target = read_code_object(data, place=CodePlace(name)).target
        yield BundleCode((EntryCode(target, "hipv4", header),) if target else (), is_bundle=False)
        return
    for source in iter_code_sources(data, name=name):
        bundle = source.bundle
        entries = [entry for entry in bundle.plain.device_entries if entry.size]
        # The headers of code objects, keyed by offset in the bundle. A compressed bundle is decompressed up to its
        # first code object, and no further if the entry IDs are sufficient for its version. Compilers write all code
        # in a bundle in one version.
        heads: dict[int, bytes] = {}
        ordered = sorted(entries, key=lambda entry: entry.offset)
        for entry, piece in iter_entries(source.view, bundle, ordered):
            heads[entry.offset] = (heads.get(entry.offset, b"") + bytes(piece[:HEADER_SIZE]))[:HEADER_SIZE]
            if bundle.compressed and entry is ordered[0] and len(heads[entry.offset]) == min(HEADER_SIZE, entry.size):
                first = read_loaded_header(heads[entry.offset])
                if first is None or first.version >= FIRST_WITH_OPEN_FEATURES:
                    break
        headers = {offset: read_loaded_header(head) for offset, head in heads.items()}
        headers = {offset: header for offset, header in headers.items() if header is not None}
        found = ((entry.target, entry.id.kind or "hipv4", headers.get(entry.offset)) for entry in entries)
        codes = tuple(EntryCode(target, kind, header) for target, kind, header in found if target is not None)
        yield BundleCode(codes, bundle.compressed.version if bundle.compressed else None)


def _features_that_matter(files: Iterable[tuple[Binary, _Code]], agent: TargetId) -> set[str]:
    """Return the features that are set by code for the GPU in some file, or by a kernel file name for the GPU."""
    bundles = (targets for found, code in files for targets in (*code.listed, _named_targets(found.place)))
    codes = {code for targets in bundles for code in targets if code.features}
    suiting = [code for code in codes if fit(TargetId(code.processor), agent, Runtime.EXTENDED) is not Fit.NONE]
    return {name for code in suiting for name in code.features}
