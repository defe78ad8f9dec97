"""Hidden files and folders in which outputs are made, and what dead processes left of them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocwheel.foundation.atomic_file import atomic_file
from rocwheel.foundation.scratch import remove_abandoned, scratch_folder
from tests.support.processes import run_python

if TYPE_CHECKING:
    import os

    import pytest


def test_what_a_process_killed_while_it_synced_left_is_removed(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from rocwheel.foundation.atomic_file import AtomicFile
os.fsync = lambda _: os._exit(0)
AtomicFile(Path(sys.argv[1])).commit()
"""
    run_python(program, tmp_path / "a.whl")
    (left,) = tmp_path.iterdir()
    assert remove_abandoned(tmp_path) == (left,)


def test_what_vanishes_while_it_is_looked_at_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".a.whl.abcdefgh.rocwheel").touch(0o600)
    look = Path.lstat

    def vanish_and_look(path: Path) -> os.stat_result:
        path.unlink()
        return look(path)

    monkeypatch.setattr(Path, "lstat", vanish_and_look)
    assert remove_abandoned(tmp_path) == ()


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    program = "import os, sys; from pathlib import Path; from rocwheel.foundation.atomic_file import AtomicFile\n"
    run_python(program + "AtomicFile(Path(sys.argv[1])); os._exit(0)", tmp_path / "a.whl")
    (left,) = tmp_path.iterdir()
    others = [".a.whl.metadata", ".a.whl.abc.rocwheel", ".b.txt.abcdefgh", "a.whl.abcdefgh.rocwheel", ".rocwheel"]
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / ".public.whl.abcdefgh.rocwheel").mkdir(mode=0o755)
    assert remove_abandoned(tmp_path) == (left,)
    with atomic_file(tmp_path / "c.whl"):
        assert remove_abandoned(tmp_path) == ()
    others += [".public.whl.abcdefgh.rocwheel", "c.whl"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


def test_what_another_process_writes_is_left_alone(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from rocwheel.foundation.atomic_file import atomic_file\n"
        "with atomic_file(Path(sys.argv[1])) as file:\n"
        "    print('writing', flush=True); sys.stdin.readline(); file.write(b'whole')"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "a.whl")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "writing\n"
        assert remove_abandoned(tmp_path) == ()
        process.communicate("\n")
    assert (tmp_path / "a.whl").read_bytes() == b"whole"


def test_a_folder_goes_with_its_block_whatever_is_in_it(tmp_path: Path) -> None:
    with scratch_folder(tmp_path / "made") as folder:
        (folder / "sealed").mkdir()
        (folder / "sealed/file").touch()
        (folder / "sealed").chmod(0o500)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_a_killed_process_is_removed_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    program = "import os, sys; from pathlib import Path; from rocwheel.foundation.scratch import scratch_folder\n"
    run_python(program + "made = scratch_folder(Path(sys.argv[1])); made.__enter__(); os._exit(0)", tmp_path / "made")
    (left,) = tmp_path.iterdir()
    (left / "folder").mkdir()
    assert remove_abandoned(tmp_path) == (left,)
    with scratch_folder(tmp_path / "other") as folder:
        assert remove_abandoned(tmp_path) == ()
        assert list(tmp_path.iterdir()) == [folder]


def test_the_next_output_in_a_folder_removes_what_a_killed_process_left_there(tmp_path: Path) -> None:
    program = "import os, sys; from pathlib import Path; from rocwheel.foundation.atomic_file import AtomicFile\n"
    run_python(program + "AtomicFile(Path(sys.argv[1])); os._exit(0)", tmp_path / "a.whl")
    run_python(program + "AtomicFile(Path(sys.argv[1])).commit()", tmp_path / "b.whl")
    assert [path.name for path in tmp_path.iterdir()] == ["b.whl"]


def test_a_name_of_the_longest_kind_has_room_for_a_hidden_one(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    with atomic_file(path) as file:
        file.write(b"whole")
    assert path.read_bytes() == b"whole"


def test_a_file_that_is_removed_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = tempfile.mkstemp
    made: list[tuple[int, str]] = []

    def make_and_lose_the_first(**options: Any) -> tuple[int, str]:
        made.append(make(**options))
        if len(made) == 1:
            assert remove_abandoned(tmp_path) != ()
        return made[-1]

    monkeypatch.setattr(tempfile, "mkstemp", make_and_lose_the_first)
    with atomic_file(tmp_path / "a.whl") as file:
        file.write(b"whole")
    assert ((tmp_path / "a.whl").read_bytes(), len(made)) == (b"whole", 2)
