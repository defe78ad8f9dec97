"""Determines a fat binary's units, the keys under which archives list the units, and the groups of units.

A reader looks up a GPU with all its features, such as ``gfx90a:sramecc+:xnack-``, then with fewer features, and finally
the processor without features. It uses the first of these keys that the *archive* lists, and fails if the archive
doesn't have the unit under this key. So if any unit in an archive sets a feature, all units are listed with each
setting of the feature.

With relocatable device code, several wrappers share one bundle, which is one unit with one index.

If a reader finds an archive for its GPU, but the archive lacks the unit, the reader rejects every GPU in the machine. A
reader that finds no archive skips the GPU, as with a fat binary. So if a unit has no code for a target, it must not
refer to archives that other units have for this target. A reader may load a complete archive into memory, or refuse an
archive larger than 2 GiB, so larger groups are split.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.plain import BundleEntry
from rocwheel.binary.bundles.sequence import Bundle
from rocwheel.binary.bundles.wrappers import FatBinary
from rocwheel.binary.code_objects import FEATURES, TargetId
from rocwheel.binary.kpack.archive import ARCHIVE_LIMIT
from rocwheel.binary.kpack.markers import PLACEHOLDER, Marker, check_sizes
from rocwheel.binary.kpack.write import ENTRY_RESERVE, assign_shards
from rocwheel.core.messages import count
from rocwheel.device.edit_bundles import needed_code
from rocwheel.device.split.host_file import UnitLink
from rocwheel.device.split.host_layout import NotSplittableError
from rocwheel.targets.catalog import SPIRV, sort_key
from rocwheel.targets.compatibility import choose, settings_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from rocwheel.core.reading import Data


def base_target(target: TargetId) -> str:
    """Return the target of the archive with code for ``target``: its processor without features."""
    return target.processor


def named_features(targets: Iterable[TargetId]) -> frozenset[str]:
    """Return the features that any of ``targets`` sets."""
    return frozenset(name for target in targets for name in target.features)


def code_keys(codes: Sequence[TargetId], processor: str, features: Collection[str]) -> dict[TargetId, int]:
    """Return a unit's keys in the archive for ``processor``, each with the position of its code in ``codes``.

    ``features`` contains the features that units in the archive set (`named_features`). Each combination of their
    settings is a key. The processor without features is also a key if the unit has code that doesn't set these
    features. Each key has the code that an unmodified runtime loads from the bundle.
    """
    bare = TargetId(processor)
    own = [(position, code) for position, code in enumerate(codes) if code.processor == processor]
    wanted = dict.fromkeys([bare, *settings_of(bare, features)])
    choices = {key: choose([code for _, code in own], key) for key in wanted}
    return {key: own[choice.index][0] for key, choice in choices.items() if choice is not None}


def served_settings(codes: Iterable[TargetId]) -> frozenset[TargetId]:
    """Return the GPUs that find their own code in ``codes``, as processors with a setting for every feature.

    Code for generic processors counts as the GPU's own code, because readers also look up generic processors by name.
    """
    offered = tuple(codes)
    processors = dict.fromkeys(code.processor for code in offered)
    settings = (setting for name in processors for setting in settings_of(TargetId(name), FEATURES))
    own = {name: [code for code in offered if code.processor == name] for name in processors}
    return frozenset(setting for setting in settings if choose(own[setting.processor], setting) is not None)


ARCHIVE_FOLDER = ".kpack"
"""The default folder for archives below the root of a tree."""

_FOLDER = re.compile(r"[A-Za-z0-9._+/-]+")
"""Names that every system allows. They don't contain the placeholder for targets in markers."""

_ODD = re.compile(r"[^A-Za-z0-9._+-]")
_DIGEST_DIGITS = 8


def name_groups(paths: Iterable[str]) -> dict[str, str]:
    """Return the name of each library's archive group, keyed by the library's path below the root.

    The name is the library's file name, with ``-`` instead of colons, spaces, and other characters that some systems
    don't allow. If several libraries have the same name, ignoring case, a digest of the path is appended.
    """
    plain = {path: _ODD.sub("-", posixpath.basename(path)) for path in paths}
    users = Counter(name.lower() for name in plain.values())
    return {
        path: name
        if users[name.lower()] == 1
        else f"{name}-{hashlib.sha256(path.encode()).hexdigest()[:_DIGEST_DIGITS]}"
        for path, name in plain.items()
    }


def is_archive_folder(folder: str) -> bool:
    """Return whether archives may be in ``folder``, a normalized path: it must be below the root with a valid name."""
    return folder.split("/", maxsplit=1)[0] not in {"", ".."} and _FOLDER.fullmatch(folder) is not None


def archive_path(group: str, target: str, folder: str = ARCHIVE_FOLDER) -> str:
    """Return the path, below the root, of a group's archive for the base target ``target``."""
    return posixpath.join(folder, f"{group}_{target}.kpack")


