"""Whether archives have each unit of a library under the index that its wrapper names.

AMD's tool of mid-2026 counts units in each archive, and passes over those that lack its target; wrappers count all. So
an archive without some unit has others under wrong indices: a GPU gets other kernels than it was asked for, or none.
Where an archive lacks a unit of its library, the names of the kernels say which unit each code object is, if some other
archive has all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects.errors import Place
from rocwheel.binary.code_objects.kernel_metadata import kernel_names
from rocwheel.binary.kpack.match_units import match_units
from rocwheel.binary.kpack.read_kernel import read_kernel
from rocwheel.device.splitting.joining.find_code import archives_of
from rocwheel.foundation.counting import count, first_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocwheel.binary.kpack.archive import KpackEntry
    from rocwheel.binary.kpack.split_library import SplitLibrary
    from rocwheel.device.splitting.joining.find_code import ArchiveFile

__all__ = ["IndexCheck", "check_indices"]


class IndexCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with the archives of a library; paths are those of archives."""

    path: str
    lacking: dict[str, tuple[int, ...]]
    """The indices that wrappers look for in an archive, in vain."""
    renumbered: dict[tuple[str, int], int]
    """By archive and index in it, the unit that a code object belongs to, where that is another."""
    doubtful: tuple[str, ...] = ()
    """The archives of `lacking` whose code objects can't be told apart, so that their indices may be wrong, too."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.lacking

    @property
    def can_be_mended(self) -> bool:
        """Whether it is known which unit each code object belongs to."""
        return not self.doubtful

    def texts(self) -> tuple[str, ...]:
        """Return what is wrong, a text for each archive."""
        return tuple(self._text(archive, indices) for archive, indices in self.lacking.items())

    def _text(self, archive: str, indices: tuple[int, ...]) -> str:
        units = count(len(indices), "unit") + f" ({first_of([str(index) for index in indices])})"
        text = f"{self.path}: {archive} lacks {units}: runtimes up to 7.14 give up on every GPU there"
        wrong = [f"{index} is {unit}" for (path, index), unit in self.renumbered.items() if path == archive]
        if wrong:
            return f"{text}; others are under wrong indices ({first_of(wrong)})"
        return (
            f"{text}; indices may be wrong, too: kernels don't tell units apart" if archive in self.doubtful else text
        )


def check_indices(path: str, library: SplitLibrary, archives: Sequence[ArchiveFile]) -> IndexCheck:
    """Check the archives that the markers of the library at ``path`` name; code is read only where units are missing.

    Raises `KpackError` and `DeviceCodeError` for damaged code.
    """
    wanted: dict[str, set[int]] = {}
    files: dict[str, ArchiveFile] = {}
    for unit in library.units:
        for file in archives_of(path, unit, archives):
            files[file.path] = file
            wanted.setdefault(file.path, set()).add(unit.index)
    names = {unit.marker.kernel_name for unit in library.units}
    indexed = {path: _indexed(file, names) for path, file in files.items()}
    lacking = {path: tuple(sorted(wanted[path] - indexed[path].keys())) for path in sorted(files)}
    lacking = {path: indices for path, indices in lacking.items() if indices}
    if not lacking:
        return IndexCheck(path=path, lacking={}, renumbered={})
    whole = [file for name, file in sorted(files.items()) if name not in lacking]
    reference = _kernels(whole[0], indexed[whole[0].path]) if whole else {}
    renumbered: dict[tuple[str, int], int] = {}
    doubtful = []
    for name in lacking:
        numbers = match_units(_kernels(files[name], indexed[name]), reference)
        if numbers is None:
            doubtful.append(name)
        else:
            renumbered |= {(name, index): unit for index, unit in numbers.items() if index != unit}
    return IndexCheck(path=path, lacking=lacking, renumbered=renumbered, doubtful=tuple(doubtful))


def _indexed(file: ArchiveFile, names: set[str]) -> dict[int, KpackEntry]:
    """Return a code object of each unit of the library in an archive, by its index there."""
    found: dict[int, KpackEntry] = {}
    for entry in file.archive.entries:
        if entry.binary in names and entry.index is not None:
            found.setdefault(entry.index, entry)
    return found


def _kernels(file: ArchiveFile, entries: Mapping[int, KpackEntry]) -> dict[int, frozenset[str]]:
    """Return the names of the kernels in each code object, by its index; none for what isn't one."""
    with file.content.view() as data:
        kernels = {
            index: kernel_names(read_kernel(data, file.archive, entry), place=Place(file.path, entry.offset))
            for index, entry in entries.items()
        }
    return {index: names for index, names in kernels.items() if names}
