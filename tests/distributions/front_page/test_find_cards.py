"""What to install for each GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.distributions.front_page.content import InstallLine, NamedPackage, YankedPackage
from rocwheel.distributions.front_page.find_cards import find_cards
from rocwheel.distributions.index.pages.simple_pages import group_by_project
from tests.distributions.front_page.entries import GPUS, make_entry, neutral_set

if TYPE_CHECKING:
    from rocwheel.distributions.index.entries.entry import IndexEntry


def lines(*entries: object) -> dict[str, list[str]]:
    cards = find_cards(group_by_project(entries), GPUS)  # type: ignore[arg-type]
    return {card.gpu.target: [line.requirement for line in card.lines] for card in cards}


def test_a_gpu_gets_the_extra_that_is_named_for_it_and_what_that_brings() -> None:
    card = next(card for card in find_cards(neutral_set(), GPUS) if card.gpu.target == "gfx1100")
    assert card.lines == (InstallLine("rocm[libraries,device-gfx1100]", 43210, ("device-all", "devel")),)
    assert card.packages == (
        NamedPackage("rocm-sdk-device-gfx1100", 40000),
        NamedPackage("rocm-sdk-device-gfx11-generic", 600000),
    )


def test_a_gpu_without_a_package_of_its_own_gets_the_generic_one() -> None:
    card = next(card for card in find_cards(neutral_set(), GPUS) if card.gpu.target == "gfx1103")
    assert card.lines == (InstallLine("rocm[libraries,device-gfx1103]", 603210, ("device-all", "devel")),)


def test_a_gpu_that_nothing_is_for_has_no_card() -> None:
    assert [card.gpu.target for card in find_cards(neutral_set(), GPUS)] == ["gfx1100", "gfx1103"]


def test_extras_are_named_for_families_too() -> None:
    family = {"libraries-gfx110x-all": (("rocm-sdk-libraries-gfx110x-all", ""),), "devel": (("rocm-sdk-devel", ""),)}
    found = lines(
        make_entry("rocm", requires=family), make_entry("rocm-sdk-libraries-gfx110x-all", targets=("gfx1100",))
    )
    assert found == {"gfx1100": ["rocm[libraries-gfx110x-all]"]}


def test_libraries_for_all_gpus_are_asked_for_by_the_extra_that_brings_them() -> None:
    extras = {"libraries": (("rocm-sdk-libraries", ""),), "devel": (("rocm-sdk-devel", ""),)}
    libraries = make_entry("rocm-sdk-libraries", targets=("gfx906:xnack-", "gfx1100"))
    assert lines(make_entry("rocm", requires=extras), libraries) == {
        "gfx906": ["rocm[libraries]"],
        "gfx1100": ["rocm[libraries]"],
    }


def test_a_framework_that_was_split_has_its_own_line() -> None:
    torch = make_entry("torch", requires={"": (), "device-gfx1100": (("torch-device-gfx1100", ""),)})
    found = lines(torch, make_entry("torch-device-gfx1100", targets=("gfx1100",)))
    assert found == {"gfx1100": ["torch[device-gfx1100]"]}


def fat(target: str) -> IndexEntry:
    """Return a package that is named for a GPU, and has code for all."""
    return make_entry(f"rocm-sdk-libraries-{target}", targets=("gfx906", "gfx1100"))


def test_code_in_packages_that_are_named_for_other_gpus_is_passed_over() -> None:
    selector = make_entry("rocm", requires={"libraries-gfx906": (("rocm-sdk-libraries-gfx906", ""),)})
    [card] = [
        card for card in find_cards(group_by_project([selector, fat("gfx906"), fat("gfx1100")]), GPUS)
        if card.gpu.target == "gfx906"
    ]  # fmt: skip
    assert [line.requirement for line in card.lines] == ["rocm[libraries-gfx906]"]
    assert [one.project for one in card.packages] == ["rocm-sdk-libraries-gfx906"]


def test_code_that_nothing_else_has_counts_whatever_gpu_its_package_is_named_for() -> None:
    [_, card] = find_cards(group_by_project([fat("gfx906")]), GPUS)
    assert [line.requirement for line in card.lines] == ["rocm-sdk-libraries-gfx906"]
    assert [one.project for one in card.packages] == ["rocm-sdk-libraries-gfx906"]


def test_what_nothing_else_brings_is_asked_for_by_itself() -> None:
    assert lines(make_entry("bitsandbytes", targets=("gfx1100",))) == {"gfx1100": ["bitsandbytes"]}


def test_names_that_installers_do_not_take_are_in_no_line() -> None:
    assert lines(make_entry("b\u00e4r", targets=("gfx1100",), requires={"x-gfx1100": ()})) == {"gfx1100": []}


def test_requirements_that_go_round_come_to_an_end() -> None:
    a = make_entry("a", size=1, targets=("gfx906",), requires={"": (("b", ""),)})
    b = make_entry("b", size=2, requires={"": (("a", ""), ("elsewhere", "x"))})
    [card] = find_cards(group_by_project([a, b]), GPUS)
    assert card.lines == (InstallLine("a", 3),)


def withdrawn(*names: str) -> dict[str, YankedPackage]:
    return {name: YankedPackage(name, "7.0.0", f"bad {name}") for name in names}


def test_no_line_needs_what_installers_refuse() -> None:
    cards = {card.gpu.target: card for card in find_cards(neutral_set(), GPUS, withdrawn("rocm-sdk-device-gfx1100"))}
    assert cards["gfx1100"].lines == ()
    assert cards["gfx1100"].yanked == (
        YankedPackage("rocm-sdk-device-gfx1100", "7.0.0", "bad rocm-sdk-device-gfx1100"),
    )
    assert cards["gfx1100"].packages == (NamedPackage("rocm-sdk-device-gfx11-generic", 600000),)
    assert cards["gfx1103"].lines == (InstallLine("rocm[libraries,device-gfx1103]", 603210, ("devel",)),)
    assert cards["gfx1103"].yanked == ()


def test_what_is_needed_on_the_way_is_named_if_it_is_yanked() -> None:
    cards = find_cards(neutral_set(), GPUS, withdrawn("rocm-sdk-core"))
    assert [(card.lines, [one.project for one in card.yanked]) for card in cards] == [((), ["rocm-sdk-core"])] * 2


def test_a_gpu_all_of_whose_packages_are_yanked_keeps_its_card() -> None:
    entries = {"a": [make_entry("a", targets=("gfx906",))]}
    [card] = find_cards(entries, GPUS, withdrawn("a"))
    assert (card.lines, card.packages, card.yanked) == ((), (), (YankedPackage("a", "7.0.0", "bad a"),))


def test_extras_that_bring_yanked_packages_are_not_proposed() -> None:
    [card, _] = find_cards(neutral_set(), GPUS, withdrawn("rocm-sdk-devel"))
    assert card.lines == (InstallLine("rocm[libraries,device-gfx1100]", 43210, ("device-all",)),)


def systems(*entries: IndexEntry) -> dict[str, tuple[str, ...]]:
    return {card.gpu.target: card.systems for card in find_cards(group_by_project(entries), GPUS)}


def wheel(target: str, tag: str) -> IndexEntry:
    return make_entry(f"rocm-sdk-device-{target}", filename=f"d_{target}-7.0.0-py3-none-{tag}.whl", targets=(target,))


def test_an_index_for_two_systems_says_for_which_of_them_the_packages_of_a_gpu_are() -> None:
    both = [wheel("gfx1100", "manylinux_2_28_x86_64"), wheel("gfx1100", "win_amd64")]
    assert systems(wheel("gfx906", "manylinux_2_28_x86_64"), *both, wheel("gfx1103", "win_amd64")) == {
        "gfx906": ("Linux",),
        "gfx1100": ("Linux", "Windows"),
        "gfx1103": ("Windows",),
    }


def test_further_extras_are_those_that_the_systems_of_a_gpu_have() -> None:
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


def test_an_index_for_one_system_does_not_name_it() -> None:
    assert systems(wheel("gfx906", "manylinux_2_28_x86_64"), wheel("gfx1100", "musllinux_1_2_x86_64")) == {
        "gfx906": (),
        "gfx1100": (),
    }


def test_libraries_of_two_systems_may_be_for_different_gpus() -> None:
    def libraries(tag: str, *targets: str) -> IndexEntry:
        return make_entry("rocm-sdk-libraries", filename=f"l-7.0.0-py3-none-{tag}.whl", targets=targets)

    assert systems(libraries("manylinux_2_28_x86_64", "gfx906"), libraries("win_amd64", "gfx1100")) == {
        "gfx906": ("Linux",),
        "gfx1100": ("Windows",),
    }
    assert systems(libraries("manylinux_2_28_x86_64", "gfx906"), libraries("win_amd64")) == {"gfx906": ("Linux",)}
