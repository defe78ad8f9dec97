"""Compares two sides: pairs packages, then files, and reads only the files that differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import as_target_id
from rocwheel.binary.kind import HEAD_SIZE
from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import FileRange, have_same_bytes
from rocwheel.core.workers import map_sized, open_workers
from rocwheel.diff.changes import (
    Comparison,
    FieldChange,
    FileChange,
    KernelLibraryChange,
    LibraryChange,
    PackageChange,
    SideFacts,
    Status,
)
from rocwheel.diff.facts import FactsOfItems, find_archived_code, lost_symbols
from rocwheel.diff.pairs import pair_items, pair_packages, plain_path, with_moves
from rocwheel.diff.sides import Item, Package, Side
from rocwheel.targets.compatibility import covers
from rocwheel.targets.kernel_files import kernel_targets, library_of
from rocwheel.targets.target_set import text_sort_key
from rocwheel.wheels.tags import split_tags
from rocwheel.wheels.zip_reader import ZipMember

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from rocwheel.core.errors import RocwheelError
    from rocwheel.diff.facts import BinaryFacts
    from rocwheel.diff.pairs import Pairs
    from rocwheel.diff.sides import Metadata


def have_same_content(old: Item, new: Item) -> bool:
    """Return whether two files have the same bytes.

    For two members of wheels, equal sizes, checksums, and RECORD hashes are sufficient. Other files are read. Raises
    `InputError` for unreadable files.
    """
    if old.link is not None or new.link is not None:
        return old.link == new.link
    if old.size != new.size:
        return False
    if isinstance(old.content, ZipMember) and isinstance(new.content, ZipMember):
        if old.content.crc32 != new.content.crc32:
            return False
        if old.hash and old.hash == new.hash:
            return True
    if isinstance(old.content, FileRange) and old.content == new.content:
        with old.view():
            return True  # the same file, so its size doesn't matter
    with old.view() as one, new.view() as other:
        return have_same_bytes(one, other)


def compare_items(old: Item | None, new: Item | None, old_facts: BinaryFacts, new_facts: BinaryFacts) -> FileChange:
    """Return the differences for a file that has different contents on the two sides, or that only one side has."""
    status = Status.CHANGED if old and new else Status.WENT if old else Status.CAME
    return FileChange(
        status=status,
        old_path=old.path if old else "",
        new_path=new.path if new else "",
        old_size=old.size if old else None,
        new_size=new.size if new else None,
        old_packed=old.packed if old else None,
        new_packed=new.packed if new else None,
        old_mode=_mode(old),
        new_mode=_mode(new),
        old_link=old.link if old else None,
        new_link=new.link if new else None,
        has_other_content=old is not None and new is not None,
        library=_compare_facts(old_facts, new_facts),
    )


def compare_field(field: str, old: Iterable[str], new: Iterable[str]) -> list[FieldChange]:
    """Return the values that were removed from a field or added to it, or an empty list if nothing changed."""
    before, after = dict.fromkeys(old), dict.fromkeys(new)
    went = tuple(value for value in before if value not in after)
    came = tuple(value for value in after if value not in before)
    return [FieldChange(field, went, came)] if went or came else []


def lost_targets(old: Iterable[str], new: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the targets that nothing serves anymore, and the targets that other code serves, such as generic code."""
    after = frozenset(new)
    lost = sorted(frozenset(old) - after, key=text_sort_key)
    offered = [target for text in sorted(after) if (target := as_target_id(text))]
    replaced = {text for text in lost if (target := as_target_id(text)) and covers(offered, target)}
    return tuple(text for text in lost if text not in replaced), tuple(text for text in lost if text in replaced)


def _mode(item: Item | None) -> int | None:
    return item.mode & 0o7777 if item and item.mode else None


