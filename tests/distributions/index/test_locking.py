"""Two runs on one index at the same time: the second waits, and what both have found is in it."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from rocwheel.distributions.index.families import write_indexes
from rocwheel.distributions.index.locking import locked_index

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.distributions.index.conftest import AddWheel

HALTED = """
import sys
from pathlib import Path
import rocwheel.distributions.index.write_index as module
from rocwheel.distributions.index.families import write_indexes

read_folders = module.read_folders

def halting(*arguments):
    print("listed", flush=True)
    sys.stdin.read()
    return read_folders(*arguments)

module.read_folders = halting
write_indexes([Path(sys.argv[1])], Path(sys.argv[2]))
"""


@pytest.fixture
def halted(add_wheel: AddWheel, dist_dir: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a run that has listed the folder, which has one wheel ``a``, and goes on when its input ends."""
    add_wheel("a")
    command = [sys.executable, "-c", HALTED, str(dist_dir), str(dist_dir.parent / "simple")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "listed\n"
        yield process


def _run_beside(halted: subprocess.Popen[str], *words: str, says: str) -> None:
    """Run a command while another runs, which ends when the command has said something; both have to succeed."""
    command = [sys.executable, "-m", "rocwheel", "index", *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        assert process.stderr.readline() == says
        assert halted.stdin
        halted.stdin.close()
        process.stderr.read()
    assert (process.returncode, halted.wait()) == (0, 0)


def test_two_runs_at_once_both_end_up_in_the_index(
    halted: subprocess.Popen[str], add_wheel: AddWheel, dist_dir: Path
) -> None:
    output = dist_dir.parent / "simple"
    add_wheel("b")
    says = f"warning: {output}: is being written by another run; waiting for its end\n"
    _run_beside(halted, str(dist_dir), "--output", str(output), says=says)
    assert json.loads((output / "index.json").read_bytes())["projects"] == [{"name": "a"}, {"name": "b"}]


def test_a_file_is_yanked_after_the_run_that_goes_on(halted: subprocess.Popen[str], dist_dir: Path) -> None:
    # Given an index, as a run that is no more has left it
    output = dist_dir.parent / "simple"
    name = "a-1.0-py3-none-any.whl"
    (output / ".rocwheel-index.json").write_text('{"folders": ["../dist/"], "placement": "relative"}')
    says = f"warning: {output}: is being written by another run; waiting for its end\n"
    _run_beside(halted, "yank", str(dist_dir / name), "--output", str(output), says=says)
    assert json.loads((output / "a" / "index.json").read_bytes())["files"][0]["yanked"] is True


def test_the_index_of_a_family_has_the_lock_of_the_one_above_it(
    add_wheel: AddWheel, dist_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (dist_dir / "gfx90x").mkdir(parents=True)
    add_wheel("rocm").rename(dist_dir / "gfx90x" / "rocm-1.0-py3-none-any.whl")
    add_wheel("a")
    output = dist_dir.parent / "simple"
    write_indexes([dist_dir], output)
    locked: list[Path] = []

    @contextmanager
    def lock(folder: Path) -> Iterator[None]:
        locked.append(folder)
        yield

    monkeypatch.setattr("rocwheel.distributions.index.locking.locked_folder", lock)
    with locked_index(output / "gfx90x"), locked_index(output), locked_index(output / "a"):
        pass
    assert locked == [output, output, output / "a"]
