"""What a process loses when one of its files takes a library from another place.

That is what the copy there lacks, and what other files found by the copy before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from rocwheel.linking.tree_disk import place_of
from rocwheel.repair.comparing.comparison import Comparison, Loss, ProcessPair, scope_places

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from rocwheel.audit.subject import Process

    Asked: TypeAlias = tuple[str, str]

__all__ = ["dropped_losses", "replaced_losses"]


def replaced_losses(comparison: Comparison, pair: ProcessPair) -> Iterator[Loss]:
    """Yield what an object of a process lacks that takes the place of another one at hand, which lacked nothing.

    Packages that take the place of what may be on a machine are taken to find what they need there.
    """
    old, new = pair.old.loader, pair.new.loader
    known = {held.library.identity for held in old.objects}
    added = {index for index, held in enumerate(new.objects) if held.library.identity not in known}
    whole = {search.name for search in old.searches if search.found is not None}
    for search in new.missing if added else ():
        chain = [*new.ancestors(search.requester)]
        first = [asked.name for asked in new.searches if asked.found in chain and asked.found in added]
        if search.requester in added and whole.intersection(first):
            near = [place_of(new.objects[index].library) for index in chain]
            yield Loss(near[0], search.name, (), _blamed(comparison, pair, near))


def dropped_losses(comparison: Comparison, pair: ProcessPair) -> Iterator[Loss]:
    """Yield what objects of both processes find before, and not after: also what only others had loaded for them."""
    objects = pair.old.loader.objects
    kept = {held.library.identity for held in pair.new.loader.objects}
    found = _taken(pair.new)
    for search in pair.old.loader.searches:
        library = objects[search.requester].library
        is_lost = search.found is not None and (library.identity, search.name) not in found
        if is_lost and library.identity in kept:
            yield Loss(place_of(library), search.name, (), _blamed(comparison, pair, ()))


def _blamed(comparison: Comparison, pair: ProcessPair, near: Collection[str]) -> tuple[str, ...]:
    """Return the edited files by whose run paths a process takes a library from another place than before.

    Those at the places ``near`` come before all others, which are left out then. If no such file is edited, every
    edited file of the process is to blame: what it loses, it loses by these.
    """
    was, now = _taken(pair.old), _taken(pair.new)
    changed = {identity for identity, name in was | now if was.get((identity, name)) != now.get((identity, name))}
    places = [
        place
        for process in (pair.old, pair.new)
        for index, held in enumerate(process.loader.objects)
        if held.library.identity in changed
        for place in scope_places(process, index)
    ]
    everything = (place_of(held.library) for process in (pair.old, pair.new) for held in process.loader.objects)
    return (
        comparison.edited_at(place for place in places if place in near)
        or comparison.edited_at(places)
        or comparison.edited_at(everything)
    )


def _taken(process: Process) -> dict[Asked, str]:
    """Return from where the objects of a process take what they look for, by the object's identity and the name."""
    objects = process.loader.objects
    return {
        (objects[search.requester].library.identity, search.name): objects[search.found].library.identity
        for search in process.loader.searches
        if search.found is not None
    }
