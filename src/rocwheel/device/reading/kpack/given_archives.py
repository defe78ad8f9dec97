"""The kpack archives in given wheels: those of a split library in one wheel are in others, its device wheels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.code_objects.target_id import TargetId, parse_target_id
from rocwheel.binary.kind import is_kpack
from rocwheel.binary.kpack.archive import read_archive
from rocwheel.binary.kpack.split_library import read_split_library

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.distributions.binaries import Binary
    from rocwheel.foundation.errors import InputError
    from rocwheel.foundation.files.file_view import Data

__all__ = ["GivenArchives"]


class GivenArchives:
    """Which targets the archives among ``found``, as far as they are in wheels, have of each unit of a library.

    Raises `InputError` as `read_archive` does.
    """

    def __init__(self, found: Iterable[Binary | InputError]) -> None:
        self._targets: dict[tuple[str, int | None], list[TargetId]] = {}
        self._libraries: set[str] = set()
        for binary in found:
            if isinstance(binary, Exception) or binary.member is None or not binary.place.endswith(".kpack"):
                continue
            with binary.view() as data:
                if is_kpack(data):
                    self._add(data, binary.name)

    def units_of(self, data: Data, name: str) -> Sequence[Sequence[TargetId]] | None:
        """Return the targets of each unit of the split library ``data``; none when no archive is one of its own."""
        library = read_split_library(data, name=name)
        if library is None or not any(unit.marker.kernel_name in self._libraries for unit in library.units):
            return None
        return [self._targets.get((unit.marker.kernel_name, unit.index), []) for unit in library.units]

    def _add(self, data: Data, name: str) -> None:
        for entry in read_archive(data, name=name).entries:
            self._libraries.add(entry.binary)
            target = parse_target_id(entry.target, source=name)
            if target.processor.startswith("gfx"):
                self._targets.setdefault((entry.binary, entry.index), []).append(target)