def search_path(binary: str, group: str, folder: str = ARCHIVE_FOLDER) -> str:
    """Return the search path to a group in the marker of the file ``binary``, a path below the root."""
    return posixpath.relpath(archive_path(group, PLACEHOLDER, folder), posixpath.dirname(binary) or ".")


_KINDS = frozenset({"hip", "hipv4"})


class BundleUnit(msgspec.Struct, frozen=True):
    """A bundle, its number in the file, and the entries whose code goes into archives, in file order."""

    index: int
    bundle: Bundle
    entries: tuple[BundleEntry, ...]

    @property
    def targets(self) -> tuple[TargetId, ...]:
        """The target of each entry in `entries`."""
        return tuple(entry.target for entry in self.entries if entry.target is not None)

    @property
    def spellings(self) -> tuple[str, ...]:
        """The bundle's entry IDs, except for omitted and empty entries, so that a join can restore the bundle."""
        return tuple(entry.spelling for entry in self._kept())

    @property
    def form(self) -> tuple[tuple[str, ...], bool]:
        """The bundle's properties in markers: `spellings`, and whether the bundle is compressed."""
        return self.spellings, self.bundle.compressed is not None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The code size of each entry in `spellings`, in bytes; 0 for the host."""
        return tuple(0 if entry.id.is_host else entry.size for entry in self._kept())

    def _kept(self) -> Iterator[BundleEntry]:
        kept = {entry.offset for entry in self.entries}
        return (entry for entry in self.bundle.plain.entries if entry.id.is_host or entry.offset in kept)

    def reserved(self) -> dict[str, int]:
        """Return the maximum size of the code in each processor's archive: uncompressed, including table entries."""
        sizes: Counter[str] = Counter()
        for entry, target in zip(self.entries, self.targets, strict=True):
            sizes[target.processor] += entry.size + ENTRY_RESERVE
        return dict(sizes)


def read_units(data: Data, fat: FatBinary, keep: Sequence[TargetId]) -> tuple[BundleUnit, ...]:
    """Read the units in a fat binary; with ``keep``, only code for these targets is included.

    Raises `NotSplittableError` for content that archives can't contain, and for a bundle without a wrapper. Raises
    `DeviceCodeError` for damaged bundles.
    """
    units = tuple(_unit(index, bundle, keep) for index, bundle in enumerate(fat.iter_bundles(data)))
    starts = set(fat.starts)
    for unit in units:
        if unit.bundle.start not in starts:
            expected = "wrappers for all bundles, because runtimes find archives through them"
            raise NotSplittableError(unit.bundle.place, "a bundle that no wrapper points to", expected=expected)
    return units


def _unit(index: int, bundle: Bundle, keep: Sequence[TargetId]) -> BundleUnit:
    entries = [entry for entry in bundle.plain.device_entries if entry.size]
    for found, expected in _unsplittable(entries):
        raise NotSplittableError(bundle.place, found, expected=expected)
    needed = needed_code((entry.target for entry in entries if entry.target), keep) if keep else None
    kept = [entry for entry in entries if needed is None or entry.target in needed]
    return BundleUnit(index, bundle, tuple(kept))


def _unsplittable(entries: Sequence[BundleEntry]) -> Iterator[tuple[str, str]]:
    """Yield content that archives can't contain: SPIR-V, code with other offload kinds, and code that no GPU loads."""
    for entry in entries:
        if entry.target is not None and entry.target.processor == SPIRV:
            yield "SPIR-V", "only code objects, because runtimes don't find other code in archives"
        elif entry.id.kind not in _KINDS:
            yield f"the entry {entry.spelling!r}", "code for HIP"
    targets = [entry.target for entry in entries if entry.target is not None]
    unreached = set(range(len(targets))) - set(_reached(targets))
    if unreached:
        names = ", ".join(entries[position].spelling for position in sorted(unreached))
        found = f"{count(len(unreached), 'entry', 'entries')} after other entries for the same GPU ({names})"
        yield found, "only one entry for each GPU"


def _reached(targets: Sequence[TargetId]) -> Iterator[int]:
    for processor in dict.fromkeys(target.processor for target in targets):
        own = [target for target in targets if target.processor == processor]
        yield from code_keys(targets, processor, named_features(own)).values()


class BundleGroup(msgspec.Struct, frozen=True):
    """Units with code for the same GPUs, in index order."""

    name: str
    units: tuple[BundleUnit, ...]
    features: dict[str, frozenset[str]]
    """The features that any unit sets, keyed by base target. Each unit's keys depend on these features."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The base targets with an archive."""
        return tuple(self.features)

    def keys_of(self, unit: BundleUnit, target: str) -> dict[int, list[str]]:
        """Return the keys of a unit's code objects in the archive for ``target``, keyed by position in the unit."""
        by_position: dict[int, list[str]] = defaultdict(list)
        for key, position in code_keys(unit.targets, target, self.features[target]).items():
            by_position[position].append(str(key))
        return dict(sorted(by_position.items()))

    def listed(self, target: str) -> tuple[str, ...]:
        """Return all distinct keys in the archive for ``target``, sorted as text."""
        features = self.features[target]
        return tuple(sorted({str(key) for unit in self.units for key in code_keys(unit.targets, target, features)}))


