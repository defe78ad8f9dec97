"""What runtimes find for a wrapper in the archives that its marker names, whatever their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rocwheel.binary.code_objects.target_id import TargetId, parse_target_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.binary.kpack.archive import KpackArchive
    from rocwheel.binary.kpack.split_library import SplitUnit

__all__ = ["LAST_STOPPING_RELEASE", "Lookup"]

LAST_STOPPING_RELEASE = "7.14"
"""The last ROCm whose runtime looks into no further archive than the first that lists a target.

Later ones have ROCm/rocm-systems#9953.
"""


class Lookup(NamedTuple):
    """A wrapper, and the archives that there are of the ones that its marker names, in the order of its paths."""

    wrapper: SplitUnit
    archives: tuple[KpackArchive, ...]

    @property
    def key(self) -> str:
        """What is looked up in archives."""
        return f"{self.wrapper.marker.kernel_name}#{self.wrapper.index}"

    @property
    def targets(self) -> tuple[TargetId, ...]:
        """The targets that there is code for, those with features first, as runtimes look for them."""
        return _read_targets(t for archive in self.archives for t in archive.targets if self._has(archive, t))

    @property
    def listed(self) -> tuple[TargetId, ...]:
        """The targets that the archives list, whether they have code for this wrapper or not."""
        return _read_targets(target for archive in self.archives for target in archive.targets)

    def stops_at(self, target: TargetId) -> KpackArchive | None:
        """Return the first archive that lists ``target``, if it has no code for it."""
        first = next((archive for archive in self.archives if str(target) in archive.targets), None)
        return None if first is None or self._has(first, str(target)) else first

    def _has(self, archive: KpackArchive, target: str) -> bool:
        return archive.find(self.wrapper.marker.kernel_name, self.wrapper.index, target) is not None


def _read_targets(spellings: Iterable[str]) -> tuple[TargetId, ...]:
    targets = [parse_target_id(spelling, source=f"gfx_arches {spelling!r}") for spelling in dict.fromkeys(spellings)]
    found = [target for target in targets if target.processor.startswith("gfx")]
    return tuple(sorted(found, key=lambda target: -len(target.features)))
