"""``rocwheel runpath show`` as a user runs it."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ELF_FIXTURES as FIXTURES

if TYPE_CHECKING:
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
