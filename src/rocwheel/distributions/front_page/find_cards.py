"""What to install for each GPU: extras that are named for it, and packages that have code for it.

Extras end with a GPU target or a family, as ``device-gfx1100`` and ``libraries-gfx94x-dcgpu`` do. Packages either do so
too, such as ``rocm-sdk-device-gfx1100``, or list targets in their metadata.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.distributions.formats.requirements.requirements import follow_requirements
from rocwheel.distributions.front_page.content import GpuCard, InstallLine, NamedPackage, YankedPackage
from rocwheel.distributions.front_page.find_systems import with_systems

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from rocwheel.distributions.front_page.content import Gpu
    from rocwheel.distributions.index.entries.entry import IndexEntry

__all__ = ["find_cards"]

_NAME = re.compile("[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
"""Normalised names that installers take; others may hold letters of any alphabet."""


def find_cards(
    taken: Mapping[str, Sequence[IndexEntry]],
    gpus: Sequence[Gpu],
    withdrawn: Mapping[str, YankedPackage] | None = None,
) -> list[GpuCard]:
    """Return what there is for each GPU, without the GPUs that nothing is for.

    ``taken`` has the files of each project that installers take; ``withdrawn`` the projects of which they take none
    unless asked for its very version. No line needs such a project.
    """
    words = frozenset(canonicalize_name(word) for gpu in gpus for word in (gpu.target, *gpu.others))
    named = {name: _Offer.of(name, entries, words) for name, entries in taken.items() if not _is_for_any(name, entries)}
    by_word: defaultdict[str, list[str]] = defaultdict(list)
    for offer in named.values():
        for word in offer.words:
            by_word[word].append(offer.name)
    requires = (named[name].requires if name in named else one[0].about.requires for name, one in taken.items())
    found = _Offers(
        _ByName(named, taken),
        dict(by_word),
        [offer for offer in named.values() if offer.requires.keys() - {""} and _NAME.fullmatch(offer.name)],
        frozenset(name for one in requires for asked in one.values() for name, _ in asked),
        withdrawn or {},
    )
    cards = (_make_card(gpu, found) for gpu in gpus)
    return with_systems([card for card in cards if card.lines or card.packages or card.yanked], taken)


class _Offer(msgspec.Struct, frozen=True):
    """A project as something to install."""

    name: str
    size: int
    words: frozenset[str]
    """The targets and families that it is for, by its name or its metadata."""
    named: frozenset[str]
    """Those of them that its name has."""
    requires: dict[str, tuple[tuple[str, str], ...]]
    """Names and extras by extra."""
    by_word: dict[str, tuple[str, ...]]
    """The extras that are for a GPU target or family alone, by it."""

    @classmethod
    def of(cls, name: str, entries: Sequence[IndexEntry], words: frozenset[str]) -> _Offer:
        """Return what the files of a project offer for GPUs and families of these names."""
        declared = {target.partition(":")[0] for entry in entries for target in entry.about.targets}
        requires: dict[str, tuple[tuple[str, str], ...]] = {}
        for entry in entries:
            requires |= entry.about.requires
        by_word: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
        for extra in requires:
            for word in _endings(extra) & words:
                by_word[word] += (extra,)
        named = _endings(name) & words
        return cls(name, max(entry.size for entry in entries), named | declared & words, named, requires, dict(by_word))

    def is_for_others(self, words: Collection[str]) -> bool:
        """Return whether its name says that it is for GPUs, but for none of those with these names."""
        return bool(self.named) and self.named.isdisjoint(words)

    @property
    def plain_extras(self) -> list[str]:
        """The extras that are not for some GPUs alone, and neither left to the machine that installs them."""
        of_gpus = {extra for extras in self.by_word.values() for extra in extras}
        decided = {extra[: -len(word) - 1] for word, extras in self.by_word.items() for extra in extras}
        return [extra for extra in self.requires if extra and extra not in of_gpus and extra not in decided]


def _is_for_any(name: str, entries: Sequence[IndexEntry]) -> bool:
    """Return whether nothing in a project is for single GPUs, as in most of a large index."""
    about = entries[0].about
    requires = about.requires
    return len(entries) == 1 and not about.targets and len(requires) <= ("" in requires) and "-gfx" not in name


class _ByName(Mapping[str, _Offer]):
    """Projects by name; those that are for any GPU only when they are asked for, as there may be thousands."""

    def __init__(self, named: Mapping[str, _Offer], taken: Mapping[str, Sequence[IndexEntry]]) -> None:
        self._made = dict(named)
        self._taken = taken

    def __getitem__(self, name: str) -> _Offer:
        if name not in self._made:
            self._made[name] = _Offer.of(name, self._taken[name], frozenset())
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._taken

    def __iter__(self) -> Iterator[str]:
        return iter(self._taken)

    def __len__(self) -> int:
        return len(self._taken)


class _Offers(msgspec.Struct, frozen=True):
    """All projects."""

    by_name: _ByName
    by_word: dict[str, list[str]]
    """Names by the targets and families that they are for."""
    with_extras: list[_Offer]
    parts: frozenset[str]
    """Names of what any of them requires."""
    withdrawn: Mapping[str, YankedPackage]
    """What installers refuse, by name."""

    def reached(self, name: str, extras: Sequence[str]) -> frozenset[str]:
        """Return the names of what a project with extras brings, its own among them."""

        def brought_by(wanted: str, extra: str) -> Iterable[tuple[str, str]]:
            if not wanted:
                return [(name, ""), *((name, one) for one in extras)]
            return self.by_name[wanted].requires.get(extra, ()) if wanted in self.by_name else ()

        return follow_requirements("", brought_by)

    def are_taken(self, name: str, extra: str) -> bool:
        """Return whether installers take all that an extra of a project brings."""
        return not self.withdrawn or self.withdrawn.keys().isdisjoint(self.reached(name, [extra]))


class _Wish(msgspec.Struct, frozen=True):
    """A project with extras that is to be asked for."""

    offer: _Offer
    extras: Sequence[str]
    names: frozenset[str]
    """Of all that it brings, its own among them."""


def _endings(name: str) -> frozenset[str]:
    """Return what follows each dash."""
    return frozenset(name[place + 1 :] for place, letter in enumerate(name) if letter == "-")


def _make_card(gpu: Gpu, offers: _Offers) -> GpuCard:
    words = [canonicalize_name(word) for word in (gpu.target, *gpu.others)]
    packages = dict.fromkeys(name for word in words for name in offers.by_word.get(word, ()))
    wishes = _find_wishes(words, packages, offers)
    own = {name: None for name in packages if not offers.by_name[name].is_for_others(words)}
    if any(not wish.names.isdisjoint(own) for wish in wishes):
        packages = own  # code for this GPU that lies in packages for others, too, is of no use beside these
    missed = dict.fromkeys(name for wish in wishes for name in sorted(wish.names))
    return GpuCard(
        gpu,
        tuple(_line(wish, offers) for wish in wishes if offers.withdrawn.keys().isdisjoint(wish.names)),
        tuple(NamedPackage(one, offers.by_name[one].size) for one in packages if one not in offers.withdrawn),
        tuple(offers.withdrawn[name] for name in {**packages, **missed} if name in offers.withdrawn),
    )


def _find_wishes(words: Sequence[str], packages: Collection[str], offers: _Offers) -> list[_Wish]:
    """Return what is to be asked for to get all the code for a GPU, which has these names."""
    asked = [(offer, _extras_for(offer, words, packages)) for offer in offers.with_extras]
    wishes = [_Wish(offer, extras, offers.reached(offer.name, extras)) for offer, extras in asked if extras]
    # What no line brings is asked for by itself, unless it is a part of something that has a line.
    reached = {name for wish in wishes for name in wish.names} | (offers.parts if wishes else set())
    alone = [offers.by_name[name] for name in packages if name not in reached and _NAME.fullmatch(name)]
    alone = [offer for offer in alone if not (wishes and offer.is_for_others(words))]
    return [*wishes, *(_Wish(offer, [], offers.reached(offer.name, [])) for offer in alone)]


def _extras_for(offer: _Offer, words: Sequence[str], packages: Collection[str]) -> list[str]:
    """Return the extras of a project for a GPU: those named for it, else those that bring its code."""
    if offer.by_word:
        return list(next((offer.by_word[word] for word in words if word in offer.by_word), ()))
    return [extra for extra in offer.plain_extras if any(name in packages for name, _ in offer.requires[extra])]


def _line(wish: _Wish, offers: _Offers) -> InstallLine:
    """Return the line for a project with extras; those whose requirements these bring anyway are named, too."""
    offer, extras = wish.offer, wish.extras
    plain = [extra for extra in offer.plain_extras if extra not in extras and _NAME.fullmatch(extra)]
    asked = [(extra, {name for name, _ in offer.requires[extra]}) for extra in plain]
    implied = [extra for extra, wanted in asked if extras and wanted and wanted <= wish.names]
    written = ",".join([*implied, *extras])
    size = sum(offers.by_name[name].size for name in wish.names if name in offers.by_name)
    more = (one for one in plain if one not in implied and offers.are_taken(offer.name, one))
    return InstallLine(f"{offer.name}[{written}]" if written else offer.name, size, tuple(more))