def group_units(units: Iterable[BundleUnit], name: str, *, limit: int = ARCHIVE_LIMIT) -> tuple[BundleGroup, ...]:
    """Return the groups of a library's units.

    The largest group is called ``name``, and the other groups are called ``name-part2``, ``name-part3``, and so on. No
    archive in a group exceeds ``limit`` bytes, even if its code doesn't compress. Raises `KpackError` for a single unit
    that exceeds the limit.
    """
    by_gpus: dict[frozenset[TargetId], list[BundleUnit]] = defaultdict(list)
    for unit in units:
        by_gpus[served_settings(unit.targets)].append(unit)
    alike = sorted(by_gpus.values(), key=lambda group: (-len(group), group[0].index))
    parts = [part for group in alike for part in _parted(group, limit)]
    return tuple(
        BundleGroup(name if number == 1 else f"{name}-part{number}", tuple(part), _features(part))
        for number, part in enumerate(parts, 1)
    )


def _features(units: Iterable[BundleUnit]) -> dict[str, frozenset[str]]:
    """Return the units' base targets in order, each with the features that its targets set."""
    by_processor: dict[str, list[TargetId]] = defaultdict(list)
    for unit in units:
        for target in unit.targets:
            by_processor[target.processor].append(target)
    return {processor: named_features(by_processor[processor]) for processor in sorted(by_processor, key=sort_key)}


def _parted(units: Sequence[BundleUnit], limit: int) -> list[list[BundleUnit]]:
    shards = assign_shards([unit.reserved() for unit in units], limit=limit)
    parts: list[list[BundleUnit]] = [[] for _ in range(max(shards, default=-1) + 1)]
    for unit, shard in zip(units, shards, strict=True):
        parts[shard].append(unit)
    return parts


class PlannedArchive(msgspec.Struct, frozen=True):
    """An archive to write: its path below the root, its group name, and its base target."""

    path: str
    group: str
    target: str


class LibraryPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan for the device code of the library at ``path`` below the root."""

    path: str
    kernel_name: str
    fat: FatBinary
    groups: tuple[BundleGroup, ...]
    folder: str = ARCHIVE_FOLDER
    """The folder for the library's archives, below the root."""

    @property
    def archives(self) -> tuple[PlannedArchive, ...]:
        """The archives to write."""
        return tuple(
            PlannedArchive(archive_path(group.name, target, self.folder), group.name, target)
            for group in self.groups
            for target in group.targets
        )

    @property
    def units(self) -> tuple[BundleUnit, ...]:
        """All units, in index order."""
        return tuple(sorted((unit for group in self.groups for unit in group.units), key=lambda unit: unit.index))

    @property
    def code_size(self) -> int:
        """The total size in bytes of the code objects that go into archives."""
        return sum(entry.size for group in self.groups for unit in group.units for entry in unit.entries)

    def group_of(self) -> dict[int, BundleGroup]:
        """Return each unit's group, keyed by the unit's index."""
        return {unit.index: group for group in self.groups for unit in group.units}

    def markers(self, path: str = "") -> tuple[Marker, ...]:
        """Return the distinct markers for the wrappers; ``path`` is another name of the file.

        Units in one group share a marker, unless the names or the order of the entries in their bundles differ.
        """
        return tuple(dict.fromkeys(marker for _, marker in self._iter_markers(path or self.path)))

    def links(self) -> tuple[UnitLink, ...]:
        """Return the new content of each wrapper after its code moves elsewhere, in file order."""
        position = {marker: number for number, marker in enumerate(self.markers())}
        marker_of = {index: position[marker] for index, marker in self._iter_markers(self.path)}
        index_at = {unit.bundle.start: unit.index for unit in self.units}
        indices = (index_at[self.fat.start_of(wrapper)] for wrapper in self.fat.wrappers)
        return tuple(UnitLink(index, marker_of[index]) for index in indices)

    def _iter_markers(self, path: str) -> Iterator[tuple[int, Marker]]:
        for group in self.groups:
            paths = (search_path(path, group.name, self.folder),)
            by_form: dict[tuple[tuple[str, ...], bool], list[BundleUnit]] = defaultdict(list)
            for unit in group.units:
                by_form[unit.form].append(unit)
            checks = {
                form: tuple(
                    check_sizes(zip((unit.index for unit in units), sizes, strict=True))
                    for sizes in zip(*(unit.sizes for unit in units), strict=True)
                )
                for form, units in by_form.items()
            }
            for unit in group.units:
                spellings, compressed = unit.form
                yield unit.index, Marker(self.kernel_name, paths, spellings, checks[unit.form], compressed)
