"""Archives that lack units of their library, and so may have others under wrong indices.

AMD's tool of mid-2026 counts units in each archive, and passes over those that lack its target; wrappers count all. So
an archive without some unit has others under wrong indices: a GPU gets other kernels than it was asked for, or none.
Where an archive lacks a unit of its library, the names of the kernels say which unit each code object is, if other
archives, which lack none, have all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.binary.code_objects import Place
from rocwheel.binary.kernel_metadata import kernel_names
from rocwheel.binary.kpack.archive import read_kernel
from rocwheel.binary.kpack.markers import match_units

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rocwheel.binary.kpack.archive import KpackArchive, KpackEntry
    from rocwheel.core.reading import Data

__all__ = ["NamedArchive", "UnitFault", "find_unit_faults"]


class NamedArchive(NamedTuple):
    """An archive that markers of a library name, its bytes, and the keys that wrappers look for there."""

    data: Data
    archive: KpackArchive
    wanted: frozenset[str]


class UnitFault(msgspec.Struct, frozen=True):
    """What is wrong with one archive of a library."""

    archive: str
    lacking: tuple[str, ...]
    """The keys that wrappers look for in vain, in order of their indices."""
    owners: dict[str, str]
    """Of code objects under a wrong key: the key of the unit that each belongs to, by the key where it is stored."""
    is_clear: bool
    """Whether kernels tell which unit each code object is of."""


def find_unit_faults(archives: Sequence[NamedArchive], binaries: Iterable[str]) -> tuple[UnitFault, ...]:
    """Return the faults of the ``archives`` of a library, whose kernel names are ``binaries``.

    Code is read only where units are missing. Raises `KpackError` and `DeviceCodeError` for what is damaged there.
    """
    names = frozenset(binaries)
    stored = {named.archive.name: _by_key(named.archive, names) for named in archives}
    faulty = [named for named in archives if not named.wanted <= stored[named.archive.name].keys()]
    if not faulty:
        return ()
    reference: dict[str, frozenset[str]] = {}
    for named in archives:
        if named not in faulty:
            own = stored[named.archive.name]
            reference |= _kernels(named, {key: own[key] for key in named.wanted - reference.keys()})
    return tuple(_fault(named, stored[named.archive.name], reference) for named in faulty)


def _fault(named: NamedArchive, stored: Mapping[str, KpackEntry], reference: Mapping[str, frozenset[str]]) -> UnitFault:
    owners = match_units(_kernels(named, stored), reference)
    lacking = sorted(named.wanted - stored.keys(), key=lambda key: (len(key), key))
    wrong = {key: owner for key, owner in (owners or {}).items() if owner != key}
    return UnitFault(named.archive.name, tuple(lacking), wrong, is_clear=owners is not None)


def _by_key(archive: KpackArchive, binaries: frozenset[str]) -> dict[str, KpackEntry]:
    """Return a code object of each unit of the library in an archive, by its key there."""
    found: dict[str, KpackEntry] = {}
    for entry in archive.entries:
        if entry.binary in binaries and entry.index is not None:
            found.setdefault(entry.key, entry)
    return found


def _kernels(named: NamedArchive, entries: Mapping[str, KpackEntry]) -> dict[str, frozenset[str]]:
    """Return the names of the kernels in each code object; none for what has none."""
    kernels = {
        key: kernel_names(read_kernel(named.data, named.archive, entry), place=Place(named.archive.name, entry.offset))
        for key, entry in entries.items()
    }
    return {key: names for key, names in kernels.items() if names}
