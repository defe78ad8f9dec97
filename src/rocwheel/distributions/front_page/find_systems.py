"""For which systems the packages of each GPU are, where an index has packages for several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.distributions.formats.wheel_file_name import is_wheel_file_name, wheel_platforms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rocwheel.distributions.front_page.content import GpuCard
    from rocwheel.distributions.index.entries.entry import IndexEntry

__all__ = ["with_systems"]

_SYSTEMS = {"glibc": "Linux", "musl": "Linux", "windows": "Windows", "macos": "macOS"}
"""Names by systems of platform tags, in the order to show."""


def with_systems(cards: Sequence[GpuCard], taken: Mapping[str, Sequence[IndexEntry]]) -> list[GpuCard]:
    """Return cards that say for which systems the packages are; unchanged ones if an index is for one system alone.

    ``taken`` has the files of each project that installers take.
    """
    if len(_systems(entry for entries in taken.values() for entry in entries)) < 2:
        return list(cards)
    return [msgspec.structs.replace(card, systems=_systems(_entries(card, taken))) for card in cards]


def _systems(entries: Iterable[IndexEntry]) -> tuple[str, ...]:
    """Return the systems that wheels are for by their tags; those that any system takes say nothing."""
    names = (entry.filename for entry in entries if is_wheel_file_name(entry.filename))
    found = {_SYSTEMS.get(tag.system) for name in names for tag in wheel_platforms(name)}
    return tuple(name for name in dict.fromkeys(_SYSTEMS.values()) if name in found)


def _entries(card: GpuCard, taken: Mapping[str, Sequence[IndexEntry]]) -> Iterator[IndexEntry]:
    """Yield the files with code for a GPU: of packages whose files all say nothing of GPUs, all of them."""
    words = {canonicalize_name(word) for word in (card.gpu.target, *card.gpu.others)}
    for package in card.packages:
        declared = [{target.partition(":")[0] for target in entry.about.targets} for entry in taken[package.project]]
        for entry, targets in zip(taken[package.project], declared, strict=True):
            if targets & words or not any(declared):
                yield entry
