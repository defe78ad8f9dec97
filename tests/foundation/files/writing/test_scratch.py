"""Hidden files and folders in which outputs are made, and what dead processes left of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.foundation.files.writing.atomic_file import atomic_file
from rocwheel.foundation.files.writing.scratch import remove_abandoned, scratch_folder
from tests.support.processes import NOBODY, needs_root, run_python

if TYPE_CHECKING:
    from pathlib import Path


def test_what_a_process_killed_while_it_synced_left_is_removed(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from rocwheel.foundation.files.writing.atomic_file import AtomicFile
os.fsync = lambda _: os._exit(0)
AtomicFile(Path(sys.argv[1])).commit()
"""
    run_python(program, tmp_path / "a.whl")
    (left,) = tmp_path.iterdir()
    assert remove_abandoned(tmp_path) == (left,)


def test_what_was_listed_before_is_not_listed_again(tmp_path: Path) -> None:
    left, other = tmp_path / ".a.whl.abcdefgh.rocwheel", tmp_path / ".b.whl.abcdefgh.rocwheel"
    for path in (left, other, tmp_path / ".mine"):
        path.touch(0o600)
    assert remove_abandoned(tmp_path, [left.name, ".mine", ".gone.whl.abcdefgh.rocwheel"]) == (left,)
    assert sorted(tmp_path.iterdir()) == [other, tmp_path / ".mine"]


def test_a_folder_that_has_the_inode_of_one_that_is_gone_is_looked_through(tmp_path: Path) -> None:
    gone, there = tmp_path / "gone", tmp_path / "there"
    gone.mkdir()
    with atomic_file(gone / "a.whl"):
        pass
    shutil.rmtree(gone)
    there.mkdir()  # many disks give it the inode that has become free
    left = there / ".a.whl.abcdefgh.rocwheel"
    left.touch(0o600)
    with atomic_file(there / "b.whl"):
        pass
    assert list(there.iterdir()) == [there / "b.whl"]


