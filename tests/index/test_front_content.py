"""Tests of `rocwheel.index.front_content`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.index.extra_files import IndexContent
from rocwheel.index.front_content import find_cards, find_content, with_families
from rocwheel.index.front_page import (
    FamilyOffer,
    FrontPage,
    GpuCard,
    InstallLine,
    ListedFamily,
    ListedFile,
    ListedProject,
    NamedPackage,
    YankedPackage,
)
from rocwheel.index.pages import group_by_project
from tests.index.entries import GPUS, make_entry, neutral_set

if TYPE_CHECKING:
    from rocwheel.index.entry import IndexEntry


def lines(*entries: object) -> dict[str, list[str]]:
    cards = find_cards(group_by_project(entries), GPUS)  # type: ignore[arg-type]
    return {card.gpu.target: [line.requirement for line in card.lines] for card in cards}


def test_a_gpu_gets_the_extra_named_for_it_with_its_packages() -> None:
    card = next(card for card in find_cards(neutral_set(), GPUS) if card.gpu.target == "gfx1100")
    assert card.lines == (InstallLine("rocm[libraries,device-gfx1100]", 43210, ("device-all", "devel")),)
    assert card.packages == (
        NamedPackage("rocm-sdk-device-gfx1100", 40000),
        NamedPackage("rocm-sdk-device-gfx11-generic", 600000),
    )


def test_a_gpu_without_a_package_of_its_own_gets_the_generic_package() -> None:
    card = next(card for card in find_cards(neutral_set(), GPUS) if card.gpu.target == "gfx1103")
    assert card.lines == (InstallLine("rocm[libraries,device-gfx1103]", 603210, ("device-all", "devel")),)


def test_a_gpu_without_packages_has_no_card() -> None:
    assert [card.gpu.target for card in find_cards(neutral_set(), GPUS)] == ["gfx1100", "gfx1103"]


def test_extras_can_be_named_for_families() -> None:
    family = {"libraries-gfx110x-all": (("rocm-sdk-libraries-gfx110x-all", ""),), "devel": (("rocm-sdk-devel", ""),)}
    found = lines(
        make_entry("rocm", requires=family), make_entry("rocm-sdk-libraries-gfx110x-all", targets=("gfx1100",))
    )
    assert found == {"gfx1100": ["rocm[libraries-gfx110x-all]"]}


def test_libraries_for_all_gpus_are_installed_with_the_extra_that_requires_them() -> None:
    extras = {"libraries": (("rocm-sdk-libraries", ""),), "devel": (("rocm-sdk-devel", ""),)}
    libraries = make_entry("rocm-sdk-libraries", targets=("gfx906:xnack-", "gfx1100"))
    assert lines(make_entry("rocm", requires=extras), libraries) == {
        "gfx906": ["rocm[libraries]"],
        "gfx1100": ["rocm[libraries]"],
    }


def test_a_split_framework_has_its_own_line() -> None:
    torch = make_entry("torch", requires={"": (), "device-gfx1100": (("torch-device-gfx1100", ""),)})
    found = lines(torch, make_entry("torch-device-gfx1100", targets=("gfx1100",)))
    assert found == {"gfx1100": ["torch[device-gfx1100]"]}


def fat(target: str) -> IndexEntry:
    """Return a package that is named for a GPU, and has code for all."""
    return make_entry(f"rocm-sdk-libraries-{target}", targets=("gfx906", "gfx1100"))


def test_code_in_packages_named_for_other_gpus_is_ignored() -> None:
    selector = make_entry("rocm", requires={"libraries-gfx906": (("rocm-sdk-libraries-gfx906", ""),)})
    [card] = [
        card for card in find_cards(group_by_project([selector, fat("gfx906"), fat("gfx1100")]), GPUS)
        if card.gpu.target == "gfx906"
    ]  # fmt: skip
    assert [line.requirement for line in card.lines] == ["rocm[libraries-gfx906]"]
    assert [one.project for one in card.packages] == ["rocm-sdk-libraries-gfx906"]


def test_code_in_a_package_named_for_another_gpu_counts_if_no_other_package_has_it() -> None:
    [_, card] = find_cards(group_by_project([fat("gfx906")]), GPUS)
    assert [line.requirement for line in card.lines] == ["rocm-sdk-libraries-gfx906"]
    assert [one.project for one in card.packages] == ["rocm-sdk-libraries-gfx906"]


def test_a_package_that_no_extra_requires_is_installed_by_its_own_name() -> None:
    assert lines(make_entry("bitsandbytes", targets=("gfx1100",))) == {"gfx1100": ["bitsandbytes"]}


def test_names_that_installers_reject_are_not_in_any_line() -> None:
    assert lines(make_entry("b\u00e4r", targets=("gfx1100",), requires={"x-gfx1100": ()})) == {"gfx1100": []}


def test_circular_requirements_do_not_cause_an_endless_loop() -> None:
    a = make_entry("a", size=1, targets=("gfx906",), requires={"": (("b", ""),)})
    b = make_entry("b", size=2, requires={"": (("a", ""), ("elsewhere", "x"))})
    [card] = find_cards(group_by_project([a, b]), GPUS)
    assert card.lines == (InstallLine("a", 3),)


def withdrawn(*names: str) -> dict[str, YankedPackage]:
    return {name: YankedPackage(name, "7.0.0", f"bad {name}") for name in names}


def test_no_line_requires_a_yanked_package() -> None:
    cards = {card.gpu.target: card for card in find_cards(neutral_set(), GPUS, withdrawn("rocm-sdk-device-gfx1100"))}
    assert cards["gfx1100"].lines == ()
    assert cards["gfx1100"].yanked == (
        YankedPackage("rocm-sdk-device-gfx1100", "7.0.0", "bad rocm-sdk-device-gfx1100"),
    )
    assert cards["gfx1100"].packages == (NamedPackage("rocm-sdk-device-gfx11-generic", 600000),)
    assert cards["gfx1103"].lines == (InstallLine("rocm[libraries,device-gfx1103]", 603210, ("devel",)),)
    assert cards["gfx1103"].yanked == ()


def test_a_yanked_indirect_requirement_is_listed() -> None:
    cards = find_cards(neutral_set(), GPUS, withdrawn("rocm-sdk-core"))
    assert [(card.lines, [one.project for one in card.yanked]) for card in cards] == [((), ["rocm-sdk-core"])] * 2


def test_a_gpu_whose_packages_are_all_yanked_keeps_its_card() -> None:
    entries = {"a": [make_entry("a", targets=("gfx906",))]}
    [card] = find_cards(entries, GPUS, withdrawn("a"))
    assert (card.lines, card.packages, card.yanked) == ((), (), (YankedPackage("a", "7.0.0", "bad a"),))


def test_extras_that_require_yanked_packages_are_not_suggested() -> None:
    [card, _] = find_cards(neutral_set(), GPUS, withdrawn("rocm-sdk-devel"))
    assert card.lines == (InstallLine("rocm[libraries,device-gfx1100]", 43210, ("device-all",)),)


def systems(*entries: IndexEntry) -> dict[str, tuple[str, ...]]:
    return {card.gpu.target: card.systems for card in find_cards(group_by_project(entries), GPUS)}


def wheel(target: str, tag: str) -> IndexEntry:
    return make_entry(f"rocm-sdk-device-{target}", filename=f"d_{target}-7.0.0-py3-none-{tag}.whl", targets=(target,))


def test_an_index_for_two_systems_lists_the_systems_of_each_gpu() -> None:
    both = [wheel("gfx1100", "manylinux_2_28_x86_64"), wheel("gfx1100", "win_amd64")]
    assert systems(wheel("gfx906", "manylinux_2_28_x86_64"), *both, wheel("gfx1103", "win_amd64")) == {
        "gfx906": ("Linux",),
        "gfx1100": ("Linux", "Windows"),
        "gfx1103": ("Windows",),
    }


def test_further_extras_are_limited_to_the_systems_of_the_gpu() -> None:
    linux, windows = "manylinux_2_28_x86_64", "win_amd64"

    def package(name: str, *tags: str) -> list[IndexEntry]:
        return [make_entry(name, filename=f"{name}-7.0.0-py3-none-{tag}.whl") for tag in tags]

    gpus = {f"device-{gpu}": ((f"rocm-sdk-device-{gpu}", ""),) for gpu in ("gfx906", "gfx1100", "gfx1103")}
    more = {"devel": (("devel", ""),), "profiler": (("profiler", ""),), "tools": (("tools", ""),)}
    both = [wheel("gfx1100", linux), wheel("gfx1100", windows)]
    entries = [
        make_entry("rocm", requires={**gpus, **more}),
        *package("devel", linux, windows),
        *package("profiler", linux),
        make_entry("tools"),
        *(wheel("gfx906", linux), *both, wheel("gfx1103", windows)),
    ]
    assert {card.gpu.target: card.lines[0].more for card in find_cards(group_by_project(entries), GPUS)} == {
        "gfx906": ("devel", "profiler", "tools"),
        "gfx1100": ("devel", "profiler (Linux)", "tools"),
        "gfx1103": ("devel", "tools"),
    }


def test_an_index_for_one_system_does_not_list_it() -> None:
    assert systems(wheel("gfx906", "manylinux_2_28_x86_64"), wheel("gfx1100", "musllinux_1_2_x86_64")) == {
        "gfx906": (),
        "gfx1100": (),
    }


def test_libraries_for_two_systems_can_support_different_gpus() -> None:
    def libraries(tag: str, *targets: str) -> IndexEntry:
        return make_entry("rocm-sdk-libraries", filename=f"l-7.0.0-py3-none-{tag}.whl", targets=targets)

    assert systems(libraries("manylinux_2_28_x86_64", "gfx906"), libraries("win_amd64", "gfx1100")) == {
        "gfx906": ("Linux",),
        "gfx1100": ("Windows",),
    }
    assert systems(libraries("manylinux_2_28_x86_64", "gfx906"), libraries("win_amd64")) == {"gfx906": ("Linux",)}


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


def test_a_gpu_links_to_the_family_with_its_own_packages() -> None:
    page = page_of(content(gfx90X=[selector("gfx90x")], gfx11=[selector("gfx11")]))
    assert offers(page) == {
        "gfx906": {"gfx90X": ["rocm[libraries]"]},
        "gfx1100": {"gfx11": ["rocm[libraries]"]},
        "gfx1103": {"gfx11": ["rocm[libraries]"]},
    }
    assert page.families == (ListedFamily("gfx11", 4), ListedFamily("gfx90X", 4)) or page.families == (
        ListedFamily("gfx90X", 4), ListedFamily("gfx11", 4),
    )  # fmt: skip


def test_a_family_does_not_offer_packages_that_only_another_family_requires() -> None:
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


def test_shared_packages_link_to_no_family() -> None:
    page = page_of(content(tools=[make_entry("tools")]))
    assert offers(page) == {"gfx906": {}, "gfx1100": {}, "gfx1103": {}}
    assert page.families == (ListedFamily("tools", 4),)


def test_a_gpu_served_only_by_a_family_is_offered_and_not_listed_as_absent() -> None:
    other = IndexContent(group_by_project([make_entry("jax", targets=("gfx906",))]), {}, {}, "jax")
    page = page_of(IndexContent({}, {}, {}, families={"jax": other}))
    assert offers(page) == {"gfx906": {"jax": ["jax"]}}
    assert [gpu.target for gpu in page.absent] == ["gfx1100", "gfx1103"]


def test_several_families_can_serve_a_gpu() -> None:
    page = page_of(content(old=[selector("gfx90x")], new=[selector("gfx90x")]))
    assert offers(page)["gfx906"] == {"old": ["rocm[libraries]"], "new": ["rocm[libraries]"]}


def test_a_yanked_package_of_a_family_is_listed_but_not_offered() -> None:
    own = selector("gfx90x")
    page = page_of(content({own.filename: "wrong extras"}, gfx90X=[own]))
    [card] = [card for card in page.cards if card.gpu.target == "gfx906"]
    [offer] = card.families
    assert offer.yanked == (YankedPackage("rocm", "7.0.0", "wrong extras"),)
    assert [line.requirement for line in offer.lines] == []


def test_a_page_without_families_is_unchanged() -> None:
    given = content()
    page = find_content(given.projects, {}, GPUS)
    assert with_families(page, given, GPUS) == page
    assert [type(card) for card in page.cards] == [GpuCard] * 3
    assert FamilyOffer("x", ()).yanked == ()


def versions(*entries: object, yanked: dict[str, str] | None = None) -> list[tuple[str, tuple[str, ...]]]:
    content = find_content(group_by_project(entries), yanked or {}, GPUS)  # type: ignore[arg-type]
    return [(one.version, one.others) for one in content.projects if isinstance(one, ListedProject)]


def test_the_newest_final_version_is_shown_and_other_versions_are_listed() -> None:
    entries = [make_entry("a", version) for version in ("7.0.0", "7.10.0", "7.2.0", "8.0.0rc1")]
    assert versions(*entries) == [("7.10.0", ("8.0.0rc1", "7.2.0", "7.0.0"))]


def test_a_release_candidate_is_shown_if_there_is_no_final_version() -> None:
    assert versions(make_entry("a", "7.0.0rc1"), make_entry("a", "7.0.0rc2")) == [("7.0.0rc2", ("7.0.0rc1",))]


def test_a_yanked_version_is_not_suggested() -> None:
    old, new = make_entry("a", "1.0"), make_entry("a", "2.0")
    assert versions(old, new, yanked={new.filename: "bad"}) == [("1.0", ("2.0",))]
    assert versions(new, yanked={new.filename: "bad"}) == [("2.0", ())]


def test_files_of_the_shown_version_and_yanked_files_are_listed() -> None:
    old, gone, new = make_entry("a", "1.0"), make_entry("a", "1.5"), make_entry("a", "2.0", summary="It is a")
    content = find_content(group_by_project([old, gone, new]), {gone.filename: "wrong code"}, GPUS)
    assert content.projects == (
        ListedProject(
            "a",
            "2.0",
            "It is a",
            (
                ListedFile("a-1.5-py3-none-any.whl", "1.5", 1000, ">=3.9", "wrong code", "2026-01-01"),
                ListedFile("a-2.0-py3-none-any.whl", "2.0", 1000, ">=3.9", uploaded="2026-01-01"),
            ),
            ("1.5", "1.0"),
        ),
    )


def test_all_files_are_counted() -> None:
    content = find_content({**neutral_set(), "a": [make_entry("a", "1.0"), make_entry("a", "2.0")]}, {}, GPUS)
    assert (content.file_count, content.total_size) == (8, 650210)


def test_known_gpus_without_packages_are_listed() -> None:
    assert [gpu.target for gpu in find_content(neutral_set(), {}, GPUS).absent] == ["gfx906"]


def test_a_project_whose_files_are_all_yanked_is_marked() -> None:
    old, new = make_entry("a", "1.0", targets=("gfx906",)), make_entry("a", "2.0", targets=("gfx906",))
    other = make_entry("b", "1.0", targets=("gfx906",))
    everything = {old.filename: "", new.filename: "bad code"}
    content = find_content(group_by_project([old, new, other]), everything, GPUS)
    assert [one.yanked for one in content.projects if isinstance(one, ListedProject)] == ["bad code", None]
    [card] = content.cards
    assert [line.requirement for line in card.lines] == ["b"]
    assert card.yanked == (YankedPackage("a", "2.0", "bad code"),)


def test_a_version_with_a_file_that_is_not_yanked_is_offered() -> None:
    entries = [make_entry("a", filename=f"a-7.0.0-{tag}-none-any.whl", targets=("gfx906",)) for tag in ("cp310", "py3")]
    content = find_content(group_by_project(entries), {entries[0].filename: "bad"}, GPUS)
    [card] = content.cards
    assert ([line.requirement for line in card.lines], card.yanked) == (["a"], ())
