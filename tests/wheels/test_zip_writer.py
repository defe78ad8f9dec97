"""Archives as ``zipfile`` and Info-ZIP read them, small ones and those that need ZIP64."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.writing import AtomicFile, atomic_file
from rocwheel.wheels.member_compression import DEFLATED, STORED
from rocwheel.wheels.zip_writer import ZipTime, ZipWriter

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.support.tools import RunTool

pytestmark = pytest.mark.slow

GIB = 1 << 30
ZEROS = bytes(16 << 20)
Member = tuple[str, int, bytes]
EPOCH = ZipTime()

names = st.text(st.characters(codec="utf-8", exclude_characters="\0\\"), min_size=1, max_size=12)
members = st.dictionaries(names, st.tuples(st.sampled_from([0o644, 0o755]), st.binary(max_size=300)), max_size=6)


class SparseFile(AtomicFile):
    """A file that leaves holes where zeros are written, so that many gigabytes take no room."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Skip large runs of zeros."""
        if data is ZEROS:
            self.file.seek(len(data), io.SEEK_CUR)
        else:
            super().write(data)


def add_stored(writer: ZipWriter, name: str, data: bytes) -> None:
    writer.begin(name, 0o644, STORED, len(data))
    writer.write(data)
    writer.end(len(data), zlib.crc32(data))


def add_zeros(writer: ZipWriter, name: str, steps: int) -> None:
    """Store a member of ``steps`` times 16 MiB of zeros."""
    writer.begin(name, 0o644, STORED, steps * len(ZEROS))
    crc32 = 0
    for _ in range(steps):
        writer.write(ZEROS)
        crc32 = zlib.crc32(ZEROS, crc32)
    writer.end(steps * len(ZEROS), crc32)


def write_archive(path: Path, added: Iterable[Member], moment: ZipTime = EPOCH) -> Path:
    with atomic_file(path) as file:
        writer = ZipWriter(file, moment)
        for name, mode, data in added:
            compressor = zlib.compressobj(6, zlib.DEFLATED, -15)
            writer.begin(name, mode, DEFLATED, len(data))
            writer.write(compressor.compress(data) + compressor.flush())
            writer.end(len(data), zlib.crc32(data))
        writer.close()
    return path


