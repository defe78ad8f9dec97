"""For which systems the packages of each GPU are, where an index has packages for several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.distributions.formats.wheel_file_name import is_wheel_file_name, wheel_platforms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rocwheel.distributions.front_page.content import GpuCard, InstallLine
    from rocwheel.distributions.index.entries.entry import IndexEntry

__all__ = ["with_systems"]

_SYSTEMS = {"glibc": "Linux", "musl": "Linux", "windows": "Windows", "macos": "macOS"}
"""Names by systems of platform tags, in the order to show."""


def with_systems(cards: Sequence[GpuCard], taken: Mapping[str, Sequence[IndexEntry]]) -> list[GpuCard]:
    """Return cards that say for which systems the packages are; unchanged ones if an index is for one system alone.

    Further extras that have packages for none of them are left out; one that is for some of them says so.
    ``taken`` has the files of each project that installers take.
    """
    if len(_systems(entry for entries in taken.values() for entry in entries)) < 2:
        return list(cards)
    return [_with_systems(card, _systems(_entries(card, taken)), taken) for card in cards]


def _with_systems(card: GpuCard, systems: tuple[str, ...], taken: Mapping[str, Sequence[IndexEntry]]) -> GpuCard:
    if not systems:
        return card
    return msgspec.structs.replace(
        card, systems=systems, lines=tuple(_line_for(line, systems, taken) for line in card.lines)
    )


def _line_for(line: InstallLine, systems: Sequence[str], taken: Mapping[str, Sequence[IndexEntry]]) -> InstallLine:
    """Return a line whose further extras are those that have something for ``systems``."""
    files = taken.get(line.requirement.partition("[")[0], ())
    requires = {extra: wanted for file in files for extra, wanted in file.about.requires.items()}
    marked = (_marked(extra, systems, [name for name, _ in requires.get(extra, ())], taken) for extra in line.more)
    return msgspec.structs.replace(line, more=tuple(extra for extra in marked if extra))


def _marked(
    extra: str, systems: Sequence[str], projects: Iterable[str], taken: Mapping[str, Sequence[IndexEntry]]
) -> str:
    """Return an extra, with the systems that its projects are for unless all of them are; empty where none is."""
    found = [_systems(taken.get(project, ())) for project in projects]
    if not all(found):  # what any system takes is among them
        return extra
    there = [name for name in systems if any(name in one for one in found)]
    return extra if len(there) == len(systems) or not found else f"{extra} ({', '.join(there)})" if there else ""


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
