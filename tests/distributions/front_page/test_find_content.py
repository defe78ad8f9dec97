"""What the front page says of the packages."""

from __future__ import annotations

from rocwheel.distributions.front_page.content import ListedFile, ListedProject, YankedPackage
from rocwheel.distributions.front_page.find_content import find_content
from rocwheel.distributions.index.pages.simple_pages import group_by_project
from tests.distributions.front_page.entries import GPUS, make_entry, neutral_set


def versions(*entries: object, yanked: dict[str, str] | None = None) -> list[tuple[str, tuple[str, ...]]]:
    content = find_content(group_by_project(entries), yanked or {}, GPUS)  # type: ignore[arg-type]
    return [(one.version, one.others) for one in content.projects if isinstance(one, ListedProject)]


def test_the_newest_final_version_is_shown_and_others_named() -> None:
    entries = [make_entry("a", version) for version in ("7.0.0", "7.10.0", "7.2.0", "8.0.0rc1")]
    assert versions(*entries) == [("7.10.0", ("8.0.0rc1", "7.2.0", "7.0.0"))]


def test_a_candidate_is_shown_where_there_is_no_final_version() -> None:
    assert versions(make_entry("a", "7.0.0rc1"), make_entry("a", "7.0.0rc2")) == [("7.0.0rc2", ("7.0.0rc1",))]


def test_a_yanked_version_is_not_the_one_to_install() -> None:
    old, new = make_entry("a", "1.0"), make_entry("a", "2.0")
    assert versions(old, new, yanked={new.filename: "bad"}) == [("1.0", ("2.0",))]
    assert versions(new, yanked={new.filename: "bad"}) == [("2.0", ())]


def test_files_of_the_version_and_yanked_ones_are_listed() -> None:
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


def test_gpus_that_nothing_is_for_are_named_if_people_know_them() -> None:
    assert [gpu.target for gpu in find_content(neutral_set(), {}, GPUS).absent] == ["gfx906"]


def test_a_project_all_of_whose_files_are_yanked_is_said_to_be() -> None:
    old, new = make_entry("a", "1.0", targets=("gfx906",)), make_entry("a", "2.0", targets=("gfx906",))
    other = make_entry("b", "1.0", targets=("gfx906",))
    everything = {old.filename: "", new.filename: "bad code"}
    content = find_content(group_by_project([old, new, other]), everything, GPUS)
    assert [one.yanked for one in content.projects if isinstance(one, ListedProject)] == ["bad code", None]
    [card] = content.cards
    assert [line.requirement for line in card.lines] == ["b"]
    assert card.yanked == (YankedPackage("a", "2.0", "bad code"),)


def test_a_version_of_which_a_file_is_left_is_offered() -> None:
    entries = [make_entry("a", filename=f"a-7.0.0-{tag}-none-any.whl", targets=("gfx906",)) for tag in ("cp310", "py3")]
    content = find_content(group_by_project(entries), {entries[0].filename: "bad"}, GPUS)
    [card] = content.cards
    assert ([line.requirement for line in card.lines], card.yanked) == (["a"], ())