def _compare_facts(old: BinaryFacts, new: BinaryFacts) -> LibraryChange | None:
    is_binary = old.elf or new.elf or old.pe or new.pe
    if not is_binary and not (old.targets or new.targets):
        return None
    is_alike = (old.elf and new.elf) or (old.pe and new.pe)
    strong, weak = lost_symbols(old, new) if is_alike else ((), ())
    came = new.linkage.definitions - old.linkage.definitions if old.elf else new.functions - old.functions
    targets_went, replaced = lost_targets(old.targets, new.targets)
    return LibraryChange(
        is_library=old.is_library or new.is_library,
        old_soname=old.soname,
        new_soname=new.soname,
        fields=(*_compare_elf(old, new), *_compare_imports(old, new)),
        symbols_went=strong,
        weak_symbols_went=weak,
        symbols_came=len(came) if old.elf or old.pe else 0,
        targets_went=targets_went,
        targets_replaced=replaced,
        targets_came=tuple(sorted(new.targets - old.targets, key=text_sort_key)),
    )


def _compare_elf(old: BinaryFacts, new: BinaryFacts) -> tuple[FieldChange, ...]:
    if old.elf is None or new.elf is None:
        return ()
    return (
        *compare_field("SONAME", filter(None, [old.soname]), filter(None, [new.soname])),
        *compare_field("NEEDED", old.elf.needed, new.elf.needed),
        *_compare_path("RUNPATH", old.elf.runpath, new.elf.runpath),
        *_compare_path("RPATH", old.elf.rpath, new.elf.rpath),
    )


def _compare_imports(old: BinaryFacts, new: BinaryFacts) -> tuple[FieldChange, ...]:
    if old.pe is None or new.pe is None:
        return ()
    one, other = ([dll.name for dll in pe.imports] for pe in (old.pe, new.pe))
    later, other_later = ([dll.name for dll in pe.delay_imports] for pe in (old.pe, new.pe))
    return (*compare_field("Import", one, other), *compare_field("Delay import", later, other_later))


def _compare_path(field: str, old: str | None, new: str | None) -> list[FieldChange]:
    return compare_field(field, [] if old is None else [old], [] if new is None else [new])


if TYPE_CHECKING:
    Libraries: TypeAlias = Mapping[str, set[str]]


_ARCHIVE = ".kpack"


def find_lost_kernels(
    pairs: Sequence[tuple[Package | None, Package | None]],
) -> list[tuple[KernelLibraryChange, ...]]:
    """Return the kernel libraries that lost a GPU, for each pair of packages.

    Several packages may share a library, for example, device packages. Such a library loses only targets that no
    package has anymore. Targets of a new library are treated as moved to that library.
    """
    before, after = (_merged(package for pair in pairs for package in pair[side : side + 1]) for side in (0, 1))
    fresh = {target for library, targets in after.items() if library not in before for target in targets}
    return [tuple(_lost(_merged([old]), after, fresh)) for old, _ in pairs]


def _lost(before: Libraries, after: Libraries, fresh: set[str]) -> Iterable[KernelLibraryChange]:
    for library, targets in sorted(before.items()):
        went, _ = lost_targets(targets, after.get(library, set()) | fresh)
        if went:
            yield KernelLibraryChange(library, went)


