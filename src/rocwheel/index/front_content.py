"""Finds the content for the front page of an index in its entries: GPUs, packages, families, and systems.

The names of extras end with a GPU target or a family, as in ``device-gfx1100`` and ``libraries-gfx94x-dcgpu``. Package
names may also end like this, as in ``rocm-sdk-device-gfx1100``. If neither does, the packages' metadata lists the
targets.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import Version

from rocwheel.core.hashing import source_hash
from rocwheel.core.reading import read_regular
from rocwheel.index import front_page as pages
from rocwheel.index.extra_files import no_extras
from rocwheel.index.front_page import (
    FamilyOffer,
    FrontPage,
    Gpu,
    GpuCard,
    InstallLine,
    ListedFamily,
    ListedFile,
    ListedProject,
    NamedPackage,
    YankedPackage,
    checked_url,
    make_front_page,
    noted_url,
    read_rows,
)
from rocwheel.index.pages import FRONT_PAGE
from rocwheel.index.upload_times import render_time
from rocwheel.targets.catalog import families_of, load_catalog
from rocwheel.wheels.file_names import is_wheel_file_name, split_wheel_file_name
from rocwheel.wheels.requirements import follow_requirements
from rocwheel.wheels.tags import parse_platforms

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from rocwheel.index.entry import IndexEntry
    from rocwheel.index.extra_files import Extras, IndexContent
    from rocwheel.index.front_page import KeptProject


def gpu_names() -> tuple[Gpu, ...]:
    """Return all targets in the catalog, in order."""
    catalog = load_catalog()
    return tuple(
        Gpu(row.name, row.kind, row.products, (*catalog.generics_of(row.name), *families_of(row.name)[1:]))
        for row in catalog.targets
    )


_SYSTEMS = {"glibc": "Linux", "musl": "Linux", "windows": "Windows", "macos": "macOS"}
"""The names of systems in display order, keyed by platform tag."""


def with_systems(cards: Sequence[GpuCard], taken: Mapping[str, Sequence[IndexEntry]]) -> list[GpuCard]:
    """Return cards that list the systems of their packages.

    If the index is for only one system, the cards don't change.

    Additional extras that have no packages for these systems are removed. An extra for only some of the systems lists
    them. ``taken`` contains the files that installers choose for each project.
    """
    if not cards or len(_systems(entry for entries in taken.values() for entry in entries)) < 2:
        return list(cards)
    return [_with_systems(card, _systems(_entries(card, taken)), taken) for card in cards]


def _with_systems(card: GpuCard, systems: tuple[str, ...], taken: Mapping[str, Sequence[IndexEntry]]) -> GpuCard:
    if not systems:
        return card
    return msgspec.structs.replace(
        card, systems=systems, lines=tuple(_line_for(line, systems, taken) for line in card.lines)
    )


def _line_for(line: InstallLine, systems: Sequence[str], taken: Mapping[str, Sequence[IndexEntry]]) -> InstallLine:
    """Return a line with only the additional extras that have packages for ``systems``."""
    files = taken.get(line.requirement.partition("[")[0], ())
    requires = {extra: wanted for file in files for extra, wanted in file.about.requires.items()}
    marked = (_marked(extra, systems, [name for name, _ in requires.get(extra, ())], taken) for extra in line.more)
    return msgspec.structs.replace(line, more=tuple(extra for extra in marked if extra))


def _marked(
    extra: str, systems: Sequence[str], projects: Iterable[str], taken: Mapping[str, Sequence[IndexEntry]]
) -> str:
    """Return an extra with the systems of its projects.

    If the systems don't differ, no system is listed. The result is empty if the extra is not for any of these systems.
    """
    found = [_systems(taken.get(project, ())) for project in projects]
    if not all(found):  # some wheels are for any system
        return extra
    there = [name for name in systems if any(name in one for one in found)]
    return extra if len(there) == len(systems) or not found else f"{extra} ({', '.join(there)})" if there else ""


def _systems(entries: Iterable[IndexEntry]) -> tuple[str, ...]:
    """Return the systems in the platform tags of wheels. Wheels for any system are ignored."""
    names = (entry.filename for entry in entries if is_wheel_file_name(entry.filename))
    platforms = {split_wheel_file_name(name).platform for name in names}  # thousands of files share a few
    found = {_SYSTEMS.get(tag.system) for platform in platforms for tag in parse_platforms(platform)}
    return tuple(name for name in dict.fromkeys(_SYSTEMS.values()) if name in found)


def _entries(card: GpuCard, taken: Mapping[str, Sequence[IndexEntry]]) -> Iterator[IndexEntry]:
    """Yield the files with code for a GPU. If no file of a package lists GPUs, all its files are included."""
    words = {canonicalize_name(word) for word in (card.gpu.target, *card.gpu.others)}
    for package in card.packages:
        declared = [{target.partition(":")[0] for target in entry.about.targets} for entry in taken[package.project]]
        for entry, targets in zip(taken[package.project], declared, strict=True):
            if targets & words or not any(declared):
                yield entry


_NAME = re.compile("[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
"""Normalized names that installers accept. Other names may have letters from any alphabet."""


def find_cards(
    taken: Mapping[str, Sequence[IndexEntry]],
    gpus: Sequence[Gpu],
    withdrawn: Mapping[str, YankedPackage] | None = None,
) -> list[GpuCard]:
    """Return the cards for all GPUs that have packages.

    ``taken`` contains the files that installers choose for each project. ``withdrawn`` contains the projects whose
    files installers choose only if the exact version is requested. No line requires such a project.
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
    """A project that users can install."""

    name: str
    size: int
    words: frozenset[str]
    """The targets and families of the project, based on its name or its metadata."""
    named: frozenset[str]
    """The targets and families in the project's name."""
    requires: dict[str, tuple[tuple[str, str], ...]]
    """The required names and extras, keyed by the extra that requires them."""
    by_word: dict[str, tuple[str, ...]]
    """The extras for only one GPU target or family, keyed by target or family."""

    @classmethod
    def of(cls, name: str, entries: Sequence[IndexEntry], words: frozenset[str]) -> _Offer:
        """Return the project with these files, including its extras for the GPUs and families in ``words``."""
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
        """Return whether the project's name contains GPUs but none of these."""
        return bool(self.named) and self.named.isdisjoint(words)

    @property
    def plain_extras(self) -> list[str]:
        """The extras that are for all GPUs, except extras that are selected based on the machine."""
        of_gpus = {extra for extras in self.by_word.values() for extra in extras}
        decided = {extra[: -len(word) - 1] for word, extras in self.by_word.items() for extra in extras}
        return [extra for extra in self.requires if extra and extra not in of_gpus and extra not in decided]


