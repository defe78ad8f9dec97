"""Tests of `rocwheel.core.scratch`."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from rocwheel.core.errors import WorkError
from rocwheel.core.scratch import (
    locked_folder,
    no_room,
    open_temporary,
    path_of,
    range_error,
    remove_abandoned,
    require_room,
    scratch_folder,
    write_all,
)
from rocwheel.core.writing import atomic_file
from tests.support.processes import NOBODY, needs_root, run_python


def test_a_temporary_file_is_in_tmpdir_and_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with open_temporary() as file:
        assert list(tmp_path.iterdir()) == []
        assert Path(path_of(file)).readlink().parent == tmp_path
        assert os.fstat(file.fileno()).st_nlink == 0


def test_a_given_folder_takes_precedence_over_tmpdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    with open_temporary(tmp_path) as file:
        assert Path(path_of(file)).readlink().parent == tmp_path


def test_written_data_can_be_read_by_path(tmp_path: Path) -> None:
    with open_temporary(tmp_path) as file:
        write_all(file, b"abc")
        assert Path(path_of(file)).read_bytes() == b"abc"


def test_an_unusable_tmpdir_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    found = f"TMPDIR: is {tmp_path}/none, a folder where files can't be created (No such file or directory)."
    message = f"{found} Correct or unset the variable."
    with (
        pytest.raises(WorkError, match=f"^{re.escape(message)}$"),
        open_temporary(),
    ):
        pass


def test_a_full_folder_is_reported_with_the_unwritten_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert str(no_room("x.whl!a", "its 5 bytes", OSError(errno.ENOSPC, "No space left on device"))) == (
        f"x.whl!a: its 5 bytes can't be written to {tmp_path} (No space left on device). "
        "Free some space in this folder, or set TMPDIR to another folder."
    )


@pytest.mark.parametrize(("size", "is_enough"), [(63 << 20, True), (80 << 20, True), (90 << 20, False)])
def test_a_large_file_that_would_fill_the_disk_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, is_enough: bool
) -> None:
    free = SimpleNamespace(f_bavail=150 << 10, f_frsize=1 << 10)
    monkeypatch.setattr(os, "fstatvfs", lambda _: free)
    with open_temporary(tmp_path) as file, nullcontext() if is_enough else pytest.raises(OSError, match="No space"):
        require_room(file, size)


def test_an_unreadable_temporary_file_is_reported_as_temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    error = OSError(errno.EIO, "Input/output error")
    with open_temporary() as file:
        assert str(range_error(path_of(file), error)) == (
            f"{tmp_path}: a temporary file can't be read (Input/output error). "
            "Check the disk, or set TMPDIR to another folder."
        )
    assert str(range_error("a.whl", error)) == (
        "a.whl: can't be read (Input/output error). Check whether it exists and is readable."
    )


def refuse_at_close(file: IO[bytes]) -> None:
    """Have the system refuse to close a file, as a disk that only then tells of bytes that it has not taken."""
    os.close(file.fileno())


@pytest.mark.parametrize("buffering", [0, -1, 1 << 20])
def test_a_failure_to_close_does_not_hide_an_earlier_error(tmp_path: Path, buffering: int) -> None:
    def fail() -> None:
        with open_temporary(tmp_path, buffering=buffering) as file:
            refuse_at_close(file)
            msg = "the first"
            raise ValueError(msg)

    with pytest.raises(ValueError, match="the first"):
        fail()


@pytest.mark.parametrize("buffering", [0, -1, 1 << 20])
def test_a_failure_to_close_is_reported_with_the_folder(tmp_path: Path, buffering: int) -> None:
    expected = (
        f"{tmp_path}: a temporary file can't be written (Bad file descriptor). "
        "Check the disk, or set TMPDIR to another folder."
    )
    with pytest.raises(WorkError, match=f"^{re.escape(expected)}$"), open_temporary(tmp_path, buffering=buffering) as f:
        refuse_at_close(f)


@pytest.mark.parametrize(("buffering", "is_there"), [(0, True), (-1, False), (4, True)])
def test_a_file_is_buffered_as_requested(tmp_path: Path, buffering: int, is_there: bool) -> None:
    with open_temporary(tmp_path, buffering=buffering) as file:
        file.write(b"abcdef")
        assert Path(path_of(file)).read_bytes() == (b"abcdef" if is_there else b"")
        file.flush()
        assert Path(path_of(file)).read_bytes() == b"abcdef"


def test_leftovers_of_a_process_killed_during_sync_are_removed(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from rocwheel.core.writing import AtomicFile
os.fsync = lambda _: os._exit(0)
AtomicFile(Path(sys.argv[1])).commit()
"""
    run_python(program, tmp_path / "a.whl")
    (left,) = tmp_path.iterdir()
    assert remove_abandoned(tmp_path) == (left,)


