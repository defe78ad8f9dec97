"""The part of the front page where people choose their GPU and copy what to install for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from rich.filesize import decimal

from rocwheel.distributions.front_page.families_part import UNKNOWN_URL, family_page, index_address
from rocwheel.distributions.front_page.markup import Html, element, finding_field, joined, project_link

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.distributions.front_page.content import (
        FamilyOffer,
        FrontPage,
        Gpu,
        GpuCard,
        InstallLine,
        NamedPackage,
        YankedPackage,
    )

__all__ = ["gpus_part"]

_KINDS = {
    "data-centre": "Data centre",
    "desktop": "Desktop and workstation",
    "integrated": "Integrated",
    "": "Others",
}
_COMMANDS = (("pip", "pip install"), ("uv", "uv pip install"))
_PARTS = re.compile(r"(\d+)")


def gpus_part(content: FrontPage) -> Html:
    """Return the part; empty where nothing is for single GPUs."""
    if not content.cards:
        return Html("")
    return element(
        "section",
        element("h2", "What to install", id="gpus"),
        _note(content.url),
        element(
            "div",
            element("p", "Choose your GPU to see its lines alone:"),
            finding_field("find", "Find a GPU by its name or target", "RX 7900 XTX, MI300X, gfx1151"),
            *_choices([card.gpu for card in content.cards]),
            class_="choices",
        ),
        *(_card(card, content.url) for card in content.cards),
        _absent(content.absent),
        aria_labelledby="gpus",
    )


def _note(url: str) -> Html:
    if url:
        return Html("")
    text = " stands for the address of this page without its last part, packages.html."
    return element("p", element("code", UNKNOWN_URL), text, class_="soft without-script")


def _choices(gpus: Sequence[Gpu]) -> Iterator[Html]:
    """Yield a list of products for each kind of GPU; a target without known products stands for itself."""
    for kind, title in _KINDS.items():
        named = [(name, gpu) for gpu in gpus if gpu.kind == kind for name in gpu.products or (gpu.target,)]
        if named:
            rows = (_choice(name, gpu) for name, gpu in sorted(named, key=lambda row: _natural(row[0])))
            yield element("h3", title)
            yield element("ul", *rows, class_="products")


def _choice(name: str, gpu: Gpu) -> Html:
    link = element("a", name, href=f"#{quote(gpu.target)}")
    return element("li", link, *([" ", element("span", gpu.target, class_="soft")] if name != gpu.target else []))


def _natural(name: str) -> list[tuple[int, str]]:
    """Return the key that sorts numbers in names by their value."""
    return [(int(part), "") if part.isdecimal() else (0, part.lower()) for part in _PARTS.split(name)]


def _card(card: GpuCard, url: str) -> Html:
    gpu = card.gpu
    return element(
        "section",
        element("h3", gpu.target),
        element("p", ", ".join(gpu.products), class_="soft") if gpu.products else "",
        element("p", "For ", element("strong", " and ".join(card.systems)), ".") if card.systems else "",
        *(_family(offer, gpu, url) for offer in card.families),
        *(part for line in _own_lines(card) for part in _install(line, url)),
        _packages(card.packages),
        _yanked(card.yanked),
        element("p", element("a", "Show all GPUs", href="#gpus"), class_="back"),
        class_="gpu",
        id=quote(gpu.target),
        aria_label=gpu.target,
    )


def _family(offer: FamilyOffer, gpu: Gpu, url: str) -> Html:
    """Return what the index of a family has for a GPU, and the way there."""
    way = element("a", offer.family, href=f"{family_page(offer.family)}#{quote(gpu.target)}")
    lines = (part for line in offer.lines for part in _install(line, url, offer.family))
    return element("div", element("p", "From the index of ", way, ":"), *lines, _yanked(offer.yanked))


def _own_lines(card: GpuCard) -> Sequence[InstallLine]:
    """Return the lines for this index: none where that of a family, which lists all that this one does, has more."""
    return () if any(offer.lines for offer in card.families) else card.lines


def _install(line: InstallLine, url: str, family: str = "") -> Iterator[Html]:
    yield element("p", element("strong", line.requirement), f" downloads at most {decimal(line.size)} from here.")
    place = index_address(url, family)
    for _, command in _COMMANDS:
        text = joined(f'{command} "{line.requirement}" --index-url "', place, '"')
        yield element("div", element("pre", element("code", text)), class_="line")
    if line.more:
        yield element("p", "More in brackets, if you need it: ", element("code", ", ".join(line.more)), class_="soft")


def _yanked(packages: Sequence[YankedPackage]) -> Html | str:
    """Return which packages installers take only for a requirement of their very version, and why."""
    if not packages:
        return ""
    rows = (element("li", f"{one.project} {one.version}{': ' if one.reason else ''}{one.reason}") for one in packages)
    text = "Yanked, so that installers take it only when asked for that version:"
    return element("div", element("p", text), element("ul", *rows), class_="yanked")


def _packages(packages: Sequence[NamedPackage]) -> Html | str:
    if not packages:
        return ""
    return element("p", "Its code is in: ", *_listed(packages))


def _listed(packages: Iterable[NamedPackage]) -> Iterator[str]:
    for place, one in enumerate(packages):
        yield ", " if place else ""
        yield project_link(one.project)
        yield f" ({decimal(one.size)})"


def _absent(gpus: Sequence[Gpu]) -> Html | str:
    if not gpus:
        return ""
    named = sorted(((name, gpu) for gpu in gpus for name in gpu.products), key=lambda row: _natural(row[0]))
    rows = (element("li", name, " ", element("span", gpu.target, class_="soft")) for name, gpu in named)
    return element(
        "details",
        element("summary", "GPUs that nothing here is for"),
        element("ul", *rows, class_="products"),
        id="absent",
    )
