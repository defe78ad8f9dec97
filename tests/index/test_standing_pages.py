"""Pages that stand already are neither made again nor read."""

from __future__ import annotations

import fcntl
import os
import time
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.index.pages import make_project_page
from rocwheel.index.placing import FilePlacement
from rocwheel.index.write_index import IndexOptions, write_index

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rocwheel.index.entry import IndexEntry
    from rocwheel.index.pages import Page
    from tests.index.conftest import AddWheel


@pytest.fixture
def output(dist_dir: Path) -> Path:
    return dist_dir.parent / "simple"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the projects whose pages are made are added; runs happen an hour from now."""
    projects: list[str] = []
    clock = time.time_ns

    def noting(project: str, entries: list[IndexEntry], *arguments: object) -> Page:
        projects.append(project)
        return make_project_page(project, entries, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("rocwheel.index.write_index.make_project_page", noting)
    monkeypatch.setattr(time, "time_ns", lambda: clock() + 3600 * 10**9)
    return projects


@pytest.mark.parametrize("placement", list(FilePlacement), ids=lambda placement: placement.value)
def test_pages_of_a_project_are_rewritten_only_when_its_files_change(
    add_wheel: AddWheel, dist_dir: Path, output: Path, made: list[str], placement: FilePlacement
) -> None:
    for project in ("a", "b", "c"):
        add_wheel(project)
    write_index(dist_dir, output, options=IndexOptions(placement=placement))
    add_wheel("b", "2.0")
    add_wheel("d")
    add_wheel("c", "1.0", "Keywords: other")
    made.clear()
    write_index(dist_dir, output, options=IndexOptions(placement=placement))
    # Where the index has the files itself, the page is first made without the one that gets other bytes.
    before = [] if placement is FilePlacement.RELATIVE else ["c"]
    assert made == [*before, "b", "c", "d"]
    made.clear()
    report = write_index(dist_dir, output, options=IndexOptions(placement=placement))
    assert (made, [*report.projects]) == ([], ["a", "b", "c", "d"])


def _edit(page: Path) -> None:
    page.write_bytes(page.read_bytes().replace(b"sha256", b"sha255"))


def _edit_and_keep_the_date(page: Path) -> None:
    status = page.stat()
    _edit(page)
    os.utime(page, ns=(status.st_atime_ns, status.st_mtime_ns))


def _replace(page: Path) -> None:
    other = page.with_name("other")
    other.write_bytes(page.read_bytes().replace(b"1.0", b"2.0"))
    other.replace(page)


def _remove_with_its_folder(page: Path) -> None:
    for path in page.parent.iterdir():
        path.unlink()
    page.parent.rmdir()


@pytest.mark.parametrize("name", ["index.html", "index.json"])
@pytest.mark.parametrize(
    "spoil",
    [_edit, _edit_and_keep_the_date, _replace, lambda page: page.unlink(), _remove_with_its_folder],
    ids=["edited", "edited with its date", "replaced", "removed", "removed with its folder"],
)
def test_a_spoiled_page_is_restored(
    add_wheel: AddWheel, dist_dir: Path, output: Path, made: list[str], spoil: Callable[[Path], None], name: str
) -> None:
    add_wheel("a")
    add_wheel("b")
    write_index(dist_dir, output)
    page = output / "a" / name
    right = page.read_bytes()
    write_index(dist_dir, output)
    made.clear()
    spoil(page)
    write_index(dist_dir, output)
    assert (page.read_bytes(), made) == (right, ["a"])


def test_a_project_is_rewritten_only_once_after_a_file_was_removed(
    add_wheel: AddWheel, dist_dir: Path, output: Path, made: list[str]
) -> None:
    gone, _ = add_wheel("a"), add_wheel("a", "2.0")
    write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
    gone.unlink()
    for expected in (["a"], []):
        made.clear()
        write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
        assert made == expected


def test_an_unknown_hidden_file_causes_a_project_to_be_rewritten_only_once(
    add_wheel: AddWheel, dist_dir: Path, output: Path, made: list[str]
) -> None:
    add_wheel("a")
    write_index(dist_dir, output)
    (output / "a" / ".htaccess").write_text("Options -Indexes\n")
    for expected in (["a"], []):
        made.clear()
        write_index(dist_dir, output)
        assert made == expected


def test_pages_link_to_the_files_where_the_latest_run_placed_them(
    add_wheel: AddWheel, dist_dir: Path, output: Path, made: list[str]
) -> None:
    wheel = add_wheel("a")
    write_index(dist_dir, output)
    write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
    assert f'href="{wheel.name}#' in (output / "a/index.html").read_text()
    assert made == ["a", "a"]


def test_a_project_folder_replaced_by_a_symlink_is_refused(
    add_wheel: AddWheel, dist_dir: Path, output: Path, made: list[str]
) -> None:
    add_wheel("a")
    write_index(dist_dir, output)
    (output / "a").rename(output.parent / "elsewhere")
    (output / "a").symlink_to("../elsewhere")
    with pytest.raises(InputError, match=r"simple/a: is a link to \.\./elsewhere"):
        write_index(dist_dir, output)
    assert made == ["a"]


def test_leftovers_of_a_concurrent_run_are_removed_once_it_is_killed(
    add_wheel: AddWheel, dist_dir: Path, output: Path, made: list[str]
) -> None:
    add_wheel("a")
    (output / "a").mkdir(parents=True)
    left = output / "a" / ".index.html.abcdefgh.rocwheel"
    descriptor = os.open(left, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    write_index(dist_dir, output)
    assert left.exists()
    os.close(descriptor)
    write_index(dist_dir, output)
    assert not left.exists()