def _is_for_any(name: str, entries: Sequence[IndexEntry]) -> bool:
    """Return whether no part of a project is for specific GPUs. In a large index, that is true for most projects."""
    about = entries[0].about
    requires = about.requires
    return len(entries) == 1 and not about.targets and len(requires) <= ("" in requires) and "-gfx" not in name


class _ByName(Mapping[str, _Offer]):
    """Projects, keyed by name.

    Projects for any GPU are created only on request, because there may be thousands of them.
    """

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
    """The names of projects, keyed by target and family."""
    with_extras: list[_Offer]
    parts: frozenset[str]
    """The names of all projects that other projects require."""
    withdrawn: Mapping[str, YankedPackage]
    """The projects that installers reject, keyed by name."""

    def reached(self, name: str, extras: Sequence[str]) -> frozenset[str]:
        """Return the names of all projects that a project with extras installs, including the project itself."""

        def brought_by(wanted: str, extra: str) -> Iterable[tuple[str, str]]:
            if not wanted:
                return [(name, ""), *((name, one) for one in extras)]
            return self.by_name[wanted].requires.get(extra, ()) if wanted in self.by_name else ()

        return follow_requirements("", brought_by)

    def are_taken(self, name: str, extra: str) -> bool:
        """Return whether installers accept every project that a project's extra installs."""
        return not self.withdrawn or self.withdrawn.keys().isdisjoint(self.reached(name, [extra]))


class _Wish(msgspec.Struct, frozen=True):
    """A project with the extras to request."""

    offer: _Offer
    extras: Sequence[str]
    names: frozenset[str]
    """The names of all projects that this request installs, including the project itself."""


def _endings(name: str) -> frozenset[str]:
    """Return each suffix of a name that comes after a dash."""
    return frozenset(name[place + 1 :] for place, letter in enumerate(name) if letter == "-")


def _make_card(gpu: Gpu, offers: _Offers) -> GpuCard:
    words = [canonicalize_name(word) for word in (gpu.target, *gpu.others)]
    packages = dict.fromkeys(name for word in words for name in offers.by_word.get(word, ()))
    # Find the projects to request to get all code for a GPU. ``words`` are the names of that GPU.
    asked = [(offer, _extras_for(offer, words, packages)) for offer in offers.with_extras]
    wishes = [_Wish(offer, extras, offers.reached(offer.name, extras)) for offer, extras in asked if extras]
    # A project that no line installs gets its own line, unless it is part of a project that has a line.
    reached = {name for wish in wishes for name in wish.names} | (offers.parts if wishes else set())
    alone = [offers.by_name[name] for name in packages if name not in reached and _NAME.fullmatch(name)]
    alone = [offer for offer in alone if not (wishes and offer.is_for_others(words))]
    wishes = [*wishes, *(_Wish(offer, [], offers.reached(offer.name, [])) for offer in alone)]
    own = {name: None for name in packages if not offers.by_name[name].is_for_others(words)}
    if any(not wish.names.isdisjoint(own) for wish in wishes):
        packages = own  # with these projects, packages for several GPUs are unnecessary
    missed = dict.fromkeys(name for wish in wishes for name in sorted(wish.names))
    return GpuCard(
        gpu,
        tuple(_line(wish, offers) for wish in wishes if offers.withdrawn.keys().isdisjoint(wish.names)),
        tuple(NamedPackage(one, offers.by_name[one].size) for one in packages if one not in offers.withdrawn),
        tuple(offers.withdrawn[name] for name in {**packages, **missed} if name in offers.withdrawn),
    )