def _merged(packages: Iterable[Package | None]) -> Libraries:
    """Return the targets for which each library has files, in all packages."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for package in packages:
        for item in package.items if package else ():
            targets = kernel_targets(item.path)
            if targets and not item.path.endswith(_ARCHIVE):  # the contents of archives are compared
                found[library_of(plain_path(item.path, package) if package else item.path)] |= targets
    return found


def compare_metadata(old: Package, new: Package) -> tuple[FieldChange, ...]:
    """Return the metadata fields that differ, sorted by name. Tags are listed separately."""
    one, other = old.metadata, new.metadata
    return (
        *compare_field("Name", filter(None, [old.name]), filter(None, [new.name])),
        *compare_field("Requires-Dist", plain_requirements(old), plain_requirements(new)),
        *compare_field("Requires-Python", filter(None, [one.requires_python]), filter(None, [other.requires_python])),
        *compare_field("Provides-Extra", one.extras, other.extras),
        *compare_field("Entry point", one.entry_points, other.entry_points),
        *_compare_tags(one, other),
        *compare_field("GPU target", one.targets, other.targets),
        *compare_field("License", filter(None, [one.license]), filter(None, [other.license])),
        *compare_field("Summary", filter(None, [one.summary]), filter(None, [other.summary])),
    )


def plain_requirements(package: Package) -> tuple[str, ...]:
    """Return the requirements without the exact versions that packages from one build require of each other."""
    pin = f"=={package.version}"
    return tuple(
        f"{text.partition(pin)[0]}==VERSION{text.partition(pin)[2]}" if _ends_pin(text, pin) else text
        for text in package.metadata.requires
    )


def _ends_pin(text: str, pin: str) -> bool:
    before, found, rest = text.partition(pin)
    return bool(before and found) and (not rest or rest[0] in " ;)")


def _compare_tags(one: Metadata, other: Metadata) -> list[FieldChange]:
    names = ("Python tag", "ABI tag", "Platform tag")
    return [
        change
        for name, before, after in zip(names, one.tags, other.tags, strict=True)
        for change in compare_field(name, split_tags(before) if before else (), split_tags(after) if after else ())
    ]


def compare_sides(old: Side, new: Side, *, unread: list[RocwheelError], progress: Progress = SILENT) -> Comparison:
    """Compare two sides. Unreadable files are appended to ``unread``.

    If one side has no distributions, only files are compared, as if all packages were installed together. Raises
    `WorkError` for a system failure.
    """
    as_files = not (old.has_distributions and new.has_distributions)
    sides = [_as_files(side) if as_files and side.has_distributions else side for side in (old, new)]
    pairs = pair_packages(sides[0].packages, sides[1].packages)
    progress.begin(f"comparing {new.path} with {old.path}", old.size + new.size)
    facts = FactsOfItems(unread)
    names = Counter(package.name for pair in pairs for package in [pair[0] or pair[1]] if package)
    packages = [
        package if names[package.name] > 1 else msgspec.structs.replace(package, tags="")
        for package in (_compare_packages(*pair, facts, progress) for pair in pairs)
    ]
    progress.end()
    moved = with_moves(packages, find_archived_code(pairs, facts))
    moved = [
        msgspec.structs.replace(package, kernel_libraries=lost)
        for package, lost in zip(moved, find_lost_kernels(pairs), strict=True)
    ]
    order = sorted(moved, key=lambda package: (package.status is Status.CAME, package.name, package.tags))
    return Comparison(_side_facts(old), _side_facts(new), tuple(order), as_files)


def _as_files(side: Side) -> Side:
    items = {
        item.path: item
        for package in side.packages
        for item in package.items
        if not (package.dist_info and item.path.startswith(f"{package.dist_info}/"))
    }
    return Side(side.path, (Package(name="", source=side.path, items=tuple(items.values())),))


def _side_facts(side: Side) -> SideFacts:
    packed = [size for package in side.packages if (size := package.packed) is not None]
    files = sum(len(package.items) for package in side.packages)
    return SideFacts(side.path, len(side.packages), files, side.size, sum(packed) if packed else None)


def _compare_packages(old: Package | None, new: Package | None, facts: FactsOfItems, step: Progress) -> PackageChange:
    before = old or Package(name="", source="")
    after = new or Package(name="", source="")
    pairs = pair_items(*_of_one_kind(before, after), facts.soname)
    unequal = _unequal_pairs(pairs, facts, step)
    files = [*_changes(pairs, unequal, facts), *_moved_or_other_modes(pairs, unequal)]
    fields = compare_metadata(before, after) if old and new else ()
    went, replaced, came = _package_targets(pairs, unequal, facts)
    return PackageChange(
        status=_status(old, new, differs=bool(files or fields or before.version != after.version)),
        name=before.name or after.name,
        new_name=after.name if old and new and after.name != before.name else "",
        tags="-".join(filter(None, (before if old else after).metadata.tags)),
        old_platforms=tuple(filter(None, split_tags(before.metadata.tags[2]))),
        new_platforms=tuple(filter(None, split_tags(after.metadata.tags[2]))),
        new_pythons=tuple(filter(None, split_tags(after.metadata.tags[0]))),
        new_abis=tuple(filter(None, split_tags(after.metadata.tags[1]))),
        old_requires=plain_requirements(before),
        old_version=before.version,
        new_version=after.version,
        old_size=before.size,
        new_size=after.size,
        old_packed=before.packed,
        new_packed=after.packed,
        fields=fields,
        files=tuple(sorted(files, key=lambda file: file.path)),
        targets_went=went,
        targets_replaced=replaced,
        targets_came=came,
    )


def _of_one_kind(old: Package, new: Package) -> tuple[Package, Package]:
    """Return two packages, without their files if only one is an sdist. A build can put files anywhere."""
    if not (old.name and new.name) or old.is_sdist == new.is_sdist:
        return old, new
    return msgspec.structs.replace(old, items=()), msgspec.structs.replace(new, items=())


def _unequal_pairs(pairs: Pairs, facts: FactsOfItems, step: Progress) -> list[tuple[Item, Item]]:
    with open_workers() as executor:
        differ = map_sized(
            executor, lambda pair: _differ(pair[0], pair[1], facts, step), pairs.both, lambda pair: pair[0].size
        )
        differing = list(differ)
    return [pair for pair, differs in zip(pairs.both, differing, strict=True) if differs]


def _status(old: Package | None, new: Package | None, *, differs: bool) -> Status:
    if old and new:
        return Status.CHANGED if differs else Status.SAME
    return Status.WENT if old else Status.CAME


def _differ(old: Item, new: Item, facts: FactsOfItems, step: Progress) -> bool:
    try:
        if not have_same_content(old, new):
            return True
        for item in (old, new) if new.size < HEAD_SIZE else ():
            facts.read(item)  # equal files need no reading, but a truncated header is reported at almost no cost
    except WorkError:
        raise
    except InputError as e:
        facts.add_problem(e)
        return True
    else:
        return False
    finally:
        step.advance(old.size + new.size)


def _changes(pairs: Pairs, unequal: Sequence[tuple[Item, Item]], facts: FactsOfItems) -> Iterable[FileChange]:
    every: list[tuple[Item | None, Item | None]] = [*unequal]
    every += [(item, None) for item in pairs.went]
    every += [(None, item) for item in pairs.came]
    with open_workers() as executor:
        items = [item for pair in every for item in pair if item]
        list(map_sized(executor, facts.read, items, lambda item: item.size))
    return (compare_items(old, new, facts.of(old), facts.of(new)) for old, new in every)


def _moved_or_other_modes(pairs: Pairs, unequal: Sequence[tuple[Item, Item]]) -> Iterable[FileChange]:
    """Yield the files that have equal contents but a different mode or, for libraries, a different name."""
    seen = {id(old) for old, _ in unequal}
    for old, new in pairs.both:
        change = compare_items(old, new, *FactsOfItems.NONE)
        has_other_mode = None not in (change.old_mode, change.new_mode) and change.old_mode != change.new_mode
        if id(old) not in seen and (has_other_mode or old.name != new.name):
            yield msgspec.structs.replace(change, has_other_content=False)


def _package_targets(
    pairs: Pairs, unequal: Sequence[tuple[Item, Item]], facts: FactsOfItems
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return a package's lost targets, its targets that other code now serves, and its new targets.

    Files that are equal on both sides are read only if they may have code for one of these targets.
    """
    before = facts.targets(chain((old for old, _ in unequal), pairs.went))
    after = facts.targets(chain((new for _, new in unequal), pairs.came))
    if before == after:
        return (), (), ()
    changed = {id(new) for _, new in unequal}
    shared = facts.targets(new for _, new in pairs.both if id(new) not in changed)
    went, replaced = lost_targets(before, after | shared)
    return went, replaced, tuple(sorted(after - before - shared, key=text_sort_key))
