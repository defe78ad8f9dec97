"""Tests of `rocwheel.index.folder`."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, TypeVar

import pytest

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.progress import SILENT
from rocwheel.core.reading import ChangedFileError, FileStamp
from rocwheel.index.folder import Source, list_folder, read_folders
from rocwheel.index.placing import FilePlacement, Placer
from rocwheel.index.write_index import write_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from rocwheel.core.workers import ReadContext
    from rocwheel.index.folder_notes import Found
    from tests.index.conftest import AddWheel


@pytest.fixture
def output(dist_dir: Path) -> Path:
    return dist_dir.parent / "simple"


def test_other_files_are_reported_but_not_listed(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    add_wheel("a")
    (dist_dir / "SHA256SUMS").write_text("")
    (dist_dir / ".wheel.partial").write_text("")
    (dist_dir / "subfolder").mkdir()
    assert write_index(dist_dir, output).ignored == (".wheel.partial", "SHA256SUMS")
    assert write_index(dist_dir, output).ignored == (".wheel.partial", "SHA256SUMS")


def test_a_folder_without_distributions_is_reported(dist_dir: Path, output: Path) -> None:
    expected = f"{dist_dir}: does not contain any distributions; expected *.whl or *.tar.gz files"
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        write_index(dist_dir, output)


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    expected = (
        f"{tmp_path}/gone: can't be listed (No such file or directory). "
        "Specify the folder that contains the wheels and sdists."
    )
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        write_index(tmp_path / "gone", tmp_path / "simple")


def test_subfolders_that_contain_distributions_are_reported(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    wheel = add_wheel("a")
    for folder in ("family/deep", "www/simple/a", ".hidden", "artifacts", "plain", "family/.git"):
        (dist_dir / folder).mkdir(parents=True)
    for place in ("family/deep", "www/simple/a", ".hidden"):
        (dist_dir / place / wheel.name).write_bytes(wheel.read_bytes())
    (dist_dir / "www/simple/index.json").write_text("{}")
    (dist_dir / "artifacts" / "blas_lib_gfx94X-dcgpu.tar.gz").write_bytes(b"")
    (dist_dir / "plain" / "notes.whl").write_bytes(b"")
    (dist_dir / "latest").symlink_to(".")
    (dist_dir / "above").symlink_to("..")
    (dist_dir / "linked").symlink_to("family")
    assert write_index(dist_dir, output).subfolders == ("family", "linked")


def test_a_folder_with_only_subfolders_is_refused(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    wheel = add_wheel("a")
    (dist_dir / "gfx90x").mkdir()
    wheel.rename(dist_dir / "gfx90x" / wheel.name)
    expected = (
        f"{dist_dir}: does not contain any distributions; expected *.whl or *.tar.gz files. Index its subfolders "
        "separately: gfx90x."
    )
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        write_index(dist_dir, output)


def test_a_build_folder_is_refused_with_the_name_of_its_dist_folder(
    add_wheel: AddWheel, dist_dir: Path, output: Path
) -> None:
    wheel = add_wheel("a")
    (dist_dir / "dist").mkdir()
    wheel.rename(dist_dir / "dist" / wheel.name)
    for may_be_empty in (False, True):
        with pytest.raises(InputError) as caught:
            list_folder(dist_dir, output, may_be_empty=may_be_empty)
        assert str(caught.value) == (
            f"{dist_dir}: does not contain any distributions; expected *.whl or *.tar.gz files. Specify its subfolder "
            "dist, "
            "which contains distributions."
        )


def test_metadata_files_are_stamped_themselves_not_their_symlink_targets(tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    dist.mkdir()
    for name in ("a-1-py3-none-any.whl", "b-1.tar.gz", "b-1.tar.gz.metadata", "c-1-py3-none-any.whl.metadata"):
        (dist / name).write_text(name)
    (dist / "a-1-py3-none-any.whl.metadata").symlink_to("b-1.tar.gz.metadata")
    assert list_folder(dist, tmp_path / "simple").beside == {
        name: FileStamp.of((dist / f"{name}.metadata").lstat()) for name in ("a-1-py3-none-any.whl", "b-1.tar.gz")
    }


def test_hidden_files_and_folders_are_listed(tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    (dist / ".folder").mkdir(parents=True)
    for name in (".a.whl", "a-1-py3-none-any.whl", "b"):
        (dist / name).touch()
    assert list_folder(dist, tmp_path / "simple").hidden == (".a.whl", ".folder")


Item = TypeVar("Item")
Result = TypeVar("Result")


def test_all_problems_are_reported_at_once_and_nothing_is_written(
    add_wheel: AddWheel, dist_dir: Path, output: Path
) -> None:
    add_wheel("good")
    add_wheel("mismatch", name_inside="other")
    add_wheel("twice", "1.0")
    add_wheel("twice", "1.0", filename="Twice-1.0.0-py3-none-any.whl")
    (dist_dir / "broken-1.0-py3-none-any.whl").write_bytes(b"PK")
    (dist_dir / "thing.whl").write_bytes(b"")
    (dist_dir / "dangling-1.0-py3-none-any.whl").symlink_to("gone")
    with pytest.raises(ProblemsError) as caught:
        write_index(dist_dir, output)
    assert str(caught.value) == (
        f"{dist_dir}: 5 problems\n"
        f"  {dist_dir}/broken-1.0-py3-none-any.whl: is a damaged archive (File is not a zip file). "
        "Build or download it again.\n"
        f"  {dist_dir}/dangling-1.0-py3-none-any.whl: can't be read (No such file or directory). "
        "Check its permissions.\n"
        f"  {dist_dir}/mismatch-1.0-py3-none-any.whl: its metadata has the project name 'other'; "
        "expected 'mismatch', as in the file name\n"
        f"  {dist_dir}/thing.whl: isn't a valid wheel or sdist file name; "
        "expected NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl or NAME-VERSION.tar.gz. Rename or remove the file.\n"
        f"  {dist_dir}/twice-1.0-py3-none-any.whl: is the same distribution as Twice-1.0.0-py3-none-any.whl, under "
        "a different file name. Remove one of the two files."
    )
    assert not output.exists()
    assert not list(dist_dir.glob("*.metadata"))


def test_all_wheels_with_a_damaged_member_are_reported(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    paths = [add_wheel(name) for name in "abc"]
    for path in paths[:2]:
        data = bytearray(path.read_bytes())
        data[data.index(b".py") + 5] ^= 0xFF
        path.write_bytes(data)
    with pytest.raises(ProblemsError) as caught:
        write_index(dist_dir, output)
    assert [str(problem).partition(": ")[0] for problem in caught.value.problems] == [
        f"{dist_dir}/a-1.0-py3-none-any.whl!a.py",
        f"{dist_dir}/b-1.0-py3-none-any.whl!b.py",
    ]
    assert not output.exists()


def write_other_bytes(path: Path) -> None:
    """Write as many bytes as a file has, and give it the time that it had."""
    before = path.stat()
    path.write_bytes(bytes(before.st_size))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


class Elsewhere:
    """Readers, and what happens to the files when they have read them."""

    def __init__(self, after_reading: Callable[[], None]) -> None:
        self._after_reading = after_reading

    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item], tell: Callable[[Item], ReadContext]
    ) -> Iterator[Result]:
        """Read the items one after another."""
        for item in items:
            tell(item)
        results = [function(item) for item in items]
        self._after_reading()
        return iter(results)


def nothing() -> None:
    """Leave the files alone."""


def read_elsewhere(dist_dir: Path, elsewhere: Elsewhere) -> dict[str, Found]:
    source = Source(Placer(dist_dir, dist_dir, FilePlacement.RELATIVE), list_folder(dist_dir, dist_dir), "")
    return read_folders([source], {}, SILENT, None, {}, elsewhere)


def test_a_file_that_changes_after_a_worker_read_it_is_refused(add_wheel: AddWheel, dist_dir: Path) -> None:
    path = add_wheel("a")
    with pytest.raises(ProblemsError) as caught:
        read_elsewhere(dist_dir, Elsewhere(lambda: write_other_bytes(path)))
    (problem,) = caught.value.problems
    assert isinstance(problem, ChangedFileError)
    assert str(problem).startswith(f"{path}: changed while it was being read")


def test_a_file_modified_recently_before_reading_is_not_settled(
    add_wheel: AddWheel, dist_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_wheel("a")
    now = time.time_ns()
    clock = iter([now, now + 10**10])  # that of the worker is ahead
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))
    (found,) = read_elsewhere(dist_dir, Elsewhere(nothing)).values()
    assert not found.known.is_settled


def test_a_file_that_stays_unchanged_is_settled(
    add_wheel: AddWheel, dist_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = add_wheel("a")
    later = time.time_ns() + 10**10
    monkeypatch.setattr(time, "time_ns", lambda: later)
    (found,) = read_elsewhere(dist_dir, Elsewhere(nothing)).values()
    assert found.known.is_settled
    assert found.known.stamp.inode == path.stat().st_ino
