"""Tests of `rocwheel.core.writing`."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.writing import AtomicFile, atomic_file, atomic_files, check_output, new_folder, plain_mode, safe_mode
from tests.support.processes import NOBODY, needs_root, run_python

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize(
    ("mode", "expected"),
    [(0o104755, 0o755), (0o102755, 0o755), (0o100777, 0o755), (0o100666, 0o644), (0o100664, 0o644), (0, 0o644)],
    ids=["setuid", "setgid", "all", "world-writable", "group-writable", "none"],
)
def test_safe_mode_removes_setuid_and_write_permission_for_others(mode: int, expected: int) -> None:
    assert safe_mode(mode) == expected


@pytest.mark.parametrize(
    ("mode", "expected"), [(0o100777, 0o755), (0o100500, 0o755), (0o100666, 0o644), (0o100400, 0o644), (0, 0o644)]
)
def test_plain_mode_keeps_only_the_executable_bit(mode: int, expected: int) -> None:
    assert plain_mode(mode) == expected


def test_a_dash_is_not_treated_as_an_output_file() -> None:
    with pytest.raises(InputError) as caught:
        check_output(Path("-"))
    assert str(caught.value) == "--output: is -, but this command can't write to standard output. Pass a file name."


def test_a_folder_or_pipe_is_refused_as_output_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, found in ((tmp_path, "is a folder"), (tmp_path / "pipe", "isn't a regular file")):
        with pytest.raises(InputError) as caught:
            check_output(path)
        assert str(caught.value) == f"{path}: {found}; expected an output file. Change --output."


def test_a_broken_symlink_or_a_missing_folder_is_accepted_as_output(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    check_output(tmp_path / "link")
    check_output(tmp_path / "absent" / "file")


def test_the_file_appears_only_after_commit(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file.whl"
    file = AtomicFile(path)
    file.write(b"whole")
    assert not path.exists()
    file.commit()
    assert path.read_bytes() == b"whole"
    assert [entry.name for entry in path.parent.iterdir()] == ["file.whl"]


def test_a_discarded_file_leaves_nothing_behind(tmp_path: Path) -> None:
    file = AtomicFile(tmp_path / "file.whl")
    file.write(b"half")
    file.discard()
    assert list(tmp_path.iterdir()) == []


def test_discarding_after_the_commit_is_harmless(tmp_path: Path) -> None:
    file = AtomicFile(tmp_path / "file.whl")
    file.commit()
    file.discard()
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.whl"]


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600])
def test_the_file_mode_does_not_depend_on_the_umask(tmp_path: Path, mode: int) -> None:
    umask = os.umask(0o077)
    try:
        with atomic_file(tmp_path / "file", mode=mode):
            pass
    finally:
        os.umask(umask)
    assert (tmp_path / "file").stat().st_mode & 0o777 == mode


def test_a_failing_block_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with suppress(ZeroDivisionError), atomic_file(path) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_overwriting_keeps_the_file_position(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "file") as file:
        file.write(b"....tail")
        file.overwrite(0, b"head")
        file.write(b"!")
        assert file.tell() == 9
    assert (tmp_path / "file").read_bytes() == b"headtail!"


def test_writeback_of_a_large_file_begins_during_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranges: list[tuple[int, int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, start, size, advice: ranges.append((start, size, advice)))

    with atomic_file(tmp_path / "out") as target:
        for _ in range(5):
            target.write(bytes(8 << 20))
        target.overwrite(0, b"head")

    assert ranges == [(0, 16 << 20, os.POSIX_FADV_DONTNEED), (16 << 20, 16 << 20, os.POSIX_FADV_DONTNEED)]
    assert (tmp_path / "out").read_bytes() == b"head" + bytes((40 << 20) - 4)


def test_a_file_instead_of_the_parent_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "dist").touch()
    path = tmp_path / "dist" / "file.whl"
    remedy = "Choose another output, or remove the file at the path of its parent folder."
    text = f"{path}: can't be written (File exists). {remedy}"
    with pytest.raises(WorkError, match=f"^{re.escape(text)}$"):
        AtomicFile(path)


@pytest.mark.parametrize("name", ["dist/file.whl", "dist/below/file.whl"])
def test_a_broken_symlink_in_place_of_a_folder_is_reported(tmp_path: Path, name: str) -> None:
    (tmp_path / "dist").symlink_to(tmp_path / "gone/away")
    remedy = f"Choose another output, or remove the broken link {tmp_path}/dist."
    text = f"{tmp_path}/{name}: can't be written (File exists). {remedy}"
    with pytest.raises(WorkError, match=f"^{re.escape(text)}$"):
        AtomicFile(tmp_path / name)


def test_a_device_or_pipe_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    expected = f"{pipe}: isn't a regular file, so it can't be replaced. Choose another output."
    with pytest.raises(WorkError, match=re.escape(expected)):
        AtomicFile(pipe)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.parametrize("link", ["/proc/self/fd/1", "between"])
def test_a_symlink_to_an_open_file_such_as_dev_stdout_is_not_replaced(tmp_path: Path, link: str) -> None:
    (tmp_path / "between").symlink_to("/proc/self/fd/1")
    (tmp_path / "stdout").symlink_to(link)
    program = (
        "import sys; from pathlib import Path; from rocwheel.core.writing import AtomicFile\n"
        "try: AtomicFile(Path(sys.argv[1]))\nexcept Exception as e: print(e)"
    )
    with (tmp_path / "out.txt").open("wb") as output:
        subprocess.run([sys.executable, "-c", program, tmp_path / "stdout"], stdout=output, check=True)
    expected = f"{tmp_path}/stdout: isn't a regular file, so it can't be replaced. Choose another output.\n"
    assert (tmp_path / "out.txt").read_text() == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["between", "out.txt", "stdout"]


def test_a_folder_at_the_final_name_is_an_error_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "file.whl"
    path.mkdir()
    text = f"{path}: can't be written (Is a directory). Choose another output, or remove the folder."
    with pytest.raises(WorkError, match=f"^{re.escape(text)}$"):
        AtomicFile(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_created_at_the_final_name_meanwhile_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file.whl"
    text = f"{path}: can't be written (Is a directory). Choose another output, or remove the folder."
    with pytest.raises(WorkError, match=f"^{re.escape(text)}$"), atomic_file(path):
        path.mkdir()
    assert list(tmp_path.iterdir()) == [path]


@needs_root
def test_a_folder_without_write_permission_is_an_error(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from rocwheel.core.errors import WorkError
from rocwheel.core.writing import AtomicFile
os.chdir(sys.argv[1])
os.setuid(int(sys.argv[2]))
try:
    AtomicFile(Path("file.whl"))
except WorkError as e:
    print(e)
"""
    assert run_python(program, tmp_path, str(NOBODY)) == (
        "file.whl: can't be written (Permission denied). Check the free space and the permissions of the folder.\n"
    )


