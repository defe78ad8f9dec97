"""Reads the inputs of a report as packages with files and parts: builds, wheels, indexes, artifacts, and folders."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from contextlib import contextmanager
from functools import cache
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.catalog import open_catalog
from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.binary.kind import has_facts, is_ar_archive, is_kpack
from rocwheel.core.decoding import read_table
from rocwheel.core.errors import InputError, RocwheelError, WorkError, raise_work
from rocwheel.core.reading import FileRange
from rocwheel.core.workers import map_sized, open_workers, raise_all, serialized
from rocwheel.device.device_facts import Look, read_device_facts
from rocwheel.diff.sides import Item, Package, open_side
from rocwheel.environment.installed_paths import path_in_package
from rocwheel.environment.read_tree import find_site_packages, is_artifact_folder
from rocwheel.report.savings import divide
from rocwheel.report.values import HOST, FileFacts, Kind, PackageFacts, Part, Totals, part_sort_key
from rocwheel.targets.kernel_files import is_kernel_file, targets_in_path
from rocwheel.wheels.zip_reader import open_content

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import ExitStack
    from typing import TypeAlias

    from rocwheel.artifacts.catalog import Entry
    from rocwheel.core.progress import Progress
    from rocwheel.device.device_facts import BundleFacts, DeviceFacts
    from rocwheel.diff.sides import Unpack


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    files: tuple[str, ...]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    component: tuple[_Row, ...]


def component_of(path: str) -> str:
    """Return the component of a file, based on its relative path, such as ``lib`` or ``kernels``."""
    return next(name for name, patterns in _rows() if patterns.matches(path))


@cache
def _rows() -> tuple[tuple[str, PathPatterns], ...]:
    table = read_table(__package__, "components.toml", _Table)
    return tuple((row.name, PathPatterns(row.files)) for row in table.component)


class HeldFile(msgspec.Struct, frozen=True):
    """A file in a package, and its component."""

    item: Item
    component: str


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """A package with its files. ``packed`` is the size of the wheel or sdist, in bytes."""

    name: str
    kind: Kind
    source: str
    version: str = ""
    packed: int | None = None
    files: tuple[HeldFile, ...] = ()
    problem: str = ""
    package: Package
    """The package for comparisons."""


@contextmanager
def open_holdings(path: Path, unread: list[RocwheelError]) -> Iterator[tuple[Holding, ...]]:
    """Yield the packages at ``path``. The packages' files can be read inside the ``with`` block.

    Unreadable packages in a folder are reported in ``unread``, and are yielded without files. Raises `InputError` for a
    path that is empty or that a report can't read.
    """
    if path.is_dir() and find_site_packages(path) is None and is_artifact_folder(path):
        with open_catalog(path, unread=unread) as catalog:
            yield _of_artifacts(catalog.entries, path)
        return
    refused: list[RocwheelError] = []
    with open_side(path, unread=refused, every=True) as side:
        unread += refused
        yield (*map(_of_package, side.packages), *map(unreadable_holding, refused))


def _of_artifacts(entries: tuple[Entry, ...], folder: Path) -> tuple[Holding, ...]:
    """Return a package for each artifact name. The artifacts' names contain the components."""
    found: dict[str, list[HeldFile]] = defaultdict(list)
    for entry in entries:
        if entry.source is not None or entry.link is not None:
            item = Item(
                path=entry.path,
                source=f"{entry.artifact}: {entry.path}",
                size=entry.source.size if entry.source else len(entry.link or ""),
                mode=entry.mode,
                link=entry.link,
                content=entry.source,
            )
            found[entry.artifact.name].append(HeldFile(item, entry.artifact.component))
    source, holdings = str(folder), []
    for name, files in found.items():
        package = Package(name=name, source=source, items=tuple(held.item for held in files))
        holdings.append(Holding(name=name, kind=Kind.ARTIFACT, source=source, files=tuple(files), package=package))
    return tuple(holdings)


