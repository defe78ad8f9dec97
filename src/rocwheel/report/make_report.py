"""Collects the data of a report: files, duplicates, code for each GPU, savings, and the loaded libraries."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.audit.audit import check
from rocwheel.audit.dll_uses import DllPlace
from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.core.errors import InputError, RocwheelError, WorkError, raise_work
from rocwheel.core.progress import SILENT, Progress, step, tracked
from rocwheel.core.reading import iter_pieces
from rocwheel.core.workers import map_sized, open_workers
from rocwheel.environment.installed_paths import path_in_package
from rocwheel.environment.known_libraries import find_sdk_dll
from rocwheel.environment.library_code import without_lost
from rocwheel.environment.loader import place_of
from rocwheel.environment.read_tree import WheelReading, read_environments
from rocwheel.report.against import compare_with
from rocwheel.report.inputs import read_files
from rocwheel.report.savings import find_savings, measure_files
from rocwheel.report.values import (
    HOST,
    Against,
    Code,
    Copies,
    Copy,
    FoundFault,
    Graph,
    Kind,
    Load,
    Loading,
    LostCode,
    Matrix,
    MatrixRow,
    Report,
    part_sort_key,
)
from rocwheel.targets.catalog import SPIRV, Generic, load_catalog
from rocwheel.targets.compatibility import Fit, covers, fit
from rocwheel.targets.kernel_files import library_of
from rocwheel.wheels.record import spell_hash
from rocwheel.wheels.zip_reader import UnpackedMembers, ZipMember

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rocwheel.audit.dll_uses import DllUse
    from rocwheel.audit.finding import Finding
    from rocwheel.audit.subject import Process
    from rocwheel.diff.sides import Item
    from rocwheel.environment.tree import InstalledFile
    from rocwheel.report.inputs import Holding, ReadFiles
    from rocwheel.report.values import FileFacts, PackageFacts

_Held = tuple[int, "Item"]


def find_duplicates(held: Iterable[_Held], progress: Progress = SILENT) -> tuple[Copies, ...]:
    """Return the contents that files in several packages share, each with these files, most wasted space first.

    Members of wheels are compared by their hashes in RECORD. Other files are read. Empty files, links, and unreadable
    files are ignored. Raises `WorkError` for system errors.
    """
    by_size: dict[int, list[_Held]] = defaultdict(list)
    for number, item in held:
        if item.size and item.link is None and item.content is not None:
            by_size[item.size].append((number, item))
    candidates = [one for group in by_size.values() if _is_shared(group) for one in group]
    hashes = _hashes_of([item for _, item in candidates], progress)
    by_content: dict[tuple[int, str], list[_Held]] = defaultdict(list)
    for one, text in zip(candidates, hashes, strict=True):
        if text:
            by_content[one[1].size, text].append(one)
    found = [_copies(size, group) for (size, _), group in by_content.items() if _is_shared(group)]
    return tuple(sorted(found, key=lambda copies: (-copies.wasted, copies.files[0].path)))


def _is_shared(group: Sequence[_Held]) -> bool:
    return len({number for number, _ in group}) > 1


def _hashes_of(items: Sequence[Item], progress: Progress) -> list[str]:
    """Return each file's SHA-256 in the format of RECORD, or an empty string for a file that can't be read."""
    unknown = [item for item in items if not _is_hash_known(item)]
    with open_workers() as executor:
        read = map_sized(executor, _hash_of, unknown, lambda item: item.size)
        hashes = list(tracked(progress, "looking for duplicates", read, [item.size for item in unknown]))
    rest = iter(hashes)
    return [item.hash if _is_hash_known(item) else next(rest) for item in items]


def _is_hash_known(item: Item) -> bool:
    return isinstance(item.content, ZipMember) and item.hash.startswith("sha256=")


def _hash_of(item: Item) -> str:
    digest = hashlib.sha256()
    try:
        with item.view() as data:
            for piece in iter_pieces(data):
                digest.update(piece)
    except WorkError:
        raise
    except InputError:
        return ""
    return spell_hash(digest.digest())


def _copies(size: int, group: Sequence[_Held]) -> Copies:
    files = tuple(sorted((Copy(number, item.path) for number, item in group), key=lambda one: (one.package, one.path)))
    return Copies(size, size * (len({one.package for one in files}) - 1), files)


_SHARED = -1


def make_matrix(packages: Sequence[PackageFacts], files: Iterable[FileFacts], lost: Iterable[LostCode] = ()) -> Matrix:
    """Return which libraries contain code for which GPUs, by path and package. The GPUs are in the catalog's order.

    Code in ``lost`` is ignored.
    """
    targets: dict[tuple[str, int], set[str]] = defaultdict(set)
    holders: dict[tuple[str, int], set[str]] = defaultdict(set)
    for file in files:
        if found := {part.target for part in file.parts} - {HOST}:
            targets[_key_of(file)] |= found
            holders[_key_of(file)].add(packages[file.package].label)
    codes = {library: _parsed(found) for library, found in targets.items()}
    gone: dict[str, list[TargetId]] = defaultdict(list)
    for one in lost:
        gone[one.path] += _parsed(one.targets)
    usable = {library: list(without_lost(found, gone[library[0]])) for library, found in codes.items()}
    gpus = _gpus({code.processor for found in codes.values() for code in found})
    rows = (
        MatrixRow(
            library[0],
            tuple(sorted(holders[library])),
            tuple(sorted(targets[library], key=part_sort_key)),
            tuple(code_for(usable[library], TargetId(gpu)) for gpu in gpus),
        )
        for library in sorted(targets)
    )
    return Matrix(gpus, tuple(rows))


def code_for(codes: Sequence[TargetId], gpu: TargetId) -> Code:
    """Return the kind of code that these targets provide for a GPU with any feature settings."""
    own = [code for code in codes if code.processor == gpu.processor]
    if own:
        return Code.EXACT if covers(own, gpu) else Code.PARTLY
    fits = {fit(code, gpu) for code in codes}
    if Fit.GENERIC in fits:
        return Code.GENERIC
    return Code.SPIRV if Fit.SPIRV in fits else Code.MISSING


def _key_of(file: FileFacts) -> tuple[str, int]:
    """Return a file's library and package. Several packages may contain parts of a kernel library."""
    library = library_of(file.path)
    return library, file.package if library == file.path else _SHARED


