"""``rocwheel artifacts list``, run as users run it."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from rocwheel.demo import SAMPLE_SDK
from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


run = partial(rocwheel, "artifacts")


def test_list_prints_a_table_with_totals(artifacts: Path) -> None:
    done = run("list", artifacts, "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split() for line in done.stdout.splitlines() if line.strip() and "─" not in line] == [
        ["artifact", "component", "target", "files", "symlinks", "bytes"],
        ["blas", "dev", "generic", "1", "1", "1"],
        ["blas", "lib", "generic", "1", "1", "1,234,567"],
        ["blas", "lib", "gfx90a:xnack+", "1", "1", "10"],
        ["3", "artifacts", "3", "3", "1,234,578"],
    ]


def test_list_prints_json(artifacts: Path) -> None:
    done = run("list", artifacts, "--json", "--target", "gfx90a", "--files")
    assert json.loads(done.stdout) == {
        "schema": "rocwheel.artifacts/1",
        "directory": str(artifacts),
        "artifacts": [
            {
                "artifact": "blas_lib_gfx90a:xnack+",
                "name": "blas",
                "component": "lib",
                "target": "gfx90a:xnack+",
                "files": 1,
                "symlinks": 1,
                "bytes": 10,
                "entries": [
                    {"path": "lib", "kind": "directory", "mode": "755"},
                    {"path": "lib/x", "kind": "file", "mode": "644", "bytes": 10},
                    {"path": "lib/y", "kind": "symlink", "mode": "777", "link": "x"},
                ],
            }
        ],
        "files": 1,
        "symlinks": 1,
        "bytes": 10,
    }


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--target", "gfx90"], "no artifact is for the target 'gfx90'; there are generic, gfx90a:xnack+"),
        (["--component", "bin"], "no artifact has the component 'bin'; there are dev, lib"),
        (
            ["--component", "dev", "--target", "gfx90a"],
            "no artifact of the component 'dev' is for the target 'gfx90a'",
        ),
    ],
    ids=["target", "component", "both"],
)
def test_list_tells_what_there_is_when_it_finds_nothing(artifacts: Path, options: list[str], told: str) -> None:
    done = run("list", artifacts, *options)
    assert done.returncode == 0
    assert done.stderr.endswith(f"warning: {told}\n")


def test_a_temporary_folder_that_is_not_there_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    done = run("list", SAMPLE_SDK, "--quiet")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: TMPDIR: names {tmp_path}/none, where no file can be made. Correct or unset it.\n"


def test_list_prints_what_the_artifacts_hold_on_whole_lines(artifacts: Path) -> None:
    long = "directory/" * 20 + "file"
    place = artifacts / "blas_dev_generic/math/stage" / long
    place.parent.mkdir(parents=True)
    place.write_bytes(b"")
    done = run("list", artifacts, "--files", "--component", "dev", "--quiet")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["blas_dev_generic", "file", "644", "0", long] in lines
    assert ["blas_dev_generic", "symlink", "777", "0", "lib/y", "->", "x"] in lines
