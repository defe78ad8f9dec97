"""The facts of a kpack archive, and of a split library with the archives that its markers name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.code_objects import Place, is_code_object, processor_of, read_code_object
from rocwheel.binary.kernel_metadata import count_kernels
from rocwheel.binary.kpack.archive import Scheme
from rocwheel.core.errors import InputError
from rocwheel.device.reading.device_facts import ArchiveFacts, DeviceFacts, EntryFacts, KpackFacts, UnitFacts
from rocwheel.device.reading.kpack.code import open_kpack_code
from rocwheel.device.reading.kpack.doubts import find_doubts

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.binary.kpack.archive import KpackArchive
    from rocwheel.binary.kpack.markers import SplitUnit
    from rocwheel.core.reading import Data
    from rocwheel.device.reading.kpack.code import CodeUnit, KpackCode, StoredCode
    from rocwheel.device.reading.kpack.given_archives import Beside
    from rocwheel.device.reading.payload_facts import Look

__all__ = ["read_kpack_facts"]


def read_kpack_facts(
    data: Data, *, name: str, look: Look, folder: Path | None, beside: Beside | None = None
) -> DeviceFacts | None:
    """Gather the facts of the archive or split library ``name``; none for another file.

    With a deep ``look``, or where code is not compressed, kernels are counted. Archives of a library are looked for
    from ``folder``, in which it is, and among those ``beside`` it; where there is neither, nothing is said of them.
    Raises `InputError` for a damaged file.
    """
    with open_kpack_code(data, name=name, folder=folder, beside=beside) as code:
        if code is None:
            return None
        entries, problems = _Entries(look).read(code)
        is_complete = folder is not None or bool(code.archives) or not code.is_library
        doubts = find_doubts(name, code) if is_complete else ()
        return DeviceFacts(
            container="kpacked fat binary" if code.is_library else "kpack archive",
            wrappers=len(code.wrappers),
            entries=entries,
            problems=tuple(dict.fromkeys((*code.problems, *problems, *doubts))),
            kpack=KpackFacts(
                keys=tuple(dict.fromkeys(unit.key for unit in code.units)),
                archives=tuple(map(_archive_facts, code.archives)),
                wrappers=tuple(map(_wrapper_facts, code.wrappers)),
            ),
        )


def _archive_facts(archive: KpackArchive) -> ArchiveFacts:
    return ArchiveFacts(
        path=archive.name,
        scheme=archive.scheme.value,
        group=archive.group,
        family=archive.family,
        targets=archive.targets,
        code_objects=len(archive.blobs),
    )


def _wrapper_facts(wrapper: SplitUnit) -> UnitFacts:
    marker = wrapper.marker
    key = f"{marker.kernel_name}#{wrapper.index}"
    return UnitFacts(offset=wrapper.offset, key=key, search_paths=marker.search_paths)


class _Entries:
    """Looks at each code object once, however many keys and targets it has."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.problems: list[str] = []
        self._kernels: dict[tuple[str, int], int | None] = {}

    def read(self, code: KpackCode) -> tuple[tuple[EntryFacts, ...], list[str]]:
        return tuple(self._entry(unit, stored) for unit in code.units for stored in unit.codes), self.problems

    def _entry(self, unit: CodeUnit, stored: StoredCode) -> EntryFacts:
        is_shared = stored.identity in self._kernels
        if not is_shared:
            self._kernels[stored.identity] = self._count(unit, stored)
        entry = stored.entry
        kernels = self._kernels[stored.identity]
        return EntryFacts(unit.key, entry.target, entry.size, entry.stored_size, kernels, is_shared)

    def _count(self, unit: CodeUnit, stored: StoredCode) -> int | None:
        if stored.archive.scheme is not Scheme.NONE and not self.look.deep:
            return None
        place = Place(stored.archive.name, stored.entry.offset)
        try:
            payload = stored.read(self.look.limit)
            if not is_code_object(payload):
                return None
            code = read_code_object(payload, place=place)
            if code.target and code.target.processor != processor_of(stored.entry.target):
                self.problems.append(f"{place}: {unit.key} for {stored.entry.target} is code for {code.target}")
            return count_kernels(payload, code, place=place)
        except InputError as e:
            if self.look.strict:
                raise
            self.problems.append(str(e))
            return None