def test_what_vanishes_while_it_is_looked_at_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".a.whl.abcdefgh.rocwheel").touch(0o600)
    opening = os.open

    def vanish_and_open(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if dir_fd is not None:
            (tmp_path / path).unlink()
        return opening(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", vanish_and_open)
    assert remove_abandoned(tmp_path) == ()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_another_one_sweeps_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    making = tempfile.mkdtemp
    swept: list[Path] = []

    def make_and_sweep(**options: Any) -> str:
        name: str = making(**options)
        if not swept:
            swept.extend(remove_abandoned(tmp_path))
        return name

    monkeypatch.setattr(tempfile, "mkdtemp", make_and_sweep)
    with scratch_folder(tmp_path / "a") as folder:
        assert folder.is_dir()
        assert len(swept) == 1
    assert list(tmp_path.iterdir()) == []


def test_what_a_process_killed_just_before_it_gave_a_file_its_name_left_is_removed(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from rocwheel.foundation.files.writing.atomic_file import AtomicFile
Path.replace = lambda *_: os._exit(0)
AtomicFile(Path(sys.argv[1]), mode=0o755).commit()
"""
    run_python(program, tmp_path / "a.whl")
    (left,) = tmp_path.iterdir()
    assert remove_abandoned(tmp_path) == (left,)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_a_killed_process_left_below_one_of_a_group_is_removed(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o2775)
    program = (
        "import os, sys; from pathlib import Path\n"
        "from rocwheel.foundation.files.writing.scratch import scratch_folder\n"
    )
    run_python(program + "made = scratch_folder(Path(sys.argv[1])); made.__enter__(); os._exit(0)", shared / "made")
    (left,) = shared.iterdir()
    assert left.stat().st_mode & 0o7777 == 0o2700
    assert remove_abandoned(shared) == (left,)
    assert list(shared.iterdir()) == []


@needs_root
def test_what_belongs_to_somebody_else_is_left_alone_even_by_root(tmp_path: Path) -> None:
    file, folder = tmp_path / ".a.whl.abcdefgh.rocwheel", tmp_path / ".b.abcdefgh.rocwheel"
    file.touch(0o600)
    folder.mkdir(0o700)
    for path in (file, folder):
        os.chown(path, NOBODY, NOBODY)
    assert remove_abandoned(tmp_path) == ()
    assert sorted(tmp_path.iterdir()) == [file, folder]


def test_a_link_in_a_folder_of_a_killed_process_leads_nowhere(tmp_path: Path) -> None:
    target, left = tmp_path / "target", tmp_path / ".b.abcdefgh.rocwheel"
    target.mkdir()
    target.chmod(0o500)
    left.mkdir(0o700)
    (left / "link").symlink_to(target)
    assert remove_abandoned(tmp_path) == (left,)
    assert target.stat().st_mode & 0o777 == 0o500


def test_a_folder_that_becomes_a_link_while_it_is_removed_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, left = tmp_path / "target", tmp_path / ".b.abcdefgh.rocwheel"
    target.mkdir()
    target.chmod(0o500)
    (left / "folder").mkdir(parents=True)
    left.chmod(0o700)
    opening = os.open

    def swap_and_open(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "folder" and not (left / "folder").is_symlink():
            (left / "folder").rmdir()
            (left / "folder").symlink_to(target)
        return opening(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swap_and_open)
    remove_abandoned(tmp_path)
    assert target.stat().st_mode & 0o777 == 0o500


def test_folders_that_forbid_everything_go_with_their_block(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from rocwheel.foundation.files.writing.scratch import scratch_folder
os.chdir(sys.argv[1])
os.setuid(int(sys.argv[2]))
with scratch_folder(Path("made")) as folder:
    for mode in (0o000, 0o300, 0o500):
        (folder / f"{mode:o}" / "below").mkdir(parents=True)
        (folder / f"{mode:o}").chmod(mode)
print(list(Path().iterdir()))
"""
    tmp_path.chmod(0o777)
    assert run_python(program, tmp_path, str(NOBODY if os.geteuid() == 0 else os.geteuid())) == "[]\n"


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path\n"
        "from rocwheel.foundation.files.writing.atomic_file import AtomicFile\n"
    )
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
        "import sys; from pathlib import Path; from rocwheel.foundation.files.writing.atomic_file import atomic_file\n"
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
    program = (
        "import os, sys; from pathlib import Path\n"
        "from rocwheel.foundation.files.writing.scratch import scratch_folder\n"
    )
    run_python(program + "made = scratch_folder(Path(sys.argv[1])); made.__enter__(); os._exit(0)", tmp_path / "made")
    (left,) = tmp_path.iterdir()
    (left / "folder").mkdir()
    assert remove_abandoned(tmp_path) == (left,)
    with scratch_folder(tmp_path / "other") as folder:
        assert remove_abandoned(tmp_path) == ()
        assert list(tmp_path.iterdir()) == [folder]


def test_the_next_output_in_a_folder_removes_what_a_killed_process_left_there(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path\n"
        "from rocwheel.foundation.files.writing.atomic_file import AtomicFile\n"
    )
    run_python(program + "AtomicFile(Path(sys.argv[1])); os._exit(0)", tmp_path / "a.whl")
    run_python(program + "AtomicFile(Path(sys.argv[1])).commit()", tmp_path / "b.whl")
    assert [path.name for path in tmp_path.iterdir()] == ["b.whl"]


@pytest.mark.parametrize("name", ["x" * 255, "ü" * 127, "日" * 85, "\udcff" * 255], ids=ascii)
def test_a_name_of_the_longest_kind_has_room_for_a_hidden_one(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with atomic_file(path) as file:
        file.write(b"whole")
    assert path.read_bytes() == b"whole"


def test_a_file_that_is_removed_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening, made = os.open, list[int]()

    def make_and_lose_the_first(path: Any, flags: int, *rest: int, **options: Any) -> int:
        descriptor = opening(path, flags, *rest, **options)
        if flags & os.O_EXCL:
            made.append(descriptor)
            assert len(made) > 1 or remove_abandoned(tmp_path) != ()
        return descriptor

    monkeypatch.setattr(os, "open", make_and_lose_the_first)
    with atomic_file(tmp_path / "a.whl") as file:
        file.write(b"whole")
    assert ((tmp_path / "a.whl").read_bytes(), len(made)) == (b"whole", 2)


def test_ctrl_c_while_a_disk_makes_a_file_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opening = os.open

    def make_and_be_interrupted(path: Any, flags: int, *rest: int, **options: Any) -> int:
        os.close(opening(path, flags, *rest, **options))
        raise KeyboardInterrupt

    (tmp_path / "out").mkdir()
    with atomic_file(tmp_path / "out/before.whl"):
        pass
    monkeypatch.setattr(os, "open", make_and_be_interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_file(tmp_path / "out/a.whl"):
        pass
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["before.whl"]
