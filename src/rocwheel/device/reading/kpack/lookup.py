"""What runtimes find in kpack archives for the code of a split library.

AMD's runtime asks for a GPU's own target, then for the generic one that covers it, each with all features of the GPU,
with fewer, and at last without any. The placeholder of a path stands for these alone: an archive that is named for
another target is never opened. For each of them in turn, the runtime looks into the archives that list it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.targets.catalog.catalog import load_catalog

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.binary.kpack.archive import KpackArchive, KpackEntry
    from rocwheel.binary.kpack.markers import SplitUnit

__all__ = ["Found", "Lookup", "SearchedArchive"]


class SearchedArchive(NamedTuple):
    """An archive that a marker leads to: by which of its paths, and with which target in the placeholder, if any."""

    archive: KpackArchive
    path: int
    target: str


class Found(NamedTuple):
    """What a GPU gets: code for ``target``; or an archive that lists ``target`` and lacks the unit; or neither.

    A runtime that gets nothing passes the GPU over. At an archive that lacks the unit, it gives up on all GPUs.
    """

    target: TargetId | None = None
    lacking: KpackArchive | None = None
    stored: tuple[str, int] | None = None
    """The name of the archive with the code, and its ordinal there."""

    @property
    def code(self) -> TargetId | None:
        """The target of the code, if there is any."""
        return self.target if self.lacking is None else None


class Lookup(NamedTuple):
    """A wrapper, and the archives that there are of the ones that its marker names."""

    wrapper: SplitUnit
    archives: tuple[SearchedArchive, ...]

    @property
    def key(self) -> str:
        """What is looked up in archives."""
        return f"{self.wrapper.marker.kernel_name}#{self.wrapper.index}"

    @property
    def targets(self) -> tuple[TargetId, ...]:
        """The targets that some archive has code for."""
        return _read_targets(
            (target, searched)
            for searched in self.archives
            for target in searched.archive.targets
            if self._entry(searched.archive, target) is not None
        )

    @property
    def listed(self) -> tuple[TargetId, ...]:
        """The targets that the archives list or are named for, whether they have code for this wrapper or not."""
        return _read_targets((t, s) for s in self.archives for t in (*s.archive.targets, s.target) if t)

    def find(self, gpu: TargetId, *, stops: bool = False) -> Found:
        """Return what a runtime finds for ``gpu``, all of whose features are set as far as they matter.

        With ``stops``, it ends at the first archive that lists a target.
        """
        asked = tuple(_asked(gpu))
        opened = self._opened(asked)
        lacking = Found()
        for target in asked:
            for archive in opened:
                if str(target) not in archive.targets:
                    continue
                entry = self._entry(archive, str(target))
                if entry is not None:
                    return Found(target, stored=(archive.name, entry.ordinal))
                lacking = lacking if lacking.lacking else Found(target, archive)
                if stops:
                    return lacking
        return lacking

    def _opened(self, asked: Sequence[TargetId]) -> list[KpackArchive]:
        """Return the archives that a runtime opens, in its order: by their paths, then by the targets asked for."""
        order = {str(target): number for number, target in enumerate(asked)} | {"": 0}
        named = [searched for searched in self.archives if searched.target in order]
        named.sort(key=lambda searched: (searched.path, order[searched.target]))
        return [searched.archive for searched in named]

    def _entry(self, archive: KpackArchive, target: str) -> KpackEntry | None:
        return archive.find(self.wrapper.marker.kernel_name, self.wrapper.index, target)


def _asked(gpu: TargetId) -> Iterator[TargetId]:
    """Yield the targets that a runtime asks for on ``gpu``, in its order."""
    for name in (gpu.processor, *load_catalog().generics_of(gpu.processor)):
        settings = [(gpu.sramecc, gpu.xnack), (gpu.sramecc, None), (None, gpu.xnack), (None, None)]
        yield from dict.fromkeys(TargetId(name, sramecc, xnack) for sramecc, xnack in settings)


def _read_targets(spellings: Iterable[tuple[str, SearchedArchive]]) -> tuple[TargetId, ...]:
    """Return targets that archives spell, each once; raises `InputError` for what is none."""
    first = {spelling: searched.archive.name for spelling, searched in reversed(list(spellings))}
    targets = [parse_target_id(spelling, source=name) for spelling, name in reversed(first.items())]
    return tuple(target for target in targets if target.processor.startswith("gfx"))