def _extras_for(offer: _Offer, words: Sequence[str], packages: Collection[str]) -> list[str]:
    """Return the extras of a project for a GPU: extras with the GPU's name, or extras that install code for the GPU."""
    if offer.by_word:
        return list(next((offer.by_word[word] for word in words if word in offer.by_word), ()))
    return [extra for extra in offer.plain_extras if any(name in packages for name, _ in offer.requires[extra])]


def _line(wish: _Wish, offers: _Offers) -> InstallLine:
    """Return the line for a project with extras.

    Extras whose requirements are already included in other extras are also listed.
    """
    offer, extras = wish.offer, wish.extras
    plain = [extra for extra in offer.plain_extras if extra not in extras and _NAME.fullmatch(extra)]
    asked = [(extra, {name for name, _ in offer.requires[extra]}) for extra in plain]
    implied = [extra for extra, wanted in asked if extras and wanted and wanted <= wish.names]
    written = ",".join([*implied, *extras])
    size = sum(offers.by_name[name].size for name in wish.names if name in offers.by_name)
    more = (one for one in plain if one not in implied and offers.are_taken(offer.name, one))
    return InstallLine(f"{offer.name}[{written}]" if written else offer.name, size, tuple(more))


_DATE = len("2026-01-31")


def find_content(
    projects: Mapping[str, Sequence[IndexEntry]],
    yanked: Mapping[str, str],
    gpus: Sequence[Gpu],
    url: str = "",
    kept: Mapping[str, KeptProject] | None = None,
) -> FrontPage:
    """Return the content for the page of an index.

    ``projects`` contains the files of each project, oldest first. ``yanked`` contains the reasons for yanking files,
    keyed by name. ``gpus`` are the targets to choose from, in display order. ``url`` is the future address of the
    index, or an empty string if it is unknown. ``kept`` contains projects whose rows are copied from an earlier page.
    """
    kept = kept or {}
    taken = find_taken(projects, yanked)
    cards = find_cards(taken, gpus, find_withdrawn(taken, yanked))
    served = {card.gpu.target for card in cards}
    every = [entry for entries in projects.values() for entry in entries]
    return FrontPage(
        projects=tuple(
            kept.get(name) or _list_project(name, entries, taken[name], yanked) for name, entries in projects.items()
        ),
        cards=tuple(cards),
        absent=tuple(gpu for gpu in gpus if gpu.products and gpu.target not in served),
        file_count=len(every),
        total_size=sum(entry.size for entry in every),
        url=url,
    )


def find_taken(
    projects: Mapping[str, Sequence[IndexEntry]], yanked: Mapping[str, str]
) -> dict[str, Sequence[IndexEntry]]:
    """Return the files that installers choose for each project.

    If all files are yanked, return the newest version's files.
    """
    return {name: _taken(entries, yanked) for name, entries in projects.items()}


def find_withdrawn(taken: Mapping[str, Sequence[IndexEntry]], yanked: Mapping[str, str]) -> dict[str, YankedPackage]:
    """Return the projects whose files are all yanked, keyed by name. ``taken`` is the result of `find_taken`."""
    if not yanked:
        return {}
    return {
        name: YankedPackage(name, entries[0].version, next(filter(None, (yanked[one.filename] for one in entries)), ""))
        for name, entries in taken.items()
        if all(entry.filename in yanked for entry in entries)
    }


def _taken(entries: Sequence[IndexEntry], yanked: Mapping[str, str]) -> list[IndexEntry]:
    """Return the files of the version that installers choose, which is the newest final version if there is one.

    If all files are yanked, return the newest version's files.
    """
    if len(entries) == 1:
        return list(entries)
    usable = [entry for entry in entries if entry.filename not in yanked] or list(entries)
    versions = list(dict.fromkeys(entry.version for entry in reversed(usable)))
    version = next((version for version in versions if not Version(version).is_prerelease), versions[0])
    return [entry for entry in usable if entry.version == version]


