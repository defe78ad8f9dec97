"""Contradictions between a split library and its kpack archives, where each by itself is sound."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.binary.code_objects import processor_of
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.device.reading.kpack.unit_faults import NamedArchive, find_unit_faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.device.reading.kpack.code import KpackCode

__all__ = ["find_doubts"]


def find_doubts(name: str, code: KpackCode) -> tuple[str, ...]:
    """Return what a runtime would stumble over in the archives of the library ``name``, or in one archive.

    Code objects are decompressed only where some targets lack units.
    """
    wrong = _wrong_indices(code) if code.is_library else ()
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


def _wrong_indices(code: KpackCode) -> Iterator[str]:
    """Yield the code of a split library that is stored under the index of another unit."""
    stored = {codes.archive.name: codes for unit in code.units for codes in unit.codes}
    archives = [
        NamedArchive(codes.data, codes.archive, frozenset(unit.key for unit in code.units if name in unit.archives))
        for name, codes in sorted(stored.items())
    ]
    try:
        faults = find_unit_faults(archives, (wrapper.marker.kernel_name for wrapper in code.wrappers))
    except InputError as e:
        yield str(e)
        return
    for fault in faults:
        for key, owner in fault.owners.items():
            targets = dict.fromkeys(e.target for e in stored[fault.archive].archive.entries if e.key == key)
            yield (
                f"{fault.archive}: what is stored as {key} for {', '.join(targets)} is the code of {owner}: "
                "its indexes were counted for each target, as some releases of AMD's tool do"
            )
