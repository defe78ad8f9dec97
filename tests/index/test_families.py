"""Tests of `rocwheel.index.families`."""

from __future__ import annotations

import json
import re
import shutil
import time
from typing import TYPE_CHECKING, NoReturn

import pytest

from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.index.entry import read_entry
from rocwheel.index.extra_files import note_extras
from rocwheel.index.families import change_marks, write_indexes
from rocwheel.index.folder_notes import read_known, write_changed
from rocwheel.index.pages import GENERATOR, make_root_page
from rocwheel.index.placing import FilePlacement
from rocwheel.index.write_index import IndexOptions
from rocwheel.index.yanked import Yanking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from rocwheel.index.entry import ReadEntry
    from rocwheel.index.extra_files import IndexContent
    from rocwheel.index.pages import Page
    from tests.index.conftest import AddWheel


FAMILIES = ("gfx103X-dgpu", "gfx94X-dcgpu")
ROCM, CORE = "rocm-1.0-py3-none-any.whl", "core-1.0-py3-none-any.whl"


@pytest.fixture
def output(add_wheel: AddWheel, dist_dir: Path) -> Path:
    """Return where the index of a build per family goes: what is shared, and a ``rocm`` of each family."""
    add_wheel("core")
    for name in FAMILIES:
        (dist_dir / name).mkdir()
        add_wheel("rocm", "1.0", f"Keywords: {name}").rename(dist_dir / name / ROCM)
    return dist_dir.parent / "simple"


def links(index: Path, project: str) -> list[str]:
    return [file["url"] for file in json.loads((index / project / "index.json").read_bytes())["files"]]


def test_each_family_has_an_index_of_its_own_and_the_shared_files(dist_dir: Path, output: Path) -> None:
    report = write_indexes([dist_dir], output)
    assert report.projects == {"core": [CORE]}
    for name in FAMILIES:
        assert report.families[name].projects == {"core": [CORE], "rocm": [ROCM]}
        assert links(output / name, "core") == [f"../../../dist/{CORE}"]
        assert links(output / name, "rocm") == [f"../../../dist/{name}/{ROCM}"]
        assert (output / name / "rocm" / links(output / name, "rocm")[0]).resolve().is_file()


