"""Tests of `rocwheel.artifacts.archives`."""

from __future__ import annotations

import lzma
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rocwheel.artifacts.archives import decompress, peek
from rocwheel.core import compression
from rocwheel.core.compression import zstd
from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.scratch import path_of
from tests.support.command_line import rocwheel, with_files_up_to

pytestmark = pytest.mark.slow

DATA = bytes(range(256)) * 20_000


def _compressed(tmp_path: Path, suffix: str, data: bytes = DATA) -> Path:
    path = tmp_path / f"blas_lib_generic.tar.{suffix}"
    path.write_bytes(lzma.compress(data) if suffix == "xz" else zstd.compress(data))
    return path


@pytest.mark.parametrize("suffix", ["xz", "zst"])
def test_an_archive_is_decompressed(tmp_path: Path, suffix: str) -> None:
    with decompress(_compressed(tmp_path, suffix)) as spool:
        assert Path(path_of(spool)).read_bytes() == DATA


def test_the_decompressed_file_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    with decompress(_compressed(tmp_path, "zst")) as spool:
        assert list(scratch.iterdir()) == []
        assert os.fstat(spool.fileno()).st_dev == scratch.stat().st_dev
        assert os.fstat(spool.fileno()).st_nlink == 0


def test_the_reported_bytes_add_up_to_the_size_of_the_archive(tmp_path: Path) -> None:
    path = _compressed(tmp_path, "xz", os.urandom(3 << 20))
    told: list[int] = []
    decompress(path, advance=told.append).close()
    assert sum(told) == path.stat().st_size
    assert len(told) > 2


def test_another_process_can_read_a_range(tmp_path: Path) -> None:
    program = "import sys; file = open(sys.argv[1], 'rb'); file.seek(254); sys.stdout.buffer.write(file.read(4))"
    with decompress(_compressed(tmp_path, "xz")) as spool:
        command = [sys.executable, "-c", program, path_of(spool)]
        assert subprocess.run(command, capture_output=True, check=True).stdout == b"\xfe\xff\x00\x01"


@pytest.mark.parametrize("tool", ["xz", "zstd", "pzstd"])
def test_archives_from_other_tools_are_decompressed(tmp_path: Path, tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    plain = tmp_path / "a_b_c.tar"
    plain.write_bytes(DATA)
    commands = {
        "xz": ["xz", "-k", "-T2", "--block-size=1MiB"],
        "zstd": ["zstd", "-q", "--long=27", "-T2"],
        "pzstd": ["pzstd", "-q", "-p", "2"],
    }
    subprocess.run([*commands[tool], str(plain)], check=True)
    archive = next(path for path in tmp_path.iterdir() if path != plain)
    with decompress(archive) as spool:
        assert Path(path_of(spool)).read_bytes() == DATA


def test_concatenated_archives_are_decompressed_as_one_archive(tmp_path: Path) -> None:
    for suffix in ("xz", "zst"):
        path = _compressed(tmp_path, suffix)
        path.write_bytes(path.read_bytes() * 2)
        with decompress(path) as spool:
            assert Path(path_of(spool)).stat().st_size == 2 * len(DATA)


@pytest.mark.parametrize("suffix", ["xz", "zst"])
@pytest.mark.parametrize("kept", [0, 1, 0.5, 0.999])
def test_truncated_compressed_data_is_reported(tmp_path: Path, suffix: str, kept: float) -> None:
    path = _compressed(tmp_path, suffix, os.urandom(100_000))
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept) if kept < 1 else int(kept)])
    with pytest.raises(InputError) as caught:
        decompress(path)
    assert (
        str(caught.value)
        == f"{path}: is truncated: its compressed data ends early. Download or create the archive again."
    )


@pytest.mark.parametrize("suffix", ["xz", "zst"])
@pytest.mark.parametrize("at", [0, 3, 50_000])
def test_corrupt_compressed_data_is_reported(tmp_path: Path, suffix: str, at: int) -> None:
    path = tmp_path / f"a_b_c.tar.{suffix}"
    data = os.urandom(100_000)
    options: dict[int, int] = {zstd.CompressionParameter.checksum_flag: 1}
    damaged = bytearray(lzma.compress(data) if suffix == "xz" else zstd.compress(data, options=options))
    damaged[at] ^= 0xFF
    path.write_bytes(damaged)
    with pytest.raises(
        InputError,
        match=re.escape(f"{path}: ") + r"can't be decompressed \(.+\)\. Download or create the archive again\.",
    ):
        decompress(path)


def test_a_missing_archive_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a_b_c.tar.xz"
    with pytest.raises(InputError) as caught:
        decompress(path)
    assert str(caught.value) == (
        f"{path}: can't be read (No such file or directory). Check whether it exists and is readable."
    )


@pytest.mark.parametrize("suffix", ["xz", "zst"])
def test_a_full_temporary_folder_is_reported(tmp_path: Path, suffix: str) -> None:
    archive = _compressed(tmp_path, suffix)
    command = ["artifacts", "list", "--quiet", str(archive.parent)]
    done = rocwheel(*command, before=with_files_up_to(1 << 20), environ={"TMPDIR": str(tmp_path)})
    assert done.stderr == (
        f"error: {archive}: its decompressed content can't be written to {tmp_path} (File too large). "
        "Free some space in this folder, or set TMPDIR to another folder.\n"
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert list(tmp_path.iterdir()) == [archive]


def test_peek_returns_the_first_bytes_or_nothing(tmp_path: Path) -> None:
    assert peek(_compressed(tmp_path, "xz"), 3) == b"\0\1\2"
    (tmp_path / "x.zst").write_bytes(b"no zstd")
    assert peek(tmp_path / "x.zst", 3) == b""
    assert peek(tmp_path / "absent.xz", 3) == b""


@pytest.mark.parametrize("suffix", ["xz", "zst"])
def test_an_archive_that_holds_gigabytes_of_zeros_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(compression, "_TRUSTED", 64 << 20)  # instead of 1 GiB, which takes seconds
    path = _compressed(tmp_path, suffix, bytes(4 << 20))
    path.write_bytes(path.read_bytes() * 17)
    with pytest.raises(InputError) as caught:
        decompress(path)
    assert str(caught.value) == (
        f"{path}: unpacks to more than 67108864 bytes; expected at most 1 GiB, or 200 times its packed size. "
        "If you trust the archive, unpack it yourself and use the folder instead."
    )


def test_a_large_archive_may_be_compressed_to_one_hundredth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_TRUSTED", 4096)
    data = os.urandom(1000) + bytes(100_000)
    with decompress(_compressed(tmp_path, "xz", data)) as spool:
        assert Path(path_of(spool)).read_bytes() == data


def test_decompression_stops_before_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a disk that has a little more than 64 MiB left."""
    free = SimpleNamespace(f_bavail=100 << 10, f_frsize=1 << 10)
    monkeypatch.setattr(os, "fstatvfs", lambda _: free)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with decompress(_compressed(tmp_path, "zst", bytes(60 << 20))) as spool:
        assert os.fstat(spool.fileno()).st_size == 60 << 20
    with pytest.raises(WorkError, match=f"content can't be written to {tmp_path} .No space left on device"):
        decompress(_compressed(tmp_path, "zst", bytes(70 << 20)))
