"""What the front page of an index says of the indexes of families below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.front_page.content import FamilyOffer, FrontPage, GpuCard, ListedFamily, YankedPackage
from rocwheel.distributions.front_page.find_content import find_content
from rocwheel.distributions.front_page.find_families import with_families
from rocwheel.distributions.index.pages.simple_pages import group_by_project
from rocwheel.distributions.index.placing.extra_files import IndexContent
from tests.distributions.front_page.entries import GPUS, make_entry

if TYPE_CHECKING:
    from rocwheel.distributions.index.entries.entry import IndexEntry

CORE = make_entry("rocm-sdk-core")
LIBRARIES = {
    "gfx90x": make_entry("rocm-sdk-libraries-gfx90x-all", targets=("gfx906",)),
    "gfx11": make_entry("rocm-sdk-libraries-gfx11-generic", targets=("gfx11-generic",)),
}
SHARED = [CORE, *LIBRARIES.values()]


def selector(family: str) -> IndexEntry:
    """Return the selector of a family: of the name and version that those of all others have."""
    entry = make_entry("rocm", requires={"libraries": ((LIBRARIES[family].project, ""),)})
    return msgspec.structs.replace(entry, sha256=family.encode().hex().ljust(64, "0"))


def content(yanked: dict[str, str] | None = None, **families: list[IndexEntry]) -> IndexContent:
    below = {
        name: IndexContent(group_by_project([*SHARED, *own]), yanked or {}, {}, name) for name, own in families.items()
    }
    return IndexContent(group_by_project(SHARED), {}, {}, families=below)


def page_of(given: IndexContent) -> FrontPage:
    return with_families(find_content(given.projects, given.yanked, GPUS), given, GPUS)


def offers(page: FrontPage) -> dict[str, dict[str, list[str]]]:
    return {
        card.gpu.target: {one.family: [line.requirement for line in one.lines] for one in card.families}
        for card in page.cards
    }


def test_a_gpu_leads_to_the_family_that_has_something_of_its_own_for_it() -> None:
    page = page_of(content(gfx90X=[selector("gfx90x")], gfx11=[selector("gfx11")]))
    assert offers(page) == {
        "gfx906": {"gfx90X": ["rocm[libraries]"]},
        "gfx1100": {"gfx11": ["rocm[libraries]"]},
        "gfx1103": {"gfx11": ["rocm[libraries]"]},
    }
    assert page.families == (ListedFamily("gfx11", 4), ListedFamily("gfx90X", 4)) or page.families == (
        ListedFamily("gfx90X", 4), ListedFamily("gfx11", 4),
    )  # fmt: skip


def test_a_family_does_not_offer_what_the_packages_of_another_one_alone_ask_for() -> None:
    other = make_entry("rocm-sdk-libraries-gfx906", targets=("gfx906",))
    tools = make_entry("rocm-tools-gfx906", targets=("gfx906",))
    of_other = msgspec.structs.replace(
        make_entry("rocm", requires={"libraries": ((other.project, ""),)}), sha256="0" * 64
    )
    below = {"gfx90X": selector("gfx90x"), "gfx906": of_other}
    shared = [*SHARED, other, tools]
    families = {name: IndexContent(group_by_project([*shared, one]), {}, {}, name) for name, one in below.items()}
    page = page_of(IndexContent(group_by_project(shared), {}, {}, families=families))
    lines = {"rocm[libraries]", "rocm-tools-gfx906"}  # nobody asks for the second
    assert {family: {*lines} for family, lines in offers(page)["gfx906"].items()} == {"gfx90X": lines, "gfx906": lines}


def test_what_all_share_leads_to_no_family() -> None:
    page = page_of(content(tools=[make_entry("tools")]))
    assert offers(page) == {"gfx906": {}, "gfx1100": {}, "gfx1103": {}}
    assert page.families == (ListedFamily("tools", 4),)


def test_a_gpu_that_a_family_alone_serves_is_offered_and_not_absent() -> None:
    other = IndexContent(group_by_project([make_entry("jax", targets=("gfx906",))]), {}, {}, "jax")
    page = page_of(IndexContent({}, {}, {}, families={"jax": other}))
    assert offers(page) == {"gfx906": {"jax": ["jax"]}}
    assert [gpu.target for gpu in page.absent] == ["gfx1100", "gfx1103"]


def test_several_families_may_serve_a_gpu() -> None:
    page = page_of(content(old=[selector("gfx90x")], new=[selector("gfx90x")]))
    assert offers(page)["gfx906"] == {"old": ["rocm[libraries]"], "new": ["rocm[libraries]"]}


def test_what_a_family_has_yanked_is_said_and_not_offered() -> None:
    own = selector("gfx90x")
    page = page_of(content({own.filename: "wrong extras"}, gfx90X=[own]))
    [card] = [card for card in page.cards if card.gpu.target == "gfx906"]
    [offer] = card.families
    assert offer.yanked == (YankedPackage("rocm", "7.0.0", "wrong extras"),)
    assert [line.requirement for line in offer.lines] == []


def test_a_page_without_families_stays_as_it_is() -> None:
    given = content()
    page = find_content(given.projects, {}, GPUS)
    assert with_families(page, given, GPUS) == page
    assert [type(card) for card in page.cards] == [GpuCard] * 3
    assert FamilyOffer("x", ()).yanked == ()
