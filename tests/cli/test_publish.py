"""``rocwheel publish`` as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

NAME = "alpha-1.0-py3-none-any.whl"


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    make_wheel(tmp_path / "dist", "alpha", {"alpha.py": b""}, tag="py3-none-any", is_purelib=True)
    return tmp_path / "dist"


def test_it_says_what_was_uploaded_and_where_the_index_is(run: Run, dist: Path, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/store"
    first, second = run("publish", dist, url), run("publish", dist, url, "--quiet")
    assert first.status == 0
    assert first.stdout.endswith(f", 0 there already; 1 file listed anew\nindex: {url}/simple\n")
    assert first.stdout.startswith("1 file uploaded (")
    assert second == (0, "", "")


def test_a_dry_run_lists_every_file(run: Run, dist: Path, tmp_path: Path) -> None:
    finished = run("publish", dist, tmp_path / "store", "--dry-run")
    assert f"would be uploaded: {NAME}\nwould be listed: {NAME}\n" in finished.stdout
    assert not (tmp_path / "store").exists()


def test_json_says_what_was_done(run: Run, dist: Path, tmp_path: Path) -> None:
    (dist / "notes.txt").touch()
    finished = run("publish", dist, tmp_path / "store", "--json", "--quiet", "--output", "a/simple", "--files", "all")
    assert json.loads(finished.stdout) == {
        "schema": "rocwheel.publish/1",
        "store": f"{tmp_path}/store",
        "index": f"{tmp_path}/store/a/simple",
        "uploaded": [NAME],
        "present": [],
        "listed": [NAME],
        "pages": ["alpha"],
        "ignored": ["notes.txt"],
        "size": (dist / NAME).stat().st_size,
        "is_dry_run": False,
    }


def test_what_can_not_be_published_is_an_error(run: Run, dist: Path, tmp_path: Path) -> None:
    assert run("publish", dist, "gs://bucket").status == 2
    assert run("publish", tmp_path / "none", tmp_path / "store").status == 2
    assert run("publish", dist, tmp_path / "store", "--output", "../x").status == 2
    assert run("publish", dist, tmp_path / "store", "--upload-time", "soon").status == 2
    assert not (tmp_path / "store").exists()
