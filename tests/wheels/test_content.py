"""Tests of `rocwheel.wheels.content`."""

from __future__ import annotations

import hashlib
import io
import resource
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.core.patch import FilePatch, Replacement
from rocwheel.core.reading import FileRange
from rocwheel.wheels.content import (
    BytesContent,
    Digest,
    FileContent,
    Hasher,
    PatchedContent,
    SequenceContent,
    TarFile,
    TarLink,
    digest_content,
    tar_content,
)
from tests.wheels.doubles import ZeroContent, read_all

if TYPE_CHECKING:
    from rocwheel.wheels.content import Content
    from tests.support.tools import RunTool


MIB = 1 << 20


def digest_of(data: bytes) -> Digest:
    return Digest(zlib.crc32(data), hashlib.sha256(data).digest(), len(data))


@given(st.lists(st.binary(max_size=2000), max_size=6))
def test_a_digest_equals_the_digest_of_the_joined_bytes(parts: list[bytes]) -> None:
    hasher = Hasher()
    for part in parts:
        hasher.update(part)
    assert hasher.digest() == digest_of(b"".join(parts))
    sequence = SequenceContent(tuple(map(BytesContent, parts)))
    assert digest_content(SequenceContent((sequence, BytesContent(b"tail")))) == digest_of(b"".join([*parts, b"tail"]))


def test_a_digest_over_many_steps_equals_the_digest_of_the_whole() -> None:
    size = 33 * MIB + 5
    assert digest_content(ZeroContent(size)) == digest_of(bytes(size))


def test_a_file_may_be_hashed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "large"
    data = b"0123456789abcdef" * (2 * MIB + 1)
    path.write_bytes(data)
    hasher = Hasher()
    with FileContent(FileRange.whole(path)).open(0, len(data)) as (view,):
        hasher.update(view)
        assert view[-16:] == data[-16:]
    assert hasher.digest() == digest_of(data)


