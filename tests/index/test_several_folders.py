"""Several folders as one index."""

from __future__ import annotations

import json
import re
import shutil
import time
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.index.placing import FilePlacement
from rocwheel.index.write_index import IndexOptions, write_index
from rocwheel.index.yanked import Yanking

if TYPE_CHECKING:
    from pathlib import Path

    from tests.index.conftest import AddWheel


@pytest.fixture
def folders(add_wheel: AddWheel, dist_dir: Path) -> list[Path]:
    """Return two folders: with one project of their own each, one file that both have, and one project of both."""
    other = dist_dir.parent / "more" / "dist"
    other.mkdir(parents=True)
    for made in (add_wheel("b"), add_wheel("both", "2.0")):
        made.rename(other / made.name)
    add_wheel("a")
    add_wheel("both")
    shutil.copy2(add_wheel("shared"), other)
    return [dist_dir, other]


@pytest.fixture
def output(dist_dir: Path) -> Path:
    return dist_dir.parent / "simple"


def urls(output: Path) -> list[str]:
    pages = sorted(path for path in output.glob("*/index.json"))
    return [file["url"] for page in pages for file in json.loads(page.read_bytes())["files"]]


def test_one_index_lists_the_files_of_all_folders(folders: list[Path], output: Path) -> None:
    report = write_index(folders, output)
    counts = {project: len(names) for project, names in report.projects.items()}
    assert counts == {"a": 1, "b": 1, "both": 2, "shared": 1}
    assert urls(output) == [
        "../../dist/a-1.0-py3-none-any.whl",
        "../../more/dist/b-1.0-py3-none-any.whl",
        "../../dist/both-1.0-py3-none-any.whl",
        "../../more/dist/both-2.0-py3-none-any.whl",
        "../../dist/shared-1.0-py3-none-any.whl",
    ]
    for url in urls(output):
        assert (output / "project" / url).resolve().is_file()
        assert (output / "project" / f"{url}.metadata").resolve().is_file()


def test_copies_from_all_folders_are_in_the_index(folders: list[Path], output: Path) -> None:
    write_index(folders, output, options=IndexOptions(placement=FilePlacement.COPY))
    assert (output / "b/b-1.0-py3-none-any.whl").is_file()
    assert (output / "both/both-2.0-py3-none-any.whl.metadata").is_file()


@pytest.mark.parametrize("placement", list(FilePlacement), ids=lambda placement: placement.value)
def test_unchanged_files_and_pages_are_not_read_again(
    folders: list[Path], output: Path, placement: FilePlacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: clock() + 3600 * 10**9)
    write_index(folders, output, options=IndexOptions(placement=placement))
    monkeypatch.delattr("rocwheel.index.folder.read_entry")
    monkeypatch.delattr("rocwheel.index.write_index.make_project_page")
    write_index(folders, output, options=IndexOptions(placement=placement))


@pytest.mark.parametrize("placement", list(FilePlacement), ids=lambda placement: placement.value)
def test_links_to_folders_that_are_no_longer_given_are_removed(
    folders: list[Path], output: Path, placement: FilePlacement
) -> None:
    write_index(folders, output, options=IndexOptions(placement=placement))
    write_index(folders[::-1], output, options=IndexOptions(placement=placement))
    write_index(folders[:1], output, options=IndexOptions(placement=placement))
    assert not (output / "b").exists()
    assert [url for url in urls(output) if "more" in url or "2.0" in url] == []
    write_index(folders[1:], output, options=IndexOptions(placement=placement))
    assert not (output / "a").exists()


def test_different_files_with_the_same_name_are_refused(folders: list[Path], add_wheel: AddWheel, output: Path) -> None:
    wheel = add_wheel("shared", "1.0", "Keywords: other")
    with pytest.raises(ProblemsError) as caught:
        write_index(folders, output)
    remedy = "Remove one of the two files, or index each folder separately."
    assert [str(problem) for problem in caught.value.problems] == [
        f"{folders[1] / wheel.name}: differs from {wheel}; expected the same bytes. {remedy}"
    ]
    assert not output.exists()


def test_a_folder_given_twice_is_refused(folders: list[Path], output: Path) -> None:
    with pytest.raises(
        InputError, match=re.escape("the same folder is specified twice. Specify each folder only once.")
    ):
        write_index([folders[0], folders[1], folders[0].parent / "more/../dist"], output)
    assert not output.exists()


def test_a_file_in_any_folder_can_be_yanked(folders: list[Path], output: Path) -> None:
    write_index(folders, output)
    assert write_index(folders, output, options=IndexOptions(yanking=Yanking({"b-1.0-py3-none-any.whl": "bad"}))).yanked
    assert b'data-yanked="bad"' in (output / "b/index.html").read_bytes()
    with pytest.raises(InputError, match=re.escape(f"{output}/c.whl: is not in the index")):
        write_index(folders, output, options=IndexOptions(yanking=Yanking({"c.whl": "bad"})))