@pytest.mark.parametrize("placement", list(FilePlacement), ids=lambda placement: placement.value)
def test_every_file_is_read_once_for_all_indexes_and_runs(
    dist_dir: Path, output: Path, placement: FilePlacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    clock = time.time_ns

    def noting(path: Path, advance: Callable[[int], object]) -> ReadEntry:
        read.append(path)
        return read_entry(path, advance)

    monkeypatch.setattr("rocwheel.index.folder.read_entry", noting)
    monkeypatch.setattr(time, "time_ns", lambda: clock() + 3600 * 10**9)
    for _ in range(2):
        write_indexes([dist_dir], output, options=IndexOptions(placement=placement))
        assert sorted(read) == sorted(dist_dir.rglob("*.whl"))


def test_a_build_can_have_no_shared_files(dist_dir: Path, output: Path) -> None:
    (dist_dir / CORE).unlink()
    report = write_indexes([dist_dir], output)
    assert (report.projects, [*report.families]) == ({}, [*FAMILIES])
    assert report.families[FAMILIES[0]].projects == {"rocm": [ROCM]}


@pytest.mark.parametrize("placement", list(FilePlacement), ids=lambda placement: placement.value)
def test_the_index_of_a_removed_family_is_removed(dist_dir: Path, output: Path, placement: FilePlacement) -> None:
    write_indexes([dist_dir], output, options=IndexOptions(placement=placement))
    shutil.rmtree(dist_dir / FAMILIES[0])
    (output / FAMILIES[1] / "notes.txt").write_text("kept")
    write_indexes([dist_dir], output, options=IndexOptions(placement=placement))
    assert sorted(path.name for path in output.iterdir() if path.is_dir()) == ["core", FAMILIES[1]]
    shutil.rmtree(dist_dir / FAMILIES[1])
    write_indexes([dist_dir], output, options=IndexOptions(placement=placement))
    assert [path.name for path in (output / FAMILIES[1]).iterdir()] == ["notes.txt"]


def test_a_killed_removal_is_finished_by_the_next_run(
    dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_indexes([dist_dir], output)
    shutil.rmtree(dist_dir / FAMILIES[0])
    with monkeypatch.context() as patch:
        patch.setattr("rocwheel.index.families.remove_stale", _die)
        with pytest.raises(KeyboardInterrupt):
            write_indexes([dist_dir], output)
    assert not (output / FAMILIES[0] / "index.html").exists()
    write_indexes([dist_dir], output)
    assert not (output / FAMILIES[0]).exists()


def _die(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def test_a_folder_named_like_a_project_is_reported_and_the_others_are_indexed(
    add_wheel: AddWheel, dist_dir: Path, output: Path
) -> None:
    (dist_dir / "core").mkdir()
    add_wheel("other").rename(dist_dir / "core" / "other-1.0-py3-none-any.whl")
    problems: list[RocwheelError] = []
    report = write_indexes([dist_dir], output, unread=problems)
    remedy = "Rename the folder, or index it separately with a different --output."
    assert [str(problem) for problem in problems] == [
        f"{output}/core: is the page of a project, so it can't be the index of a folder. {remedy}"
    ]
    assert [*report.families] == [*FAMILIES]
    with pytest.raises(InputError, match="is the page of a project"):
        write_indexes([dist_dir], output)


def test_each_damaged_shared_or_family_file_is_reported_once(dist_dir: Path, output: Path) -> None:
    (dist_dir / "bad-1.0-py3-none-any.whl").write_bytes(b"")
    (dist_dir / FAMILIES[0] / "bad-2.0-py3-none-any.whl").write_bytes(b"")
    problems: list[RocwheelError] = []
    report = write_indexes([dist_dir], output, unread=problems)
    assert [str(problem).partition(": ")[0] for problem in problems] == [
        f"{dist_dir}/bad-1.0-py3-none-any.whl",
        f"{dist_dir}/{FAMILIES[0]}/bad-2.0-py3-none-any.whl",
    ]
    assert [*report.families] == [*FAMILIES]


def test_a_shared_file_is_yanked_in_all_indexes_and_a_family_file_only_in_its_own(dist_dir: Path, output: Path) -> None:
    write_indexes([dist_dir], output)
    report = change_marks(output, Yanking({CORE: "bad", ROCM: ""}))
    assert report.yanked == {CORE: "bad"}
    assert [family.yanked for family in report.families.values()] == [{CORE: "bad", ROCM: ""}] * 2
    report = change_marks(output / FAMILIES[0], Yanking(unyanked=(ROCM,)))
    assert report.yanked == {CORE: "bad"}
    assert write_indexes([dist_dir], output).families[FAMILIES[1]].yanked == {CORE: "bad", ROCM: ""}


def test_changing_marks_keeps_the_family_and_machines_of_an_index(dist_dir: Path, output: Path) -> None:
    def extras(content: IndexContent) -> dict[str, bytes]:
        return {"family.txt": content.family.encode()}

    options = IndexOptions(machine=("gfx1100",), extras=extras)
    write_indexes([dist_dir], output, options=options)
    index = output / FAMILIES[0]
    change_marks(index, Yanking({ROCM: ""}), keep=lambda _: extras)
    assert [read_known(one).machine for one in (output, index)] == [("gfx1100",)] * 2
    assert [(one / "family.txt").read_text() for one in (output, index)] == ["", FAMILIES[0]]


def test_a_file_that_no_index_lists_cannot_be_yanked(dist_dir: Path, output: Path) -> None:
    write_indexes([dist_dir], output)
    with pytest.raises(InputError, match=re.escape(f"{dist_dir}/no.whl: is not in the folder")):
        change_marks(output, Yanking({"no.whl": ""}))


def test_marks_cannot_be_changed_in_a_folder_without_an_index(tmp_path: Path) -> None:
    expected = (
        f"{tmp_path}: is not an index that rocwheel wrote. Run rocwheel index first, or specify the index with "
        "--output."
    )
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        change_marks(tmp_path, Yanking({"a.whl": ""}))


def test_an_index_written_among_the_distributions_has_no_family_indexes(dist_dir: Path, output: Path) -> None:
    report = write_indexes([dist_dir], dist_dir)
    assert (report.families, report.subfolders) == ({}, FAMILIES)


def front(content: IndexContent) -> dict[str, bytes]:
    """Return a page that names what an index lists, and the families below it with what these list."""
    below = {name: [*family.projects] for name, family in content.families.items()}
    return {"packages.html": f"{GENERATOR}{[*content.projects]} {below}".encode()}


OPTIONS = IndexOptions(extras=front)


@pytest.mark.parametrize("placement", list(FilePlacement), ids=lambda placement: placement.value)
def test_the_pages_of_the_main_index_list_the_families(dist_dir: Path, output: Path, placement: FilePlacement) -> None:
    write_indexes([dist_dir], output, options=IndexOptions(placement=placement, extras=front))
    both = "{'gfx103X-dgpu': ['core', 'rocm'], 'gfx94X-dcgpu': ['core', 'rocm']}"
    assert (output / "packages.html").read_text() == f"{GENERATOR}['core'] {both}"
    assert (output / "gfx94X-dcgpu" / "packages.html").read_text() == f"{GENERATOR}['core', 'rocm'] {{}}"
    assert re.findall('action="([^"]*)"', (output / "index.html").read_text()) == [
        "packages.html", "gfx103X-dgpu/packages.html", "gfx94X-dcgpu/packages.html",
    ]  # fmt: skip


def test_added_and_removed_families_are_updated_on_the_main_pages(
    add_wheel: AddWheel, dist_dir: Path, output: Path
) -> None:
    write_indexes([dist_dir], output, options=OPTIONS)
    shutil.rmtree(dist_dir / FAMILIES[0])
    write_indexes([dist_dir], output, options=OPTIONS)
    assert (output / "packages.html").read_text().endswith("{'gfx94X-dcgpu': ['core', 'rocm']}")
    assert "gfx103X" not in (output / "index.html").read_text()
    add_wheel("more").rename(dist_dir / FAMILIES[1] / "more-1.0-py3-none-any.whl")
    write_indexes([dist_dir], output, options=OPTIONS)
    assert (output / "packages.html").read_text().endswith("{'gfx94X-dcgpu': ['core', 'more', 'rocm']}")
    shutil.rmtree(dist_dir / FAMILIES[1])
    write_indexes([dist_dir], output, options=OPTIONS)
    assert (output / "packages.html").read_text().endswith("['core'] {}")
    assert "<form" in (output / "index.html").read_text()
    assert "gfx94X" not in (output / "index.html").read_text()


@pytest.mark.parametrize("placement", list(FilePlacement), ids=lambda placement: placement.value)
def test_a_run_with_families_and_nothing_new_rewrites_no_page(
    dist_dir: Path, output: Path, placement: FilePlacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: clock() + 3600 * 10**9)
    made: list[IndexContent] = []

    def counted(content: IndexContent) -> dict[str, bytes]:
        if content.projects:
            made.append(content)
        return front(content)

    for _ in range(2):
        write_indexes([dist_dir], output, options=IndexOptions(placement=placement, extras=counted))
    before = {path: path.stat().st_mtime_ns for path in output.rglob("*") if path.is_file()}
    made.clear()
    write_indexes([dist_dir], output, options=IndexOptions(placement=placement, extras=counted))
    assert made == []
    assert {path: path.stat().st_mtime_ns for path in output.rglob("*") if path.is_file()} == before


def test_no_page_links_to_a_family_before_its_index_exists(
    dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead: list[tuple[str, str]] = []

    def look(path: Path, data: bytes) -> bytes | None:
        before = write_changed(path, data)
        for name in ("index.html", "packages.html"):
            if (page := output / name).exists():
                families = [one for one in FAMILIES if one in page.read_text()]
                dead.extend((name, one) for one in families if not (output / one / "packages.html").exists())
        return before

    for module in ("placing", "extra_files"):
        monkeypatch.setattr(f"rocwheel.index.{module}.write_changed", look)
    write_indexes([dist_dir], output, options=OPTIONS)
    assert FAMILIES[0] in (output / "packages.html").read_text()
    shutil.rmtree(dist_dir / FAMILIES[0])
    write_indexes([dist_dir], output, options=OPTIONS)
    assert dead == []


def test_a_killed_run_with_families_is_finished_by_the_next_run(
    dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.move(dist_dir / FAMILIES[0], dist_dir.parent)
    write_indexes([dist_dir], output, options=OPTIONS)
    shutil.move(dist_dir.parent / FAMILIES[0], dist_dir)

    def die_above_others(projects: Iterable[str], *, has_front_page: bool, families: Iterable[str]) -> Page:
        return _die() if families else make_root_page(projects, has_front_page=has_front_page)

    with monkeypatch.context() as patch:
        patch.setattr("rocwheel.index.write_index.make_root_page", die_above_others)
        with pytest.raises(KeyboardInterrupt):
            write_indexes([dist_dir], output, options=OPTIONS)
    assert (output / FAMILIES[0] / "packages.html").exists()
    assert FAMILIES[0] not in (output / "packages.html").read_text()
    assert write_indexes([dist_dir], output, options=OPTIONS).edited == ()
    assert FAMILIES[0] in (output / "packages.html").read_text()


@pytest.mark.parametrize("name", ["packages.html", "index.html", "index.json"])
def test_a_folder_named_like_a_page_is_reported(add_wheel: AddWheel, dist_dir: Path, output: Path, name: str) -> None:
    (dist_dir / name).mkdir()
    add_wheel("other").rename(dist_dir / name / "other-1.0-py3-none-any.whl")
    problems: list[RocwheelError] = []
    report = write_indexes([dist_dir], output, unread=problems, options=OPTIONS)
    remedy = "Rename the folder, or index it separately with a different --output."
    assert [str(problem) for problem in problems] == [
        f"{output}/{name}: is a page of the index, so it can't be the index of a folder. {remedy}"
    ]
    assert [*report.families] == [*FAMILIES]
    assert (output / name).is_file()


def test_pages_of_a_killed_run_with_families_are_not_reported_as_edited(
    dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.move(dist_dir / FAMILIES[0], dist_dir.parent)
    write_indexes([dist_dir], output, options=OPTIONS)
    shutil.move(dist_dir.parent / FAMILIES[0], dist_dir)

    def die_above_others(maker: str, made: dict[str, bytes], families: dict[str, IndexContent]) -> object:
        return _die() if families else note_extras(maker, made, families)

    with monkeypatch.context() as patch:
        patch.setattr("rocwheel.index.write_index.note_extras", die_above_others)
        with pytest.raises(KeyboardInterrupt):
            write_indexes([dist_dir], output, options=OPTIONS)
    assert FAMILIES[0] in (output / "packages.html").read_text()
    shutil.rmtree(dist_dir / FAMILIES[0])
    assert write_indexes([dist_dir], output, options=OPTIONS).edited == ()
    assert FAMILIES[0] not in (output / "packages.html").read_text()