def _of_package(package: Package) -> Holding:
    place = Path(package.source)
    is_packed = place.suffix == ".whl" or place.name.endswith(".tar.gz")
    return Holding(
        name=package.name or place.name,
        kind=_kind_of(package, place),
        source=package.source,
        version=package.version,
        packed=place.stat().st_size if is_packed else None,
        files=tuple(HeldFile(item, component_of(item.path)) for item in package.items),
        package=package,
    )


def _kind_of(package: Package, place: Path) -> Kind:
    if not package.name:
        return Kind.FILES
    if place.suffix == ".whl":
        return Kind.WHEEL
    return Kind.SDIST if place.name.endswith(".tar.gz") else Kind.INSTALLED


def _file_of(source: str) -> Path:
    """Return the path of the file that a problem is about.

    A member's name follows ``!``, unless ``!`` is part of the file's path.
    """
    ends = [at for at, letter in enumerate(source) if letter == "!"]
    places = [Path(source), *(Path(source[:end]) for end in reversed(ends))]
    return next((place for place in places if place.is_file()), places[-1])


def unreadable_holding(problem: RocwheelError, path: Path | None = None) -> Holding:
    """Return an unreadable package with the size of its file, because the totals include that size.

    ``path`` is the path of the package. The default is the file that the problem is about.
    """
    source = str(path or (problem.source if isinstance(problem, InputError) else ""))
    place = _file_of(source)
    packed = place.stat().st_size if source and place.is_file() else None
    package = Package(name=place.name, source=str(place))
    return Holding(
        name=place.name or str(place),
        kind=Kind.UNREADABLE,
        source=str(place),
        packed=packed,
        problem=str(problem),
        package=package,
    )


FileParts = tuple[tuple[Part, ...], str]
"""The parts of a file, which add up to its size, and the reason why the file can't be read.

Both are empty for a host file.
"""


def read_parts(item: Item, unpack: Unpack = open_content) -> FileParts:
    """Return the parts of a file. ``unpack`` opens the contents of wheel members.

    If the file is damaged, the damage is reported as the file's problem. Raises `WorkError` for system errors.
    """
    if item.link is not None or item.content is None or not item.size:
        return (), ""
    try:
        sizes = _sizes_by_target(item, unpack)
    except WorkError:
        raise
    except InputError as e:
        return (), e.fault
    return _as_parts(item, sizes), ""


def _sizes_by_target(item: Item, unpack: Unpack) -> dict[str, int]:
    head = item.head()
    if has_facts(head) or is_kpack(head) or is_ar_archive(head):
        with item.view(unpack) as data:
            facts = read_device_facts(data, name=item.source, look=Look(strict=False, code=False))
        if facts is not None:
            return _of_device_code(facts)
    if is_kernel_file(item.path) and (targets := targets_in_path(item.path)):
        return dict(zip(map(str, targets), divide(item.size, [1] * len(targets)), strict=True))
    return {}


def _of_device_code(facts: DeviceFacts) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    if facts.kpack and facts.kpack.wrappers:  # the file's code is in other files
        return found
    for bundle in facts.bundles:
        for target, size in _of_bundle(bundle):
            found[target] += size
    for entry in facts.entries:
        if not entry.is_shared:
            found[entry.target] += entry.size if entry.stored_size is None else entry.stored_size
    return found


def _of_bundle(bundle: BundleFacts) -> list[tuple[str, int]]:
    """Return the size of a bundle's code for each target.

    In a compressed bundle, the parts are proportional to the uncompressed sizes.
    """
    targets = [entry.target for entry in bundle.entries]
    if not bundle.version:
        return [(entry.target, entry.size) for entry in bundle.entries]
    return list(zip(targets, divide(bundle.size, [entry.size for entry in bundle.entries]), strict=True))


