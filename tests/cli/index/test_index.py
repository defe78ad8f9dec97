"""``rocwheel index`` as a user runs it."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow


run = partial(rocwheel, "index")


@pytest.fixture
def dist_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "dist"
    make_wheel(folder, "a", {}, tag="py3-none-any", is_purelib=True)
    return folder


def test_it_lists_the_projects_and_how_to_install(dist_dir: Path, tmp_path: Path) -> None:
    finished = run(dist_dir)
    assert (finished.returncode, finished.stdout) == (
        0,
        f"a: 1 file\ninstall with: pip install --index-url file://{tmp_path}/simple PROJECT\n",
    )
    assert (tmp_path / "simple/a/index.html").is_file()


def test_folders_side_by_side_have_an_index_each(dist_dir: Path) -> None:
    folders = [dist_dir / name for name in ("gfx90X-dcgpu", "gfx94X-dcgpu")]
    wheel = dist_dir / "a-1.0-py3-none-any.whl"
    for folder in folders:
        folder.mkdir()
        (folder / wheel.name).write_bytes(wheel.read_bytes())
        assert f"--index-url file://{dist_dir}/simple-{folder.name} PROJECT\n" in run(folder).stdout
    assert sorted(path.name for path in dist_dir.glob("simple*")) == ["simple-gfx90X-dcgpu", "simple-gfx94X-dcgpu"]


def test_verbose_lists_the_files(dist_dir: Path) -> None:
    assert "  a-1.0-py3-none-any.whl\n" in run(dist_dir, "-v").stdout


def test_json_says_what_was_written(dist_dir: Path, tmp_path: Path) -> None:
    (dist_dir / "notes.txt").write_text("")
    finished = run(dist_dir, "--output", tmp_path / "pages", "--files", "copy", "--json", "--quiet")
    assert json.loads(finished.stdout) == {
        "schema": "rocwheel.index/1",
        "output": str(tmp_path / "pages"),
        "projects": {"a": ["a-1.0-py3-none-any.whl"]},
        "ignored": ["notes.txt"],
        "subfolders": [],
        "yanked": {},
        "future": [],
        "edited": [],
        "variants": {},
        "families": {},
    }
    assert finished.stderr == ""


def test_files_that_are_not_listed_are_reported(dist_dir: Path) -> None:
    (dist_dir / "notes.txt").write_text("")
    expected = f"not in the index, as it is not a wheel or .tar.gz sdist: {dist_dir}/notes.txt\n"
    assert expected in run(dist_dir).stderr
    assert run(dist_dir, "--quiet").stderr == ""


def test_bad_files_are_reported_with_status_2(dist_dir: Path, tmp_path: Path) -> None:
    (dist_dir / "b-1.0-py3-none-any.whl").write_bytes(b"")
    finished = run(dist_dir, "--quiet")
    assert finished.returncode == 2
    assert finished.stderr == (
        f"error: {dist_dir}/b-1.0-py3-none-any.whl: "
        "a damaged archive (File is not a zip file). Build or download it again.\n"
    )
    assert [path.name for path in (tmp_path / "simple").iterdir() if path.is_dir()] == ["a"]


def test_bad_files_of_several_folders_are_reported_under_the_names_of_all(dist_dir: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    for name in ("b", "c"):
        (more / f"{name}-1.0-py3-none-any.whl").write_bytes(b"")
    finished = run(dist_dir, more, "--output", tmp_path / "simple", "--quiet")
    damaged = "a damaged archive (File is not a zip file). Build or download it again."
    assert (finished.returncode, finished.stderr.splitlines()) == (
        2,
        [
            f"error: {dist_dir}, {more}: 2 problems",
            f"  {more}/b-1.0-py3-none-any.whl: {damaged}",
            f"  {more}/c-1.0-py3-none-any.whl: {damaged}",
        ],
    )


def test_a_name_that_no_folder_has_is_yanked_in_the_index_of_none(dist_dir: Path, tmp_path: Path) -> None:
    make_wheel(tmp_path / "more", "b", {}, tag="py3-none-any", is_purelib=True)
    finished = run(dist_dir, tmp_path / "more", "--output", tmp_path / "simple", "--yank", "c.whl", "--quiet")
    assert (finished.returncode, finished.stderr) == (
        2,
        (
            f"error: {tmp_path}/simple/c.whl: is not in the index, so it can't be yanked or unyanked. "
            "Give the name of a wheel or sdist in the index.\n"
        ),
    )


def test_an_output_that_is_no_folder_is_reported_with_status_2(dist_dir: Path) -> None:
    finished = run(dist_dir, "--output", "/etc/passwd")
    assert (finished.returncode, finished.stderr) == (
        2,
        "error: /etc/passwd: is not a folder. Name a folder for the index with --output.\n",
    )


def test_folders_with_distributions_are_named(dist_dir: Path) -> None:
    (dist_dir / "gfx94X-dcgpu" / "more").mkdir(parents=True)
    (dist_dir / "gfx94X-dcgpu" / "more" / "a-1.0-py3-none-any.whl").write_bytes(b"")
    (dist_dir / "empty").mkdir()
    finished = run(dist_dir)
    assert finished.returncode == 0
    assert finished.stderr.endswith(
        f"not in the index, as it is a folder: {dist_dir}/gfx94X-dcgpu. "
        "Index it by itself, as two folders can have different files of one name.\n"
    )
    assert run(dist_dir, "--quiet").stderr == ""


def test_a_file_is_yanked_and_unyanked(dist_dir: Path, tmp_path: Path) -> None:
    name = "a-1.0-py3-none-any.whl"
    yanked = run(dist_dir, "--yank", f"{name}=bad = worse")
    assert yanked.stdout.startswith("a: 1 file, 1 yanked\n")
    assert 'data-yanked="bad = worse"' in (tmp_path / "simple/a/index.html").read_text()
    assert json.loads(run(dist_dir, "--json").stdout)["yanked"] == {name: "bad = worse"}
    assert run(dist_dir, "--unyank", name).stdout.startswith("a: 1 file\n")


def test_help_has_an_example() -> None:
    assert "Example: rocwheel index packages/dist" in run("--help").stdout


def test_quiet_prints_nothing(dist_dir: Path) -> None:
    finished = run(dist_dir, "--quiet")
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")


def test_a_build_per_family_has_an_index_for_each(dist_dir: Path, tmp_path: Path) -> None:
    make_wheel(dist_dir / "gfx94X-dcgpu", "rocm", {}, tag="py3-none-any", is_purelib=True)
    finished = run(dist_dir)
    assert finished.returncode == 0
    assert finished.stdout == (
        f"a: 1 file\ninstall with: pip install --index-url file://{tmp_path}/simple PROJECT\n"
        f"for gfx94X-dcgpu, 2 projects: pip install --index-url file://{tmp_path}/simple/gfx94X-dcgpu PROJECT\n"
    )
    assert "not in the index" not in finished.stderr


def test_several_folders_are_one_index(dist_dir: Path, tmp_path: Path) -> None:
    make_wheel(tmp_path / "more", "b", {}, tag="py3-none-any", is_purelib=True)
    missing = run(dist_dir, tmp_path / "more")
    assert (missing.returncode, missing.stderr) == (
        2,
        "error: --output: is missing; expected the folder for the index of several folders\n",
    )
    finished = run(dist_dir, tmp_path / "more", "--output", tmp_path / "pages", "--upload-time", "2026-05-01")
    assert finished.stdout.startswith("a: 1 file\nb: 1 file\n")
    assert '"2026-05-01T00:00:00.000000Z"' in (tmp_path / "pages/b/index.json").read_text()


def test_a_page_that_somebody_edited_is_mended_and_named(dist_dir: Path, tmp_path: Path) -> None:
    run(dist_dir)
    page = tmp_path / "simple/a/index.html"
    right = page.read_text()
    page.write_text(right.replace("sha256", "sha255"))
    assert (
        f"{page}: was edited by somebody; it is again as the files are, and marks of yanked files in it are kept\n"
        in run(dist_dir).stderr
    )
    assert page.read_text() == right
    assert "edited" not in run(dist_dir).stderr


def test_a_file_of_the_future_is_named(dist_dir: Path, tmp_path: Path) -> None:
    os.utime(dist_dir / "a-1.0-py3-none-any.whl", (2**33, 2**33))
    assert (
        "dated in the future, so the index says that they were uploaded now: 1 file (a-1.0-py3-none-any.whl). "
        "Is the clock right, here and where they were made?\n" in run(dist_dir).stderr
    )


def test_what_is_passed_over_is_named_by_the_folder_that_has_it(run: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_wheel(tmp_path / name, f"alpha-{name}", {}, tag="py3-none-any")
    (tmp_path / "b" / "notes.txt").write_text("x")
    done = run("index", tmp_path / "a", tmp_path / "b", "--output", tmp_path / "simple")
    assert f"not in the index, as it is not a wheel or .tar.gz sdist: {tmp_path}/b/notes.txt" in done.stderr