@pytest.mark.slow
def test_hashing_a_file_keeps_little_of_it_resident(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(512 << 20)
    # VmHWM, not ru_maxrss: that one begins with the size of the process that this one was forked from.
    program = """
import sys
from pathlib import Path
from rocwheel.wheels.content import FileContent
from rocwheel.wheels.content import digest_content
from rocwheel.core.reading import FileRange
digest_content(FileContent(FileRange.whole(Path(sys.argv[1]))))
status = Path("/proc/self/status").read_text().splitlines()
print(next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:")))
"""
    done = subprocess.run([sys.executable, "-c", program, path], check=True, capture_output=True, text=True)
    assert int(done.stdout) < 256 * MIB


PARTS = st.lists(st.binary(max_size=9), max_size=8)


def read(content: Content, start: int, stop: int) -> bytes:
    with content.open(start, stop) as buffers:
        return b"".join(buffers)


@given(PARTS, st.integers(0, 80), st.integers(0, 80))
def test_a_range_of_a_sequence_equals_the_range_of_the_joined_bytes(parts: list[bytes], start: int, stop: int) -> None:
    joined = b"".join(parts)
    content = SequenceContent(tuple(map(BytesContent, parts)))
    start, stop = sorted((min(start, len(joined)), min(stop, len(joined))))
    assert content.size == len(joined)
    assert read(content, start, stop) == joined[start:stop]


@given(PARTS, st.integers(1, 8))
def test_a_sequence_may_contain_sequences(parts: list[bytes], border: int) -> None:
    inner = SequenceContent(tuple(map(BytesContent, parts[:border])))
    content = SequenceContent((BytesContent(b"head"), inner, *map(BytesContent, parts[border:])))
    assert read(content, 2, content.size) == b"ad" + b"".join(parts)


def test_a_range_of_a_file_excludes_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "archive.tar"
    path.write_bytes(b"..libelf.so..")
    content = FileContent(FileRange(str(path), 2, 9))
    assert content.size == 9
    assert read(content, 3, 6) == b"elf"


def test_a_range_inside_one_part_is_not_copied() -> None:
    data = b"one part"
    content = SequenceContent((BytesContent(b"head"), BytesContent(data)))
    with content.open(6, 12) as (buffer,):
        assert buffer.obj is data


@pytest.fixture
def patched(tmp_path: Path) -> PatchedContent:
    """Return 6 MiB of a file, a run path changed at 5 MiB, and zeros for the mebibyte before it."""
    path = tmp_path / "librocsparse.so.1"
    path.write_bytes(b"code" * (6 * MIB // 4))
    changes = (Replacement(4 * MIB, 5 * MIB), Replacement.of(5 * MIB, b"$ORIGIN"))
    return PatchedContent(FileRange.whole(path), FilePatch(6 * MIB, changes))


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        pytest.param(0, 2 * MIB, b"code" * (MIB // 2), id="unchanged"),
        pytest.param(4 * MIB + 1, 4 * MIB + 9, bytes(8), id="zeros"),
        pytest.param(4 * MIB - 4, 5 * MIB + 9, b"code" + bytes(MIB) + b"$ORIGINec", id="changed"),
        pytest.param(3, 3, b"", id="nothing"),
    ],
)
def test_a_range_of_a_patched_file_includes_its_changes(
    patched: PatchedContent, start: int, stop: int, expected: bytes
) -> None:
    assert read(patched, start, stop) == expected


def test_an_unchanged_range_of_a_patched_file_is_not_copied(
    patched: PatchedContent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is yielded is the very object that was read."""
    data = []

    def note(self: FileRange) -> bytes:
        data.append(whole(self))
        return data[-1]

    whole = FileRange.read
    monkeypatch.setattr(FileRange, "read", note)
    with patched.open(0, 2 * MIB) as (buffer,):
        assert buffer.obj is data[0]


def test_a_sequence_may_have_more_files_than_a_process_may_open(tmp_path: Path) -> None:
    sources = []
    for number in range(100):
        path = tmp_path / f"header-{number}.h"
        path.write_bytes(b"%3d" % number)
        sources.append(FileContent(FileRange.whole(path)))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 50, limits[1]))
    try:
        data = read(SequenceContent(tuple(sources)), 0, 300)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert data == b"".join(b"%3d" % number for number in range(100))


def test_a_part_that_shrank_is_named(tmp_path: Path) -> None:
    path = tmp_path / "shrunk.h"
    path.write_bytes(b"0123456789")
    content = SequenceContent((BytesContent(b"head"), FileContent(FileRange.whole(path))))
    path.write_bytes(b"012")
    with pytest.raises(InputError, match=r"shrunk\.h: changed from 10 to 3 bytes while it was being read"):
        read(content, 0, content.size)


PATH = st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=150).filter(
    lambda name: name.strip(".") != ""
)
members = st.dictionaries(
    PATH,
    st.one_of(
        st.builds(
            lambda mode, data: TarFile("", mode, BytesContent(data)),
            st.sampled_from([0o644, 0o755]),
            st.binary(max_size=1100),
        ),
        st.builds(lambda text: TarLink("", text), PATH),
    ),
    max_size=6,
)


@given(members)
def test_the_standard_library_reads_back_every_member(added: dict[str, TarFile | TarLink]) -> None:
    named = [
        TarFile(path, member.mode, member.content) if isinstance(member, TarFile) else TarLink(path, member.text)
        for path, member in added.items()
    ]
    with tarfile.open(fileobj=io.BytesIO(read_all(tar_content(named, mtime=1_700_000_000)))) as archive:
        infos = archive.getmembers()
        assert [(info.uid, info.gid, info.mtime) for info in infos] == [(0, 0, 1_700_000_000)] * len(named)
        assert [_read(archive, info) for info in infos] == [_expected(member) for member in named]


def _read(archive: tarfile.TarFile, info: tarfile.TarInfo) -> tuple[str, int, str | bytes]:
    file = archive.extractfile(info) if info.isfile() else None
    return info.name, info.mode, info.linkname if file is None else file.read()


def _expected(member: TarFile | TarLink) -> tuple[str, int, str | bytes]:
    if isinstance(member, TarLink):
        return member.path, 0o777, member.text
    return member.path, member.mode, read_all(member.content)


def test_gnu_tar_restores_files_modes_links_and_times(tmp_path: Path, run_tool: RunTool) -> None:
    long = "/".join(["share/a-long-folder-name"] * 12)
    added: list[TarFile | TarLink] = [
        TarFile("bin/hipcc", 0o755, BytesContent(b"#!/bin/sh\n")),
        TarFile(f"{long}/ünïcode.txt", 0o644, BytesContent(b"\n" * 1000)),
        TarLink("lib/libamdhip64.so", f"{long}/libamdhip64.so.5"),
    ]
    path = tmp_path / "a.tar"
    path.write_bytes(read_all(tar_content(added, mtime=1_700_000_000)))
    run_tool(["tar", "-xf", path, "-C", tmp_path], is_silent=True)
    assert (tmp_path / "bin/hipcc").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "bin/hipcc").stat().st_mtime == 1_700_000_000
    assert (tmp_path / long / "ünïcode.txt").read_bytes() == b"\n" * 1000
    assert str((tmp_path / "lib/libamdhip64.so").readlink()) == f"{long}/libamdhip64.so.5"


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 9216, 10240, 20000])
def test_the_size_is_a_multiple_of_the_record_size(size: int) -> None:
    content = tar_content([TarFile("a", 0o644, BytesContent(bytes(size)))], mtime=0)
    assert content.size % tarfile.RECORDSIZE == 0
    assert len(read_all(content)) == content.size
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        info = tarfile.TarInfo("a")
        info.size = size
        archive.addfile(info, io.BytesIO(bytes(size)))
    assert content.size == len(written.getvalue())


def test_a_member_larger_than_eight_gigabytes_keeps_its_size() -> None:
    """The size field of the old header ends there; pax carries it as text."""
    size = 9 << 30
    content = tar_content([TarFile("large", 0o644, ZeroContent(size)), TarLink("a", "b")], mtime=0)
    with content.open(0, 4096) as buffers:
        head = b"".join(buffers)
    with tarfile.open(fileobj=io.BytesIO(head)) as archive:
        info = archive.next()
    assert info is not None
    assert (info.name, info.size) == ("large", size)
    with content.open(content.size - 10240, content.size) as buffers:
        assert b"ustar" in b"".join(buffers)
