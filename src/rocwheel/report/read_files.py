"""The files at what users name, each with its parts, and what their packages come to."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.zip.reader import open_content
from rocwheel.foundation.collecting import raise_all, serialised
from rocwheel.foundation.errors import InputError, RocwheelError, raise_work
from rocwheel.foundation.files.reading.file_range import FileRange
from rocwheel.foundation.workers import map_sized, open_workers
from rocwheel.installed.reading.read_file import begin_large
from rocwheel.report.read_inputs import HeldFile, Holding, open_holdings, unreadable_holding
from rocwheel.report.read_parts import FileParts, read_parts
from rocwheel.report.values.files import HOST, FileFacts, Kind, PackageFacts, Totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import ExitStack
    from typing import TypeAlias

    from rocwheel.diffing.values import Item, Unpack
    from rocwheel.foundation.progress import Progress

    Seen: TypeAlias = dict[tuple[int, int], tuple[int, str]]

__all__ = ["ReadFiles", "read_files"]


class ReadFiles(msgspec.Struct, frozen=True):
    """What was read: packages, and their files in the same order, once as they are held and once as facts."""

    holdings: tuple[Holding, ...]
    files: tuple[FileFacts, ...]
    packages: tuple[PackageFacts, ...]
    totals: Totals

    @property
    def items(self) -> list[Item]:
        """The files as they are held."""
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
    """Return the files at ``paths``, which stay open in ``stack``; what can't be read is appended to ``unread``.

    The file ``left_out`` does not count. Members of wheels are had by way of ``unpack``. A path that is nothing to
    report on counts as unreadable beside others. Raises `InputError` where it is the only one, `ProblemsError` for
    several without another, both for paths within others, and `WorkError` where the system is at fault.
    """
    each: dict[str, Path] = {}
    for path in paths:
        each.setdefault(os.path.realpath(path), path)
    raise_all("Paths that can't be reported on together", _nested(each))
    holdings = _open_all(list(each.values()), stack, unread)
    holdings = [_without(holding, left_out) for holding in holdings] if left_out else holdings
    files = _read_files(holdings, _read_all(holdings, progress, unpack))
    unread += _problems_of(files, holdings)
    packages = _package_facts(holdings, files)
    return ReadFiles(tuple(holdings), files, packages, _totals(packages, files))


def _nested(each: Mapping[str, Path]) -> list[RocwheelError]:
    """Return one problem for each path that lies in another, so that its files would count twice."""
    return [
        InputError(path, f"lies in {each[outer]}, which is reported on as a whole", remedy="Name one of the two.")
        for real, path in each.items()
        if (outer := next((str(above) for above in Path(real).parents if str(above) in each), None)) is not None
    ]


def _open_all(paths: Sequence[Path], stack: ExitStack, unread: list[RocwheelError]) -> list[Holding]:
    problems: list[RocwheelError] = []
    holdings = [holding for path in paths for holding in _open(path, stack, unread, problems)]
    if len(problems) == len(paths):
        raise_all("Paths that can't be reported on", problems)
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
    kept = tuple(held for held in holding.files if not _is_at(held.item, real))
    package = msgspec.structs.replace(holding.package, items=tuple(held.item for held in kept))
    return msgspec.structs.replace(holding, files=kept, package=package)


def _is_at(item: Item, real: str) -> bool:
    return isinstance(item.content, FileRange) and os.path.realpath(item.content.path) == real


def _read_all(holdings: Sequence[Holding], progress: Progress, unpack: Unpack) -> Iterator[FileParts]:
    items = [held.item for holding in holdings for held in holding.files]
    step = begin_large(progress, "reading files", sum(item.size for item in items))
    advance = serialised(step.advance)

    def read(item: Item) -> FileParts:
        try:
            return read_parts(item, unpack)
        finally:
            advance(item.size)

    with open_workers() as executor:
        # The largest come first, and so are kept where not all can be.
        yield from map_sized(executor, read, items, lambda item: item.size)
    progress.end()


def _read_files(holdings: Sequence[Holding], parts: Iterator[FileParts]) -> tuple[FileFacts, ...]:
    seen: Seen = {}
    held = ((number, each) for number, holding in enumerate(holdings) for each in holding.files)
    return tuple(_file_facts(number, each, next(parts), seen) for number, each in held)


def _file_facts(number: int, held: HeldFile, found: FileParts, seen: Seen) -> FileFacts:
    item = held.item
    same_as = _first_name(number, item, seen)
    return FileFacts(
        package=number,
        component=held.component,
        path=item.path,
        size=0 if same_as else item.size,
        packed=item.packed,
        parts=() if same_as else found.parts,
        link=item.link,
        same_as=same_as,
        problem=found.problem,
    )


def _first_name(package: int, item: Item, seen: Seen) -> str:
    """Return the path under which a file on disk was seen before, as disks hold hard links once; empty otherwise."""
    content = item.content
    if not isinstance(content, FileRange) or content.offset or item.packed is not None:
        return ""
    try:
        status = os.stat(content.path)  # noqa: PTH116  # asked for each file
    except OSError:
        return ""
    if status.st_nlink < 2 or status.st_size != content.size:
        return ""
    first = seen.setdefault((status.st_dev, status.st_ino), (package, item.path))
    return first[1] if first != (package, item.path) else ""


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
    """Return the name of each package, or of its file or folder, or where that is: the first that no other has."""
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
    return tuple(sorted({part.target for file in files for part in file.parts} - {HOST}))


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
