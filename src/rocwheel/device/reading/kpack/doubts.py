"""What is wrong between a split library and its archives, though each by itself is sound."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects.errors import Place
from rocwheel.binary.code_objects.kernel_metadata import kernel_names
from rocwheel.binary.code_objects.target_id import processor_of
from rocwheel.binary.kpack.match_units import match_units
from rocwheel.foundation.counting import count
from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rocwheel.device.reading.kpack.code import KpackCode, StoredCode

__all__ = ["WrongIndex", "find_doubts", "find_wrong_indices"]


class WrongIndex(msgspec.Struct, frozen=True):
    """Code that is stored under a key, but is that of another: in which archive, for which target."""

    archive: str
    target: str
    stored_as: str
    belongs_to: str

    def __str__(self) -> str:
        return (
            f"{self.archive}: what is stored as {self.stored_as} for {self.target} is the code of {self.belongs_to}: "
            "its indexes were counted for each target, as some releases of AMD's tool do"
        )


def find_doubts(name: str, code: KpackCode) -> tuple[str, ...]:
    """Return what a runtime would stumble over in the archives of the library ``name``, or in one archive.

    Code objects are decompressed only where some targets lack units.
    """
    wrong = [str(index) for index in find_wrong_indices(code)] if code.is_library else []
    return (*_missing_archives(name, code), *_misnamed_archives(code), *_missing_code(name, code), *wrong)


def _missing_archives(name: str, code: KpackCode) -> Iterator[str]:
    if code.is_library and not any(unit.archives for unit in code.units) and not code.problems:
        paths = dict.fromkeys(path for wrapper in code.wrappers for path in wrapper.marker.search_paths)
        yield f"{name}: its code is in kpack archives that are not there: {', '.join(paths)}"


def _misnamed_archives(code: KpackCode) -> Iterator[str]:
    """Yield the archives that runtimes open for a GPU and find nothing in for it, and open for no other."""
    processors = {archive.name: archive.processors for archive in code.archives}
    for way in dict.fromkeys(way for unit in code.units for way in unit.ways if way.target):
        if processor_of(way.target) not in processors[way.archive]:
            listed = ", ".join(sorted(processors[way.archive]))
            yield f"{way.archive}: is for {way.target} by its name, and lists {listed}: no runtime finds code in it"


def _missing_code(name: str, code: KpackCode) -> Iterator[str]:
    """Yield the targets that an archive lists and has not all code for: runtimes expect it there, and give up."""
    listed = {archive.name: archive.targets for archive in code.archives}
    lacking: dict[str, list[str]] = defaultdict(list)
    for unit in code.units:
        for target in dict.fromkeys(target for archive in unit.archives for target in listed[archive]):
            if target not in unit.targets:
                lacking[target].append(unit.key)
    for target, keys in sorted(lacking.items()):
        units = f"{keys[0]} and {count(len(keys) - 1, 'other key')}" if len(keys) > 1 else keys[0]
        yield (
            f"{name}: no code for {target} under {units}, though an archive lists the target: runtimes refuse the "
            "library on such a GPU, and some on every GPU"
        )


def find_wrong_indices(code: KpackCode) -> tuple[WrongIndex, ...]:
    """Return the code of a split library that is stored under the index of another unit.

    Where a target lacks units, the kernels of each are compared with those for the target that has most.
    """
    by_target: dict[str, dict[str, StoredCode]] = defaultdict(dict)
    for unit in code.units:
        for stored in unit.codes:
            by_target[stored.entry.target].setdefault(unit.key, stored)
    most = max(by_target.values(), key=len, default={})
    names = _Names()
    return tuple(
        wrong
        for target, units in sorted(by_target.items())
        if len(units) < len(most)
        for wrong in _compare(target, units, most, names)
    )


def _compare(
    target: str, units: Mapping[str, StoredCode], most: Mapping[str, StoredCode], names: _Names
) -> Iterator[WrongIndex]:
    owners = match_units(names.of_all(units), names.of_all(most)) or {}
    for key, owner in owners.items():
        if owner != key:
            yield WrongIndex(units[key].archive.name, target, key, owner)


class _Names:
    """The names of the kernels in code objects; each is read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], frozenset[str]] = {}

    def of_all(self, units: Mapping[str, StoredCode]) -> dict[str, frozenset[str]]:
        """Return the names of each unit's kernels; of those without any, nothing."""
        found = {key: self._of(stored) for key, stored in units.items()}
        return {key: names for key, names in found.items() if names}

    def _of(self, stored: StoredCode) -> frozenset[str]:
        if stored.identity not in self._known:
            place = Place(stored.archive.name, stored.entry.offset)
            try:
                self._known[stored.identity] = kernel_names(stored.read(), place=place)
            except InputError:
                self._known[stored.identity] = frozenset()  # reported by those who look into the code object
        return self._known[stored.identity]
