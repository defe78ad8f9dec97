"""Whether archives have each unit of a library under the index that its wrapper names."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.runtimes import last_stopping_release
from rocwheel.binary.kpack.archive import split_key
from rocwheel.core.messages import count, first_of
from rocwheel.device.reading.kpack.unit_faults import NamedArchive, UnitFault, find_unit_faults
from rocwheel.device.splitting.joining.find_code import archives_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.binary.kpack.markers import SplitLibrary
    from rocwheel.device.splitting.joining.find_code import ArchiveFile

__all__ = ["IndexCheck", "check_indices"]


class IndexCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with the archives of a library, which messages call ``name``."""

    name: str
    faults: tuple[UnitFault, ...]
    renumbered: dict[tuple[str, int], int]
    """By the archive's path and index in it, the unit that a code object belongs to, where that is another."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    @property
    def doubtful(self) -> tuple[str, ...]:
        """The archives that lack units, and whose code objects can't be told apart: indices may be wrong, too."""
        return tuple(fault.archive for fault in self.faults if not fault.is_clear)

    @property
    def can_be_mended(self) -> bool:
        """Whether it is known which unit each code object belongs to."""
        return not self.doubtful

    def texts(self) -> tuple[str, ...]:
        """Return what is wrong, a text for each archive."""
        return tuple(map(self._text, self.faults))

    def _text(self, fault: UnitFault) -> str:
        units = f"{count(len(fault.lacking), 'unit')} ({first_of([str(_index(key)) for key in fault.lacking])})"
        outcome = (
            f"where it lists a GPU, runtimes up to {last_stopping_release()} look no further, and give up on every GPU"
        )
        text = (
            f"{self.name}: {fault.archive} lacks {units}: {outcome}; later ones do so unless another archive has them"
        )
        if fault.owners:
            wrong = [f"{_index(key)} is {_index(owner)}" for key, owner in fault.owners.items()]
            return f"{text}; others are under wrong indices ({first_of(wrong)})"
        return text if fault.is_clear else f"{text}; indices may be wrong, too: kernels don't tell units apart"


def check_indices(path: str, library: SplitLibrary, archives: Sequence[ArchiveFile], *, name: str = "") -> IndexCheck:
    """Check the archives that the markers of the library at ``path`` name; messages call it ``name``.

    Code is read only where units are missing. Raises `KpackError` and `DeviceCodeError` for damaged code.
    """
    wanted: dict[str, set[str]] = {}
    files: dict[str, ArchiveFile] = {}
    for unit in library.units:
        for file in archives_of(path, unit, archives):
            files[file.path] = file
            wanted.setdefault(file.path, set()).add(f"{unit.marker.kernel_name}#{unit.index}")
    with ExitStack() as stack:
        named = [
            NamedArchive(stack.enter_context(file.content.view()), file.archive, frozenset(wanted[file.path]))
            for _, file in sorted(files.items())
        ]
        faults = find_unit_faults(named, (unit.marker.kernel_name for unit in library.units))
    path_of = {file.archive.name: file.path for file in files.values()}
    renumbered = {
        (path_of[fault.archive], _index(key)): _index(owner) for fault in faults for key, owner in fault.owners.items()
    }
    return IndexCheck(name=name or path, faults=faults, renumbered=renumbered)


def _index(key: str) -> int:
    index = split_key(key)[1]
    assert index is not None, "keys of units have an index"
    return index
