"""Tests of `rocwheel.wheels.writing`."""

from __future__ import annotations

import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.core.progress import Silent
from rocwheel.core.reading import FileRange
from rocwheel.wheels.content import BytesContent, Digest, FileContent
from rocwheel.wheels.writing import WheelName, write_wheels
from rocwheel.wheels.zip_directory import read_directory
from rocwheel.wheels.zip_writer import ZipTime

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.wheels.zip_reader import ZipMember


ONE = WheelName("one", "1.0", "py3-none-any")
TWO = WheelName("two", "1.0", "py3-none-any")


def packed(tmp_path: Path, content: bytes = b"x" * 1000) -> Path:
    path = tmp_path / "source.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("lib/data.txt", content)
    return path


def test_several_wheels_are_packed_concurrently(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as executor, write_wheels(executor, ZipTime()) as packer:
        wheels = [packer.open(tmp_path / name.file_name, dist_info=name.dist_info) for name in (ONE, TWO)]
        for wheel in wheels:
            wheel.add("module.py", 0o644, BytesContent(b"pass\n"))
        for wheel in wheels:
            wheel.close({"METADATA": b"text"})
    for name in (ONE, TWO):
        with zipfile.ZipFile(tmp_path / name.file_name) as archive:
            assert archive.namelist() == ["module.py", f"{name.dist_info}/METADATA", f"{name.dist_info}/RECORD"]


def break_off(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as executor, write_wheels(executor, ZipTime()) as packer:
        whole = packer.open(tmp_path / ONE.file_name, dist_info=ONE.dist_info)
        whole.add("module.py", 0o644, BytesContent(b"pass\n"))
        whole.close({})
        packer.finish()
        packer.open(tmp_path / TWO.file_name, dist_info=TWO.dist_info).add("module.py", 0o644, BytesContent(b"pass\n"))
        packer.drain()
        raise KeyError


def test_an_exception_keeps_closed_wheels_and_removes_open_wheels(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        break_off(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [ONE.file_name]


def copy(member: ZipMember, target: Path) -> None:
    with ThreadPoolExecutor(2) as executor, write_wheels(executor, ZipTime()) as packer:
        wheel = packer.open(target, dist_info=ONE.dist_info)
        wheel.add_packed(member, 0o755)
        wheel.close({})


def test_a_packed_member_is_copied_unchanged(tmp_path: Path) -> None:
    (member,) = read_directory(packed(tmp_path))
    copy(member, tmp_path / ONE.file_name)
    copied = read_directory(tmp_path / ONE.file_name)[0]
    assert copied.packed.read() == member.packed.read()
    assert copied.mode & 0o777 == 0o755


def test_a_damaged_packed_member_leaves_no_wheel(tmp_path: Path) -> None:
    source = packed(tmp_path)
    (member,) = read_directory(source)
    data = bytearray(source.read_bytes())
    data[member.packed.offset] ^= 0xFF
    source.write_bytes(data)
    (member,) = read_directory(source)
    with pytest.raises(InputError, match=r"lib/data\.txt"):
        copy(member, tmp_path / ONE.file_name)
    assert [path.name for path in tmp_path.iterdir()] == ["source.zip"]


class Steps(Silent):
    """Keeps what was reported."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    def advance(self, amount: int) -> None:
        """Keep an amount."""
        self.steps.append(amount)


@pytest.mark.parametrize("digest", [None, Digest(0, bytes(32), 40 << 20)])
def test_a_large_copied_member_is_reported_piece_by_piece(tmp_path: Path, digest: Digest | None) -> None:
    with zipfile.ZipFile(tmp_path / "source.zip", "w") as archive:
        archive.writestr("lib/data.txt", bytes(40 << 20))
    (member,) = read_directory(tmp_path / "source.zip")
    progress = Steps()
    with ThreadPoolExecutor(2) as executor, write_wheels(executor, ZipTime(), progress=progress) as packer:
        wheel = packer.open(tmp_path / ONE.file_name, dist_info=ONE.dist_info)
        wheel.add_packed(member, 0o644, digest)
        wheel.close({})
    steps = [step for step in progress.steps if step > 1000]
    assert len(steps) > 4
    assert sum(steps) == 40 << 20


def test_a_large_packed_file_is_reported_block_by_block(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(range(256)) * (100 << 12))
    progress = Steps()
    with ThreadPoolExecutor(2) as executor, write_wheels(executor, ZipTime(), progress=progress) as packer:
        wheel = packer.open(tmp_path / ONE.file_name, dist_info=ONE.dist_info)
        wheel.add("lib/large", 0o644, FileContent(FileRange.whole(tmp_path / "large")))
        wheel.close({})
    assert max(progress.steps) == 16 << 20
    assert sum(step for step in progress.steps if step > 1000) == 100 << 20