def _parsed(targets: Iterable[str]) -> list[TargetId]:
    return [code for text in sorted(targets) for code in _parse(text)]


def _parse(text: str) -> list[TargetId]:
    """Return a list with the target, or an empty list for an image that isn't for an AMD GPU."""
    try:
        return [parse_target_id(text)]
    except InputError:
        return []


def _gpus(processors: set[str]) -> tuple[str, ...]:
    catalog = load_catalog()
    rows = {name: catalog.processors.get(name) for name in processors}
    members = {member for row in rows.values() if isinstance(row, Generic) for member in row.members}
    single = {name for name, row in rows.items() if not isinstance(row, Generic) and name != SPIRV} | members
    order = {name: place for place, name in enumerate(catalog.processors)}
    return tuple(sorted(single, key=lambda name: (order.get(name, len(order)), name)))


_SETTINGS = AuditSettings()
_HEADERS = WheelReading(headers_only=True)


def read_graph(paths: Sequence[Path], progress: Progress = SILENT, how: WheelReading = _HEADERS) -> Graph:
    """Return which files load which libraries in wheels, environments, artifacts, and folders.

    The graph is empty without input. ``how`` defines how members of wheels are read. By default, device code isn't
    decompressed. Input that can't be read at all is omitted, or is reported as the graph's problem. Raises `WorkError`
    for system errors.
    """
    if not paths:
        return Graph()
    unread: list[RocwheelError] = []
    try:
        environments = read_environments(paths, progress=progress, unread=unread, how=how)
    except RocwheelError as e:
        raise_work(e)
        return Graph(problem=str(e))
    subjects = [Subject(tree, _SETTINGS) for tree in environments.each]
    with step(progress, "finding which files load which libraries"):
        files = dict.fromkeys(loading for subject in subjects for loading in _loadings(subject))
    with step(progress, "checking the audit rules"):
        findings = dict.fromkeys(finding for subject in subjects for finding in check(subject))
    lost = dict.fromkeys(
        LostCode(gap.file.place, gap.file.package, tuple(map(str, gap.targets)))
        for subject in subjects
        for gap in subject.code.gaps
        if gap.is_lost and gap.targets
    )
    loadings = tuple(sorted(files, key=lambda one: (one.path, one.package)))
    return Graph(loadings, tuple(map(_fault, findings)), lost=tuple(lost))


def _loadings(subject: Subject) -> Iterator[Loading]:
    for process in subject.processes:
        owner = subject.tree.owners.get(process.file.distribution)
        is_library = process.file.elf is not None and process.file.elf.is_shared_library
        yield Loading(_shown(process.file), owner.name if owner else "", is_library, tuple(_loads(subject, process)))
    yield from _windows_loadings(subject)


def _windows_loadings(subject: Subject) -> Iterator[Loading]:
    uses: dict[str, dict[str, Load]] = {file.path: {} for file, _ in subject.windows.audited}
    for use in subject.dll_uses:
        uses[use.user.path].setdefault(use.name, _load(subject, use))
    for file, report in subject.windows.audited:
        owner = subject.tree.owners.get(file.distribution)
        yield Loading(_shown(file), owner.name if owner else "", report.is_dll, tuple(uses[file.path].values()))