def _list_project(
    name: str, entries: Sequence[IndexEntry], taken: Sequence[IndexEntry], yanked: Mapping[str, str]
) -> ListedProject:
    version = taken[0].version
    shown = [entry for entry in entries if entry.version == version or entry.filename in yanked]
    versions = dict.fromkeys(entry.version for entry in reversed(entries))
    return ListedProject(
        name=name,
        version=version,
        summary=next((entry.about.summary for entry in taken if entry.about.summary), ""),
        files=tuple(_list_file(entry, yanked) for entry in shown),
        others=tuple(other for other in versions if other != version),
        targets=tuple(dict.fromkeys(target for entry in taken for target in entry.about.targets)),
    )


def _list_file(entry: IndexEntry, yanked: Mapping[str, str]) -> ListedFile:
    reason = yanked.get(entry.filename)
    since = render_time(entry.upload_time)[:_DATE]
    return ListedFile(entry.filename, entry.version, entry.size, entry.requires_python or "", reason, since)


def with_families(page: FrontPage, content: IndexContent, gpus: Sequence[Gpu]) -> FrontPage:
    """Return the page of an index with the content of families. ``gpus`` are the targets to choose from.

    A GPU's card links to the index of a family if the family has packages for the GPU that this index doesn't contain.
    Packages that all families share are in all of their indexes, so they don't cause a link. A package is not offered
    for a family if only another family's packages require it.
    """
    found: defaultdict[str, list[FamilyOffer]] = defaultdict(list)
    owned = {name: _own_projects(family, content) for name, family in content.families.items()}
    asked = {name: _required(content.families[name], own) for name, own in owned.items()}
    for name, family in content.families.items():
        own = owned[name]
        foreign = frozenset[str]().union(*asked.values()) - asked[name] - own
        taken = find_taken(family.projects, family.yanked)
        for card in find_cards(taken, gpus, find_withdrawn(taken, family.yanked)) if own else ():
            if not own.isdisjoint(_named(card)):
                # The family's lines for a GPU, without projects that belong to other families.
                lines = tuple(line for line in card.lines if _project(line) not in foreign)
                found[card.gpu.target].append(
                    FamilyOffer(name, lines, tuple(one for one in card.yanked if one.project not in foreign))
                )
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


def _own_projects(family: IndexContent, content: IndexContent) -> frozenset[str]:
    """Return a family's projects with files that the index above doesn't contain."""
    shared = {entry.filename: entry.sha256 for entries in content.projects.values() for entry in entries}
    return frozenset(
        name
        for name, entries in family.projects.items()
        if any(shared.get(entry.filename) != entry.sha256 for entry in entries)
    )


def _required(family: IndexContent, own: Collection[str]) -> frozenset[str]:
    requires = (entry.about.requires for name in own for entry in family.projects[name])
    return frozenset(name for one in requires for asked in one.values() for name, _ in asked)


def _project(line: InstallLine) -> str:
    return line.requirement.partition("[")[0]


def _named(card: GpuCard) -> Collection[str]:
    """Return the projects that a card lists, except projects that its lines install only as requirements."""
    lines = {*map(_project, card.lines)}
    return lines | {one.project for one in card.packages} | {one.project for one in card.yanked}


def front_page(url: str = "") -> Extras:
    """Return the maker of the front page for an index that will be at ``url``, which is empty if it is unknown.

    Raises `InputError` for an address that installers reject, or that a shell would not treat as plain text.
    """
    return _FrontPageMaker(checked_url(url) if url else "")


class _FrontPageMaker(msgspec.Struct, frozen=True):
    """Makes the front page."""

    place: str
    """The address of the index of all families, which ends with a slash; empty if it is unknown."""
    is_own: bool = False
    """Whether ``place`` is the address of the index itself, even for a family."""

    @property
    def version(self) -> bytes:
        """The version of the code.

        Rows from earlier pages are reused only if the same version of the code generated them.
        """
        return source_hash(Path(pages.__file__)) + source_hash(Path(__file__))

    def __call__(self, content: IndexContent, /) -> dict[str, bytes]:
        is_below = bool(self.place and content.family) and not self.is_own
        own = f"{self.place}{quote(content.family, safe='')}/" if is_below else self.place
        kept = read_rows(content.made.get(FRONT_PAGE, b""), content.standing)
        gpus = gpu_names()
        page = find_content(content.projects, content.yanked, gpus, own, kept)
        page = msgspec.structs.replace(with_families(page, content, gpus), family=content.family)
        return {FRONT_PAGE: make_front_page(page)}


def kept_front_page(output: Path) -> Extras:
    """Return the maker that regenerates the front pages of an index and its family indexes, for the same address.

    If the index has no front page, the maker returns no files.
    """
    try:
        page = read_regular(output / FRONT_PAGE)
    except OSError:
        return no_extras
    return front_page(noted_url(page))


def next_front_page(page: bytes) -> Extras:
    """Return the maker for the next version of a page, for the same address. Empty bytes mean that there is no page."""
    return _FrontPageMaker(noted_url(page), is_own=True)