@given(members)
def test_zipfile_reads_back_every_member(
    tmp_path_factory: pytest.TempPathFactory, added: dict[str, tuple[int, bytes]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.zip"
    write_archive(path, ((name, mode, data) for name, (mode, data) in added.items()))
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == list(added)
        for info in archive.infolist():
            mode, data = added[info.filename]
            assert (info.external_attr >> 16, archive.read(info)) == (0o100000 | mode, data)


def test_an_archive_without_members_is_valid(tmp_path: Path) -> None:
    with zipfile.ZipFile(write_archive(tmp_path / "empty.zip", ())) as archive:
        assert archive.namelist() == []


def test_unzip_finds_no_errors_and_restores_modes(tmp_path: Path, run_tool: RunTool) -> None:
    added = [("bin/hipcc", 0o755, b"#!/bin/sh\n"), ("lib/libamdhip64.so.5", 0o644, bytes(100_000))]
    path = write_archive(tmp_path / "a.whl", added)
    assert run_tool(["unzip", "-t", path]).endswith(f"No errors detected in compressed data of {path}.\n")
    run_tool(["unzip", "-q", path, "-d", tmp_path / "out"])
    assert (tmp_path / "out/bin/hipcc").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "out/lib/libamdhip64.so.5").read_bytes() == bytes(100_000)


def test_zipinfo_shows_modes_methods_and_the_date(tmp_path: Path, run_tool: RunTool) -> None:
    moment = ZipTime.from_fields(2023, 11, 14, 22, 13, 21)
    path = write_archive(tmp_path / "a.whl", [("bin/hipcc", 0o755, b"a" * 100)], moment)
    listing = run_tool(["zipinfo", "-T", path]).splitlines()[2]
    assert listing.split() == ["-rwxr-xr-x", "2.0", "unx", "100", "b-", "defN", "20231114.221320", "bin/hipcc"]


@pytest.mark.parametrize(
    ("year", "expected"),
    [
        pytest.param(1970, (1980, 1, 1, 0, 0, 0), id="before ZIP's years"),
        pytest.param(1980, (1980, 6, 30, 23, 59, 58), id="first year"),
        pytest.param(2107, (2107, 6, 30, 23, 59, 58), id="last year"),
        pytest.param(2200, (2107, 6, 30, 23, 59, 58), id="after ZIP's years"),
    ],
)
def test_a_date_outside_the_zip_range_is_clamped(
    tmp_path: Path, year: int, expected: tuple[int, int, int, int, int, int]
) -> None:
    path = write_archive(tmp_path / "a.zip", [("a", 0o644, b"")], ZipTime.from_fields(year, 6, 30, 23, 59, 59))
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("a").date_time == expected


@pytest.mark.parametrize("count", [65_534, 65_535, 65_536, 70_000])
def test_more_members_than_fit_in_sixteen_bits_are_written(tmp_path: Path, run_tool: RunTool, count: int) -> None:
    with atomic_file(tmp_path / "many.zip") as file:
        writer = ZipWriter(file, ZipTime())
        for number in range(count):
            add_stored(writer, f"kernels/{number}", b"%d" % number)
        writer.close()
    with zipfile.ZipFile(tmp_path / "many.zip") as archive:
        assert len(archive.namelist()) == count
        assert archive.read(f"kernels/{count - 1}") == b"%d" % (count - 1)
    assert run_tool(["unzip", "-tqq", tmp_path / "many.zip"]) == ""


def test_a_member_that_starts_past_four_gigabytes_is_read(tmp_path: Path, run_tool: RunTool) -> None:
    file = SparseFile(tmp_path / "far.zip")
    writer = ZipWriter(file, ZipTime())
    for name in ("a", "b"):
        add_zeros(writer, name, 140)  # 2.2 GiB each
    add_stored(writer, "far", b"beyond 4 GiB")
    writer.close()
    file.commit()
    with zipfile.ZipFile(tmp_path / "far.zip") as archive:
        assert archive.getinfo("far").header_offset > 4 * GIB
        assert archive.read("far") == b"beyond 4 GiB"
    assert run_tool(["unzip", "-p", tmp_path / "far.zip", "far"]) == "beyond 4 GiB"


def test_a_member_larger_than_four_gigabytes_is_read(tmp_path: Path, run_tool: RunTool) -> None:
    file = SparseFile(tmp_path / "large.zip")
    writer = ZipWriter(file, ZipTime())
    add_zeros(writer, "large", 260)
    add_stored(writer, "after", b"after it")
    writer.close()
    file.commit()
    with zipfile.ZipFile(tmp_path / "large.zip") as archive:
        info = archive.getinfo("large")
        assert (info.file_size, info.compress_size) == (260 * len(ZEROS), 260 * len(ZEROS))
        assert archive.read("after") == b"after it"
    listing = run_tool(["zipinfo", "-l", tmp_path / "large.zip"]).splitlines()[2].split()
    assert (listing[1], listing[3], listing[5]) == ("4.5", str(260 * len(ZEROS)), str(260 * len(ZEROS)))


@pytest.mark.corpus
def test_unzip_finds_no_errors_in_a_member_larger_than_four_gigabytes(tmp_path: Path, run_tool: RunTool) -> None:
    file = SparseFile(tmp_path / "large.zip")
    writer = ZipWriter(file, ZipTime())
    add_zeros(writer, "large", 260)
    writer.close()
    file.commit()
    assert run_tool(["unzip", "-tqq", tmp_path / "large.zip"]) == ""


def test_a_member_announced_as_large_that_ends_small_is_read(tmp_path: Path) -> None:
    """The size of a compressed stream is only known at its end; what was announced was a bound."""
    with atomic_file(tmp_path / "a.zip") as file:
        writer = ZipWriter(file, ZipTime())
        writer.begin("_devel.tar.xz", 0o644, STORED, 5 * GIB)
        writer.write(b"xz")
        writer.end(2, zlib.crc32(b"xz"))
        writer.close()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.read("_devel.tar.xz") == b"xz"