def _load(subject: Subject, use: DllUse) -> Load:
    if use.provider is not None and use.where in (DllPlace.OWN, DllPlace.ADDED):
        owner = subject.tree.owners.get(use.provider.distribution)
        return Load(use.name, _shown(use.provider), owner.name if owner else "")
    if use.where is DllPlace.ASSUMED and (sdk := find_sdk_dll(use.name)):
        return Load(use.name, f"{sdk.folder}/{use.name}", sdk.distribution)
    return Load(use.name, is_missing=use.where in (DllPlace.NOWHERE, DllPlace.OUT_OF_REACH))


def _loads(subject: Subject, process: Process) -> Iterable[Load]:
    found: dict[str, Load] = {}
    for search in process.loader.searches:
        if search.requester:
            continue
        if search.found is None:
            if not search.is_optional:
                found.setdefault(search.name, Load(search.name, is_missing=True))
            continue
        library = process.loader.objects[search.found].library
        file, provider = subject.file_of(library), subject.provider_of(library)
        path = _shown(file) if file else place_of(library) if provider else ""
        found.setdefault(search.name, Load(search.name, path, provider))
    return found.values()


def _shown(file: InstalledFile) -> str:
    return path_in_package(file.path, file.source)


def _fault(finding: Finding) -> FoundFault:
    path = path_in_package(finding.path, finding.file)
    return FoundFault(finding.rule, finding.severity.value, finding.distribution, path, finding.found, finding.remedy)


_KEPT = 256
"""The maximum number of members that remain unpacked between steps. Each such member is an open file."""


def make_report(
    paths: Sequence[Path],
    *,
    unread: list[RocwheelError],
    left_out: Path | None = None,
    against: Path | None = None,
    estimate: bool = False,
    progress: Progress = SILENT,
) -> Report:
    """Return the report on all files at ``paths``. Unreadable files and packages are also appended to ``unread``.

    ``left_out``, the output file of the report, is ignored. ``against`` is an older state to compare with. If it can't
    be read, the report mentions the problem. With ``estimate``, savings are estimated from samples. Raises the same
    errors as `read_files`.
    """
    with ExitStack() as stack:
        unpacked = stack.enter_context(closing(UnpackedMembers(most=_KEPT)))
        unpack = unpacked.open_content
        read_side = partial(read_files, stack=stack, progress=progress, unread=unread, left_out=left_out)
        read = read_side(paths, unpack=unpack)
        compared = _compare(against, read_side, read, unread) if against else None
        duplicates = find_duplicates(_distinct(read), progress)
        # Measuring waits for codecs, and building the graph doesn't, so two cores can do both tasks at the same time.
        with open_workers(1) as beside:
            audited = _paths_to_audit(paths, read.holdings)
            reading = beside.submit(read_graph, audited, SILENT, _reading(unpacked))
            measured = measure_files(read.items, read.files, progress, unpack, estimate=estimate)
            with step(progress, "finding which files load which libraries"):
                graph = reading.result()
    matrix, packed = make_matrix(read.packages, read.files, graph.lost), read.totals.packed
    return Report(
        paths=tuple(map(str, paths)),
        totals=read.totals,
        packages=read.packages,
        files=read.files,
        matrix=matrix,
        duplicates=duplicates,
        graph=graph,
        savings=find_savings(read.files, measured, matrix.gpus, packed=packed, is_estimated=estimate),
        against=compared,
    )


def _compare(
    against: Path, read_side: Callable[[Sequence[Path]], ReadFiles], new: ReadFiles, unread: list[RocwheelError]
) -> Against:
    """Return the differences from the older state, or the reason that it can't be read.

    Raises `WorkError` for system errors.
    """
    try:
        old = read_side([against])
    except RocwheelError as e:
        raise_work(e)
        unread.append(e)
        return Against(str(against), problem=str(e))
    return compare_with(str(against), old, new)


def _reading(unpacked: UnpackedMembers) -> WheelReading:
    return WheelReading(unpack=unpacked.open, digest=unpacked.digest, headers_only=True)


def _distinct(read: ReadFiles) -> Iterator[tuple[int, Item]]:
    """Yield each file with the number of its package, except for additional names of earlier files."""
    for item, file in zip(read.items, read.files, strict=True):
        if not file.same_as:
            yield file.package, item


def _paths_to_audit(paths: Sequence[Path], holdings: Sequence[Holding]) -> list[Path]:
    """Return the wheels, and the folders without wheels. The audit applies different rules to wheels in folders."""
    given = {str(path): path for path in paths}
    wheels = [given.get(one.source, Path(one.source)) for one in holdings if one.kind is Kind.WHEEL]
    packed = {Kind.WHEEL, Kind.SDIST, Kind.UNREADABLE}
    others = {path for path in paths if path.is_dir() and not _is_packed(path, holdings, packed)}
    return [*wheels, *sorted(others)]


def _is_packed(path: Path, holdings: Sequence[Holding], packed: set[Kind]) -> bool:
    return any(holding.kind in packed and Path(holding.source).is_relative_to(path) for holding in holdings)