def test_only_the_listed_leftovers_are_removed(tmp_path: Path) -> None:
    left, other = tmp_path / ".a.whl.abcdefgh.rocwheel", tmp_path / ".b.whl.abcdefgh.rocwheel"
    for path in (left, other, tmp_path / ".mine"):
        path.touch(0o600)
    assert remove_abandoned(tmp_path, [left.name, ".mine", ".gone.whl.abcdefgh.rocwheel"]) == (left,)
    assert sorted(tmp_path.iterdir()) == [other, tmp_path / ".mine"]


def test_a_folder_that_reuses_an_inode_is_swept(tmp_path: Path) -> None:
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


def test_leftovers_that_vanish_during_the_sweep_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".a.whl.abcdefgh.rocwheel").touch(0o600)
    opening = os.open

    def vanish_and_open(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if dir_fd is not None:
            (tmp_path / path).unlink()
        return opening(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", vanish_and_open)
    assert remove_abandoned(tmp_path) == ()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_swept_before_it_is_locked_is_recreated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_leftovers_of_a_process_killed_before_the_rename_are_removed(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from rocwheel.core.writing import AtomicFile
Path.replace = lambda *_: os._exit(0)
AtomicFile(Path(sys.argv[1]), mode=0o755).commit()
"""
    run_python(program, tmp_path / "a.whl")
    (left,) = tmp_path.iterdir()
    assert remove_abandoned(tmp_path) == (left,)
    assert list(tmp_path.iterdir()) == []


def test_a_leftover_folder_below_a_setgid_folder_is_removed(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o2775)
    program = "import os, sys; from pathlib import Path\nfrom rocwheel.core.scratch import scratch_folder\n"
    run_python(program + "made = scratch_folder(Path(sys.argv[1])); made.__enter__(); os._exit(0)", shared / "made")
    (left,) = shared.iterdir()
    assert left.stat().st_mode & 0o7777 == 0o2700
    assert remove_abandoned(shared) == (left,)
    assert list(shared.iterdir()) == []


@needs_root
def test_files_of_other_users_are_not_removed_even_by_root(tmp_path: Path) -> None:
    file, folder = tmp_path / ".a.whl.abcdefgh.rocwheel", tmp_path / ".b.abcdefgh.rocwheel"
    file.touch(0o600)
    folder.mkdir(0o700)
    for path in (file, folder):
        os.chown(path, NOBODY, NOBODY)
    assert remove_abandoned(tmp_path) == ()
    assert sorted(tmp_path.iterdir()) == [file, folder]


def test_symlinks_in_a_leftover_folder_are_not_followed(tmp_path: Path) -> None:
    target, left = tmp_path / "target", tmp_path / ".b.abcdefgh.rocwheel"
    target.mkdir()
    target.chmod(0o500)
    left.mkdir(0o700)
    (left / "link").symlink_to(target)
    assert remove_abandoned(tmp_path) == (left,)
    assert target.stat().st_mode & 0o777 == 0o500


def test_a_folder_replaced_by_a_symlink_during_removal_is_not_followed(
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


def test_folders_without_permissions_are_removed_at_the_end_of_the_block(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from rocwheel.core.scratch import scratch_folder
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


def test_only_the_leftovers_of_killed_processes_are_removed(tmp_path: Path) -> None:
    program = "import os, sys; from pathlib import Path\nfrom rocwheel.core.writing import AtomicFile\n"
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


def test_files_being_written_by_another_process_are_not_removed(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from rocwheel.core.writing import atomic_file\n"
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


def test_a_scratch_folder_is_removed_with_its_contents_after_the_block(tmp_path: Path) -> None:
    with scratch_folder(tmp_path / "made") as folder:
        (folder / "sealed").mkdir()
        (folder / "sealed/file").touch()
        (folder / "sealed").chmod(0o500)
    assert list(tmp_path.iterdir()) == []


def test_scratch_folders_of_killed_processes_are_removed_but_not_of_running_ones(tmp_path: Path) -> None:
    program = "import os, sys; from pathlib import Path\nfrom rocwheel.core.scratch import scratch_folder\n"
    run_python(program + "made = scratch_folder(Path(sys.argv[1])); made.__enter__(); os._exit(0)", tmp_path / "made")
    (left,) = tmp_path.iterdir()
    (left / "folder").mkdir()
    assert remove_abandoned(tmp_path) == (left,)
    with scratch_folder(tmp_path / "other") as folder:
        assert remove_abandoned(tmp_path) == ()
        assert list(tmp_path.iterdir()) == [folder]


def test_the_next_output_in_a_folder_removes_leftovers_of_a_killed_process(tmp_path: Path) -> None:
    program = "import os, sys; from pathlib import Path\nfrom rocwheel.core.writing import AtomicFile\n"
    run_python(program + "AtomicFile(Path(sys.argv[1])); os._exit(0)", tmp_path / "a.whl")
    run_python(program + "AtomicFile(Path(sys.argv[1])).commit()", tmp_path / "b.whl")
    assert [path.name for path in tmp_path.iterdir()] == ["b.whl"]


@pytest.mark.parametrize("name", ["x" * 255, "ü" * 127, "日" * 85, "\udcff" * 255], ids=ascii)
def test_a_file_name_of_maximum_length_can_be_written_atomically(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with atomic_file(path) as file:
        file.write(b"whole")
    assert path.read_bytes() == b"whole"


def test_a_file_removed_before_it_is_locked_is_recreated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_ctrl_c_during_file_creation_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


WAITING = "{}: is being written to by another run; waiting until it ends"

HOLDING = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_folder_locked_by_another_process_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    command = [sys.executable, "-c", HOLDING, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(WorkError) as refused, locked_folder(tmp_path, timeout=0.2):
            pass
        holder.stdin.close()
        with locked_folder(tmp_path):
            pass
    expected = (
        f"{tmp_path}: is still being written to by another run. Wait until that run ends, then run the command again."
    )
    assert str(refused.value) == expected
    assert caplog.messages[0] == WAITING.format(tmp_path)


def test_a_lock_is_released_at_the_end_of_its_block(tmp_path: Path) -> None:
    for _ in range(2):
        with locked_folder(tmp_path, timeout=0):
            pass


def test_a_locked_folder_is_created_and_removed_if_it_stays_empty(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with locked_folder(folder):
        assert folder.is_dir()
    assert not folder.exists()
    with locked_folder(folder):
        (folder / "file").touch()
    assert folder.is_dir()


def test_a_folder_removed_before_it_is_locked_is_recreated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, lock, removals = tmp_path / "a", fcntl.flock, iter([True])

    def removing(descriptor: int, operation: int) -> None:
        lock(descriptor, operation)
        if next(removals, False):
            folder.rmdir()

    monkeypatch.setattr(fcntl, "flock", removing)
    with locked_folder(folder, timeout=0):
        assert folder.is_dir()


def test_a_file_system_without_locks_produces_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with caplog.at_level(logging.WARNING), locked_folder(tmp_path / "a"):
        (tmp_path / "a" / "file").touch()
    text = "can't be locked (No locks available); don't let two runs write to it at the same time"
    assert caplog.messages == [f"{tmp_path / 'a'}: {text}"]


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(WorkError, match=re.escape(f"{tmp_path / 'a/b'}: ")), locked_folder(tmp_path / "a/b"):
        pass