def _as_parts(item: Item, sizes: dict[str, int]) -> tuple[Part, ...]:
    """Return parts that add up to the file's size, even if entries share bytes. The remainder is host code."""
    found = {target: sizes[target] for target in sorted(sizes, key=part_sort_key) if sizes[target]}
    if not found:
        return ()
    taken = sum(found.values())
    if taken < item.size:
        found = {HOST: item.size - taken, **found}
    counts = divide(item.size, list(found.values()))
    packed = [None] * len(found) if item.packed is None else divide(item.packed, counts)
    return tuple(map(Part, found, counts, packed))


if TYPE_CHECKING:
    Seen: TypeAlias = dict[tuple[int, int], tuple[int, str]]


class ReadFiles(msgspec.Struct, frozen=True):
    """The packages and their files, in the same order, both as inputs and as data."""

    holdings: tuple[Holding, ...]
    files: tuple[FileFacts, ...]
    packages: tuple[PackageFacts, ...]
    totals: Totals

    @property
    def items(self) -> list[Item]:
        """The files as inputs."""
        return [held.item for holding in self.holdings for held in holding.files]


def read_files(
    paths: Sequence[Path],
    stack: ExitStack,
    progress: Progress,
    *,
    unread: list[RocwheelError],
    left_out: Path | None = None,
    unpack: Unpack = open_content,
) -> ReadFiles:
    """Return the files at ``paths``; they remain open in ``stack``. Unreadable paths are appended to ``unread``.

    The file ``left_out`` is ignored. ``unpack`` opens the members of wheels. If there are other paths, a path that a
    report can't read is treated as unreadable. If it is the only path, this function raises `InputError`, or
    `ProblemsError` for several such paths. It raises the same errors for paths inside other paths, and `WorkError` for
    system errors.
    """
    each: dict[str, Path] = {}
    for path in paths:
        each.setdefault(os.path.realpath(path), path)
    raise_all("paths that one report can't include together", _nested(each))
    holdings = _open_all(list(each.values()), stack, unread)
    holdings = [_without(holding, left_out) for holding in holdings] if left_out else holdings
    files = _read_files(holdings, _read_all(holdings, progress, unpack))
    unread += _problems_of(files, holdings)
    packages = _package_facts(holdings, files)
    return ReadFiles(tuple(holdings), files, packages, _totals(packages, files))


def _nested(each: Mapping[str, Path]) -> list[RocwheelError]:
    """Return a problem for each path that is inside another path, because its files would be counted twice."""
    return [
        InputError(
            path, f"is in {each[outer]}, which the report already includes", remedy="Pass only one of the two paths."
        )
        for real, path in each.items()
        if (outer := next((str(above) for above in Path(real).parents if str(above) in each), None)) is not None
    ]


def _open_all(paths: Sequence[Path], stack: ExitStack, unread: list[RocwheelError]) -> list[Holding]:
    problems: list[RocwheelError] = []
    holdings = [holding for path in paths for holding in _open(path, stack, unread, problems)]
    if len(problems) == len(paths):
        raise_all("paths that a report can't read", problems)
    unread += problems
    return holdings


def _open(
    path: Path, stack: ExitStack, unread: list[RocwheelError], problems: list[RocwheelError]
) -> tuple[Holding, ...]:
    try:
        return stack.enter_context(open_holdings(path, unread))
    except RocwheelError as e:
        raise_work(e)
        problems.append(e)
        return (unreadable_holding(e, path),)


def _without(holding: Holding, left_out: Path) -> Holding:
    real = os.path.realpath(left_out)
    contents = [held.item.content for held in holding.files]
    is_kept = [not isinstance(one, FileRange) or os.path.realpath(one.path) != real for one in contents]
    kept = tuple(compress(holding.files, is_kept))
    package = msgspec.structs.replace(holding.package, items=tuple(held.item for held in kept))
    return msgspec.structs.replace(holding, files=kept, package=package)


def _read_all(holdings: Sequence[Holding], progress: Progress, unpack: Unpack) -> Iterator[FileParts]:
    items = [held.item for holding in holdings for held in holding.files]
    progress.begin("reading files", sum(item.size for item in items))
    advance = serialized(progress.advance)

    def read(item: Item) -> FileParts:
        try:
            return read_parts(item, unpack)
        finally:
            advance(item.size)

    with open_workers() as executor:
        # The largest files come first, so that they stay unpacked if not all files can.
        yield from map_sized(executor, read, items, lambda item: item.size)
    progress.end()


