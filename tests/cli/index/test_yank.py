"""``rocwheel index yank`` and ``rocwheel index unyank`` as a user runs them."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

NAME = "a-1.0-py3-none-any.whl"

run = partial(rocwheel, "index")


@pytest.fixture
def dist_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "dist"
    make_wheel(folder, "a", {}, tag="py3-none-any", is_purelib=True)
    make_wheel(folder / "gfx94X-dcgpu", "b", {}, tag="py3-none-any", is_purelib=True)
    assert run(folder, "--quiet").returncode == 0
    return folder


def test_a_file_is_yanked_with_a_reason_and_unyanked_in_all_indexes(dist_dir: Path, tmp_path: Path) -> None:
    yanked = run("yank", dist_dir / NAME, "--reason", 'eats "files"')
    assert yanked.returncode == 0
    assert yanked.stdout == (
        f'{tmp_path}/simple: {NAME}: yanked: eats "files"\n'
        f'{tmp_path}/simple/gfx94X-dcgpu: {NAME}: yanked: eats "files"\n'
    )
    for page in ("simple/a/index.html", "simple/gfx94X-dcgpu/a/index.html"):
        assert 'data-yanked="eats &quot;files&quot;"' in (tmp_path / page).read_text()
    unyanked = run("unyank", NAME, "--output", tmp_path / "simple", "--json", "--quiet")
    assert json.loads(unyanked.stdout)["yanked"] == {}
    assert "data-yanked" not in (tmp_path / "simple/a/index.html").read_text()


def test_a_file_of_a_family_is_yanked_in_the_index_that_lists_it(dist_dir: Path, tmp_path: Path) -> None:
    name = "b-1.0-py3-none-any.whl"
    yanked = run("yank", dist_dir / "gfx94X-dcgpu" / name)
    assert yanked.stdout == f"{tmp_path}/simple/gfx94X-dcgpu: {name}: yanked\n"


def test_a_folder_without_an_index_is_reported_with_status_2(tmp_path: Path) -> None:
    finished = run("yank", tmp_path / "other" / NAME)
    assert finished.returncode == 2
    assert finished.stderr == (
        f"error: {tmp_path}/simple-other: is not an index that rocwheel has written. "
        "Run rocwheel index first, or name the index with --output.\n"
    )


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ((f"http://127.0.0.1:1/dist/{NAME}",), f"http://127.0.0.1:1/dist/{NAME}"),
        ((NAME, "--output", "https://me:secret@host.invalid/simple"), "https://host.invalid/simple"),
    ],
    ids=["file", "output"],
)
@pytest.mark.parametrize("command", ["yank", "unyank"])
def test_an_index_on_a_web_server_is_said_to_be_only_read(command: str, words: tuple[str, ...], place: str) -> None:
    done = run(command, *words)
    message = f"{place}: can't be written to: web servers are only read. Give an s3:// or file:// URL to write to."
    assert (done.returncode, done.stderr) == (2, f"error: {message}\n")
