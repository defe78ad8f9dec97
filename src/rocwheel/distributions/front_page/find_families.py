"""What the front page of an index says of the indexes of families below it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.front_page.content import FamilyOffer, GpuCard, ListedFamily
from rocwheel.distributions.front_page.find_cards import find_cards
from rocwheel.distributions.front_page.find_content import find_taken, find_withdrawn

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rocwheel.distributions.front_page.content import FrontPage, Gpu, InstallLine
    from rocwheel.distributions.index.placing.extra_files import IndexContent

__all__ = ["with_families"]


def with_families(page: FrontPage, content: IndexContent, gpus: Sequence[Gpu]) -> FrontPage:
    """Return the page of an index with what it says of families; ``gpus`` are the targets to choose among.

    A GPU leads to the index of a family that has something for it which this index lacks. What all share stands in the
    indexes of all, and leads to none. It is not offered there where another family's own packages alone ask for it.
    """
    found = _find_offers(content, gpus)
    cards = {card.gpu.target: card for card in page.cards}
    joined = [
        msgspec.structs.replace(cards.get(gpu.target, GpuCard(gpu, (), ())), families=tuple(found.get(gpu.target, ())))
        for gpu in gpus
        if gpu.target in cards or gpu.target in found
    ]
    return msgspec.structs.replace(
        page,
        cards=tuple(joined),
        absent=tuple(gpu for gpu in page.absent if gpu.target not in found),
        families=tuple(ListedFamily(name, len(family.projects)) for name, family in content.families.items()),
    )


def _find_offers(content: IndexContent, gpus: Sequence[Gpu]) -> Mapping[str, Sequence[FamilyOffer]]:
    """Return what families offer, by GPU target."""
    found: defaultdict[str, list[FamilyOffer]] = defaultdict(list)
    owned = {name: _own_projects(family, content) for name, family in content.families.items()}
    asked = {name: _required(content.families[name], own) for name, own in owned.items()}
    for name, family in content.families.items():
        own = owned[name]
        foreign = frozenset[str]().union(*asked.values()) - asked[name] - own
        taken = find_taken(family.projects, family.yanked)
        for card in find_cards(taken, gpus, find_withdrawn(taken, family.yanked)) if own else ():
            if not own.isdisjoint(_named(card)):
                found[card.gpu.target].append(_offer(name, card, foreign))
    return found


def _own_projects(family: IndexContent, content: IndexContent) -> frozenset[str]:
    """Return the projects of which a family has files that the index above lacks."""
    shared = {entry.filename: entry.sha256 for entries in content.projects.values() for entry in entries}
    return frozenset(
        name
        for name, entries in family.projects.items()
        if any(shared.get(entry.filename) != entry.sha256 for entry in entries)
    )


def _required(family: IndexContent, own: Collection[str]) -> frozenset[str]:
    """Return the projects that a family's own ones ask for."""
    requires = (entry.about.requires for name in own for entry in family.projects[name])
    return frozenset(name for one in requires for asked in one.values() for name, _ in asked)


def _offer(family: str, card: GpuCard, foreign: Collection[str]) -> FamilyOffer:
    """Return what a family offers for a GPU, but for projects that belong to other families."""
    lines = tuple(line for line in card.lines if _project(line) not in foreign)
    return FamilyOffer(family, lines, tuple(one for one in card.yanked if one.project not in foreign))


def _project(line: InstallLine) -> str:
    return line.requirement.partition("[")[0]


def _named(card: GpuCard) -> Collection[str]:
    """Return the projects that a card is about, but for what its lines bring along."""
    lines = {*map(_project, card.lines)}
    return lines | {one.project for one in card.packages} | {one.project for one in card.yanked}