@pytest.mark.parametrize("step", ["write", "overwrite", "commit"])
def test_a_file_size_limit_is_an_error_at_any_step_and_leaves_nothing_behind(tmp_path: Path, step: str) -> None:
    """A write that fits the buffer fails later: when going back, or at the commit."""
    program = """
import sys
from pathlib import Path
from rocwheel.core.errors import WorkError
from rocwheel.core.writing import atomic_file
steps = {
    "write": lambda file: file.write(bytes(1 << 20)),
    "overwrite": lambda file: (file.write(bytes(5000)), file.overwrite(0, b"x")),
    "commit": lambda file: file.write(bytes(5000)),
}
try:
    with atomic_file(Path(sys.argv[1])) as file:
        steps[sys.argv[2]](file)
except WorkError as e:
    print(e)
"""
    path = tmp_path / "file.whl"
    assert run_python(program, path, step, file_size=4096) == (
        f"{path}: can't be written (File too large). Check the free space and the permissions of the folder.\n"
    )
    assert list(tmp_path.iterdir()) == []


@needs_root
def test_a_full_disk_is_an_error_and_leaves_nothing_behind(tmp_path: Path) -> None:
    program = """
from pathlib import Path
from rocwheel.core.errors import WorkError
from rocwheel.core.writing import atomic_file
try:
    with atomic_file(Path("file.whl")) as file:
        file.write(bytes(1 << 20))
except WorkError as e:
    print(e)
print(list(Path().iterdir()))
"""
    mount = f"mount -t tmpfs -o size=64k tmpfs {tmp_path} && cd {tmp_path} && exec {sys.executable} -B -c '{program}'"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", mount], capture_output=True, text=True, check=False)
    if "ermitted" in done.stderr:
        pytest.skip(f"no mount here: {done.stderr.strip()}")
    assert done.stdout == (
        "file.whl: can't be written (No space left on device). "
        "Check the free space and the permissions of the folder.\n[]\n"
    )