def _read_files(holdings: Sequence[Holding], parts: Iterator[FileParts]) -> tuple[FileFacts, ...]:
    seen: Seen = {}
    held = ((number, each) for number, holding in enumerate(holdings) for each in holding.files)
    return tuple(_file_facts(number, each, next(parts), seen) for number, each in held)


def _file_facts(number: int, held: HeldFile, found: FileParts, seen: Seen) -> FileFacts:
    item, (parts, problem) = held.item, found
    same_as = _first_name(number, item, seen)
    return FileFacts(
        package=number,
        component=held.component,
        path=path_in_package(item.path, item.source),
        size=0 if same_as else item.size,
        packed=item.packed,
        parts=() if same_as else parts,
        link=item.link,
        same_as=same_as,
        problem=problem,
    )


def _first_name(package: int, item: Item, seen: Seen) -> str:
    """Return the first path of a file that was already seen under another path, or an empty string.

    Hard links are stored on disk only once.
    """
    content = item.content
    if not isinstance(content, FileRange) or content.offset or item.packed is not None:
        return ""
    try:
        status = os.stat(content.path)  # noqa: PTH116  # called for each file
    except OSError:
        return ""
    if status.st_nlink < 2 or status.st_size != content.size:
        return ""
    named = (package, path_in_package(item.path, item.source))
    first = seen.setdefault((status.st_dev, status.st_ino), named)
    return first[1] if first != named else ""


def _problems_of(files: Iterable[FileFacts], holdings: Sequence[Holding]) -> Iterator[RocwheelError]:
    for file in files:
        if file.problem:
            source = holdings[file.package].source
            yield InputError(f"{source}!{file.path}", file.problem, remedy="Build or fetch it again.")


def _package_facts(holdings: Sequence[Holding], files: Iterable[FileFacts]) -> tuple[PackageFacts, ...]:
    labels = _labels(holdings)
    groups: list[list[FileFacts]] = [[] for _ in holdings]
    for file in files:
        groups[file.package].append(file)
    return tuple(
        _facts_of(holding, group, label) for holding, group, label in zip(holdings, groups, labels, strict=True)
    )


def _labels(holdings: Sequence[Holding]) -> list[str]:
    """Return a label for each package: its name, file or folder name, or path, whichever is unique first."""
    ways = [[one.name for one in holdings], [os.path.basename(one.source) for one in holdings]]  # noqa: PTH119
    counts = [Counter(names) for names in ways]
    return [
        one.name
        if one.kind is Kind.ARTIFACT
        else next(
            (names[place] for names, count in zip(ways, counts, strict=True) if count[names[place]] == 1), one.source
        )
        for place, one in enumerate(holdings)
    ]


def _facts_of(holding: Holding, files: Sequence[FileFacts], label: str) -> PackageFacts:
    in_files = sum(file.packed or 0 for file in files)
    return PackageFacts(
        label=label,
        kind=holding.kind,
        source=holding.source,
        version=holding.version,
        files=len(files),
        size=sum(file.size for file in files),
        packed=holding.packed,
        rest=None if holding.packed is None else holding.packed - in_files,
        targets=_targets(files),
        problem=holding.problem,
    )


def _targets(files: Iterable[FileFacts]) -> tuple[str, ...]:
    return tuple(sorted({part.target for file in files for part in file.parts} - {HOST}, key=part_sort_key))


def _totals(packages: Sequence[PackageFacts], files: Sequence[FileFacts]) -> Totals:
    packed = [package.packed for package in packages if package.packed is not None]
    return Totals(
        len(packages),
        len(files),
        sum(package.size for package in packages),
        sum(packed) if packed else None,
        _targets(files),
        sum(bool(file.problem) for file in files) + sum(bool(package.problem) for package in packages),
    )
