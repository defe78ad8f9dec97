"""Tars as GNU tar and the standard library read them."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.distributions.content.content import BytesContent
from rocwheel.distributions.content.tar_content import TarFile, TarLink, tar_content
from tests.distributions.doubles import ZeroContent, read_all

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.tools import RunTool

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


def test_gnu_tar_restores_files_modes_links_and_dates(tmp_path: Path, run_tool: RunTool) -> None:
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
def test_the_size_is_a_whole_number_of_records(size: int) -> None:
    content = tar_content([TarFile("a", 0o644, BytesContent(bytes(size)))], mtime=0)
    assert content.size % tarfile.RECORDSIZE == 0
    assert len(read_all(content)) == content.size
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        info = tarfile.TarInfo("a")
        info.size = size
        archive.addfile(info, io.BytesIO(bytes(size)))
    assert content.size == len(written.getvalue())


def test_a_member_beyond_eight_gigabytes_keeps_its_size() -> None:
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
