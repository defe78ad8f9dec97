"""Many small files that appear only when they are whole."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from rocwheel.foundation.errors import WorkError
from rocwheel.foundation.files.writing.atomic_file import AtomicFile
from rocwheel.foundation.files.writing.atomic_files import atomic_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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


def test_all_get_their_names_once_the_block_has_written_the_last(executor: ThreadPoolExecutor, tmp_path: Path) -> None:
    with atomic_files(executor) as files:
        for number in range(9):
            write(files, tmp_path / f"{number}.so")
        assert not list(tmp_path.glob("*.so"))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        f"{number}.so": f"{number}.so".encode() for number in range(9)
    }


def test_each_is_on_the_disk_before_the_first_gets_its_name(
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


def test_a_block_that_fails_leaves_the_old_files(executor: ThreadPoolExecutor, tmp_path: Path) -> None:
    path = tmp_path / "old.so"
    path.write_bytes(b"old")
    with suppress(ZeroDivisionError), atomic_files(executor) as files:
        write(files, path)
        write(files, tmp_path / "new.so")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_one_that_cannot_get_its_name_leaves_nothing_of_itself_and_those_behind_it(
    executor: ThreadPoolExecutor, tmp_path: Path
) -> None:
    paths = [tmp_path / name for name in ("a.so", "b.so", "c.so")]
    text = f"{paths[1]}: can't be written (Is a directory). Name another output, or remove the folder."
    with pytest.raises(WorkError, match=f"^{re.escape(text)}$"):
        write_all(executor, paths, taken=paths[1])
    assert {path.name: path.is_file() for path in tmp_path.iterdir()} == {"a.so": True, "b.so": False}


def test_a_disk_that_fails_gives_none_a_name(
    executor: ThreadPoolExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(WorkError, match=r"a\.so: can't be written \(Input/output error\)"):
        write_all(executor, [tmp_path / "a.so", tmp_path / "b.so"])
    assert list(tmp_path.iterdir()) == []
