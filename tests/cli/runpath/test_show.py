"""``rocwheel runpath show`` as a user runs it."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ELF_FIXTURES as FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


pytestmark = pytest.mark.slow


@pytest.fixture
def run(run: Run) -> Run:
    """Return a function that runs ``rocwheel runpath``."""
    return partial(run, "runpath")


def test_show_lists_what_decides_the_search(run: Run) -> None:
    finished = run("show", FIXTURES / "program-pie", FIXTURES / "librpath.so", FIXTURES / "static")
    assert finished.status == 0
    rows = [line.split() for line in finished.stdout.splitlines() if str(FIXTURES) in line]
    assert [row[1:] for row in rows] == [
        ["executable", "-", "RUNPATH", "/opt/answer", "libanswer.so.1"],
        ["shared", "object", "libanswer.so.1", "RPATH", "/opt/rocm/lib", "-"],
        ["executable", "-", "-", "-", "-"],
    ]


def test_show_tells_machines_the_same(run: Run) -> None:
    path = FIXTURES / "program-pie"
    assert json.loads(run("show", "--json", path).stdout) == {
        "schema": "rocwheel.runpath.show/1",
        "files": [
            {
                "file": str(path),
                "kind": "executable",
                "soname": None,
                "tag": "runpath",
                "run_path": "/opt/answer",
                "needed": ["libanswer.so.1"],
            }
        ],
    }


def test_show_looks_into_wheels_and_folders(run: Run, tmp_path: Path) -> None:
    files = {"demo/librpath.so": FIXTURES / "librpath.so", "demo/gfx906.co": FIXTURES / "gfx906.co"}
    wheel = make_wheel(tmp_path / "dist", "demo", {**files, "demo/text.txt": b"text"})
    name = f"{wheel}!demo/librpath.so"
    for path in (wheel, wheel.parent):
        [file] = json.loads(run("show", "--json", path).stdout)["files"]
        assert (file["file"], file["run_path"]) == (name, "/opt/rocm/lib")


def test_show_refuses_a_wheel_without_elf_files(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/text.txt": b"text"})
    expected = f"error: {wheel}: no ELF file; expected ELF files, or wheels or folders of them\n"
    assert run("show", wheel) == (2, "", expected)
