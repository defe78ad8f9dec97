"""The units of a fat binary: what its wrappers point to, each a bundle with the code of a translation unit.

With relocatable device code, several wrappers share one bundle: one unit, one index.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.plain import BundleEntry
from rocwheel.binary.bundles.sequence import Bundle
from rocwheel.binary.kpack.markers import check_sizes
from rocwheel.binary.kpack.write import ENTRY_RESERVE
from rocwheel.core.messages import count
from rocwheel.device.editing.prune import needed_code
from rocwheel.device.splitting.host.errors import NotSplittableError
from rocwheel.device.splitting.planning.keys import code_keys, named_features
from rocwheel.targets.catalog.catalog import SPIRV

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.binary.bundles.wrappers import FatBinary
    from rocwheel.binary.code_objects import Place, TargetId
    from rocwheel.core.reading import Data

__all__ = ["Unit", "by_form", "read_units", "size_checks", "wrapper_indices"]

_KINDS = frozenset({"hip", "hipv4"})


class Unit(msgspec.Struct, frozen=True):
    """A bundle, its number among those of the file, and the entries whose code goes into archives, in file order."""

    index: int
    bundle: Bundle
    entries: tuple[BundleEntry, ...]

    @property
    def targets(self) -> tuple[TargetId, ...]:
        """The targets of `entries`, one for each."""
        return tuple(entry.target for entry in self.entries if entry.target is not None)

    @property
    def spellings(self) -> tuple[str, ...]:
        """The ids of the bundle without the entries that were left out or are empty, so that joining can restore it."""
        return tuple(entry.spelling for entry in self._kept())

    @property
    def form(self) -> tuple[tuple[str, ...], bool]:
        """What markers keep of the bundle: `spellings`, and whether it is compressed."""
        return self.spellings, self.bundle.compressed is not None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The bytes of code of each of `spellings`; none of the host's."""
        return tuple(0 if entry.id.is_host else entry.size for entry in self._kept())

    def _kept(self) -> Iterator[BundleEntry]:
        kept = {entry.offset for entry in self.entries}
        return (entry for entry in self.bundle.plain.entries if entry.id.is_host or entry.offset in kept)

    def reserved(self) -> dict[str, int]:
        """Return the most bytes that the code takes in the archive for each processor: not compressed, and listed."""
        sizes: Counter[str] = Counter()
        for entry, target in zip(self.entries, self.targets, strict=True):
            sizes[target.processor] += entry.size + ENTRY_RESERVE
        return dict(sizes)


def read_units(data: Data, fat: FatBinary, keep: Sequence[TargetId] = ()) -> tuple[Unit, ...]:
    """Read the units of a fat binary; with ``keep``, only the code that these targets need counts.

    Raises `NotSplittableError` for what archives can't hold and for a bundle that no wrapper points to, and
    `DeviceCodeError` for damaged bundles.
    """
    units = tuple(_unit(index, bundle, keep) for index, bundle in enumerate(fat.iter_bundles(data)))
    starts = set(fat.starts)
    for unit in units:
        if unit.bundle.start not in starts:
            expected = "wrappers for all bundles, since archives are found through them"
            raise _not_splittable(unit.bundle.place, "a bundle that no wrapper points to", expected)
    return units


def by_form(units: Iterable[Unit]) -> dict[tuple[tuple[str, ...], bool], list[Unit]]:
    """Return the units by the form of their bundles: the ids that these name, in order, and how they are stored."""
    found: dict[tuple[tuple[str, ...], bool], list[Unit]] = {}
    for unit in units:
        found.setdefault(unit.form, []).append(unit)
    return found


def size_checks(units: Sequence[Unit]) -> tuple[int, ...]:
    """Return what `check_sizes` says of each entry of the bundles of ``units``, which all name the same."""
    columns = zip(*(unit.sizes for unit in units), strict=True)
    return tuple(check_sizes(zip((unit.index for unit in units), sizes, strict=True)) for sizes in columns)


def wrapper_indices(fat: FatBinary, units: Iterable[Unit]) -> tuple[int, ...]:
    """Return the index of its unit for each wrapper of the file, in their order."""
    index_at = {unit.bundle.start: unit.index for unit in units}
    return tuple(index_at[fat.start_of(wrapper)] for wrapper in fat.wrappers)


def _unit(index: int, bundle: Bundle, keep: Sequence[TargetId]) -> Unit:
    entries = [entry for entry in bundle.plain.device_entries if entry.size]
    for problem in _unsplittable(entries):
        raise _not_splittable(bundle.place, *problem)
    needed = needed_code((entry.target for entry in entries if entry.target), keep) if keep else None
    kept = [entry for entry in entries if needed is None or entry.target in needed]
    return Unit(index, bundle, tuple(kept))


def _unsplittable(entries: Sequence[BundleEntry]) -> Iterator[tuple[str, str]]:
    """Yield what archives can't hold: SPIR-V, code of other offload kinds, and code that no GPU would get."""
    for entry in entries:
        if entry.target is not None and entry.target.processor == SPIRV:
            yield "SPIR-V", "code objects alone: a runtime finds no other code in archives"
        elif entry.id.kind not in _KINDS:
            yield f"the entry {entry.spelling!r}", "code for HIP"
    targets = [entry.target for entry in entries if entry.target is not None]
    unreached = set(range(len(targets))) - set(_reached(targets))
    if unreached:
        names = ", ".join(entries[position].spelling for position in sorted(unreached))
        found = f"{count(len(unreached), 'entry', 'entries')} behind others for the same GPU ({names})"
        yield found, "one for each GPU"


def _reached(targets: Sequence[TargetId]) -> Iterator[int]:
    for processor in dict.fromkeys(target.processor for target in targets):
        own = [target for target in targets if target.processor == processor]
        yield from code_keys(targets, processor, named_features(own)).values()


def _not_splittable(place: Place, found: str, expected: str) -> NotSplittableError:
    return NotSplittableError(place, found, expected=expected)