def test_a_failed_cleanup_does_not_hide_the_original_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    path = tmp_path / "file.whl"
    text = f"{path}: can't be written (Read-only file system). Check the free space and the permissions of the folder."
    file = AtomicFile(path)
    for name in ("replace", "unlink"):
        monkeypatch.setattr(Path, name, refuse)
    with pytest.raises(WorkError, match=f"^{re.escape(text)}$"):
        file.commit()


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


def write(files: list[AtomicFile], path: Path) -> None:
    files.append(AtomicFile(path))
    files[-1].write(path.name.encode())


def write_all(executor: ThreadPoolExecutor, paths: list[Path], taken: Path | None = None) -> None:
    with atomic_files(executor) as files:
        for path in paths:
            write(files, path)
        if taken:
            taken.mkdir()


def test_all_files_get_their_names_after_the_last_is_written(executor: ThreadPoolExecutor, tmp_path: Path) -> None:
    with atomic_files(executor) as files:
        for number in range(9):
            write(files, tmp_path / f"{number}.so")
        assert not list(tmp_path.glob("*.so"))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        f"{number}.so": f"{number}.so".encode() for number in range(9)
    }


def test_all_files_are_synced_before_the_first_gets_its_name(
    executor: ThreadPoolExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        seen.append([path.name for path in tmp_path.glob("*.so")])
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with atomic_files(executor) as files:
        for number in range(6):
            write(files, tmp_path / f"{number}.so")
    assert seen == [[]] * 6


def test_a_failing_block_keeps_all_old_files(executor: ThreadPoolExecutor, tmp_path: Path) -> None:
    path = tmp_path / "old.so"
    path.write_bytes(b"old")
    with suppress(ZeroDivisionError), atomic_files(executor) as files:
        write(files, path)
        write(files, tmp_path / "new.so")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_rename_leaves_no_trace_of_that_file_and_the_following_ones(
    executor: ThreadPoolExecutor, tmp_path: Path
) -> None:
    paths = [tmp_path / name for name in ("a.so", "b.so", "c.so")]
    text = f"{paths[1]}: can't be written (Is a directory). Choose another output, or remove the folder."
    with pytest.raises(WorkError, match=f"^{re.escape(text)}$"):
        write_all(executor, paths, taken=paths[1])
    assert {path.name: path.is_file() for path in tmp_path.iterdir()} == {"a.so": True, "b.so": False}


def test_a_failed_sync_prevents_all_renames(
    executor: ThreadPoolExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(WorkError, match=r"a\.so: can't be written \(Input/output error\)"):
        write_all(executor, [tmp_path / "a.so", tmp_path / "b.so"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_there", [False, True])
def test_a_new_or_empty_folder_is_filled(tmp_path: Path, is_there: bool) -> None:
    dest = tmp_path / "dest"
    if is_there:
        dest.mkdir()
    with new_folder(dest) as made:
        (made / "file").write_text("content")
        assert not (dest / "file").exists()
    assert [path.name for path in dest.iterdir()] == ["file"]
    assert [path.name for path in tmp_path.iterdir()] == ["dest"]


def test_a_failing_block_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is wrong"), new_folder(tmp_path / "dest") as made:
        _fail(made)
    assert list(tmp_path.iterdir()) == []


def _fail(made: Path) -> None:
    (made / "file").write_text("content")
    raise InputError(made, "is wrong")


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    message = (
        f"{tmp_path}: already exists; expected a new or empty folder. Choose another folder, or remove this folder."
    )
    (tmp_path / "file").write_text("content")
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"), new_folder(tmp_path):
        pass


def test_a_folder_inside_the_input_is_refused(tmp_path: Path) -> None:
    message = (
        f"{tmp_path}/in/out: is a folder in {tmp_path}/in, which this command copies; expected a folder outside "
        f"{tmp_path}/in"
    )
    (tmp_path / "in").mkdir()
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"), new_folder(tmp_path / "in/out", tmp_path / "in"):
        pass
