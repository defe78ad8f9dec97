"""Tests of `rocwheel.wheels.tar`."""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import TYPE_CHECKING

import pytest

from rocwheel.wheels.tar import BoundedTar, MemberLinks, SparseMemberError
from tests.support.bombs import tar_block as block
from tests.support.processes import run_python

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


PAX = tarfile.XHDTYPE
GLOBAL = tarfile.XGLTYPE
LONG_NAME = tarfile.GNUTYPE_LONGNAME

READ = """
import sys, gzip
from rocwheel.wheels.tar import open_tar_stream, tar_members
try:
    with gzip.open(sys.argv[1]) as content, open_tar_stream(content) as tar:
        print(sum(1 for _ in tar_members(tar)), "members")
except Exception as e:
    print(type(e).__name__, e)
"""
ENOUGH = 300 << 20
"""Bytes of addresses: rocwheel's imports take half of them."""


def record(keyword: bytes, value: bytes) -> bytes:
    rest = b" " + keyword + b"=" + value + b"\n"
    return next(b"%d" % n + rest for n in range(len(rest), len(rest) + 10) if len(b"%d" % n + rest) == n)


FILE = block(tarfile.REGTYPE)
END = bytes(1024)


def names(data: bytes) -> list[str]:
    with BoundedTar.open(fileobj=io.BytesIO(data), mode="r:") as tar:
        return [info.name for info in tar.forward()]


def refusal(data: bytes) -> str:
    with pytest.raises(tarfile.ReadError) as caught:
        names(data)
    return str(caught.value)


def test_long_names_from_gnu_and_pax_headers_are_read() -> None:
    long, path = "d/" * 500 + "gnu", "d/" * 500 + "pax\n=ä"
    data = block(LONG_NAME, long.encode() + b"\0") + FILE + block(PAX, record(b"path", path.encode())) + FILE + END
    assert names(data) == [long, path]


def test_global_records_are_read() -> None:
    data = block(GLOBAL, record(b"comment", b"c" * 900) + record(b"mtime", b"7")) + FILE + FILE + END
    with BoundedTar.open(fileobj=io.BytesIO(data), mode="r:") as tar:
        assert [(info.name, info.mtime) for info in tar.forward()] == [("n", 7), ("n", 7)]


def test_the_last_of_two_records_wins() -> None:
    data = block(PAX, record(b"path", b"first") + record(b"path", b"second")) + FILE + END
    assert names(data) == ["second"]


def test_attributes_of_64_kib_are_skipped() -> None:
    assert names(block(PAX, record(b"SCHILY.xattr.user.x", b"1" * (64 << 10))) + FILE + END) == ["n"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (block(tarfile.REGTYPE, size=-512), "a header before byte 512 has a negative size"),
        (block(LONG_NAME, size=-512), "a header before byte 512 has a negative size"),
        (block(PAX, record(b"size", b"-512")) + FILE, "a header before byte 512 has a negative size"),
        (block(LONG_NAME, size=3 << 30), "a name is 3221225472 bytes long"),
        (block(PAX, size=3 << 30), "the pax records of a member are 3221225472 bytes long"),
        (block(GLOBAL, size=3 << 30), "the pax records of a member are 3221225472 bytes long"),
        (block(tarfile.SOLARIS_XHDTYPE, size=3 << 30), "the pax records of a member are 3221225472 bytes long"),
        (block(PAX, record(b"path", b"x" * 5000)) + FILE, "a name is 5000 bytes long"),
        (block(LONG_NAME, b"name\0") * 9 + FILE, "too many headers in a row belong to the same member"),
        (block(PAX, record(b"path", b"x")) * 3000 + FILE, "too many headers in a row belong to the same member"),
        (block(PAX, b"x" * 100) + FILE, "a pax record is damaged"),
        (block(PAX, b"2 " * 500 + b"a=\n") + FILE, "a pax record is damaged"),
        (FILE, "the end is missing"),
    ],
)
def test_excessive_or_damaged_headers_are_refused(data: bytes, expected: str) -> None:
    tail = b"" if data == FILE else END
    assert refusal(data + tail) == expected


@pytest.mark.parametrize(
    "data",
    [
        block(tarfile.GNUTYPE_SPARSE, name="holes"),
        block(PAX, record(b"GNU.sparse.major", b"1") + record(b"GNU.sparse.name", b"holes")) + FILE,
        block(PAX, record(b"GNU.sparse.map", b"0,1," * 900)) + block(tarfile.REGTYPE, name="holes"),
    ],
    ids=["old", "1.0", "0.1"],
)
def test_a_sparse_member_is_refused_before_its_map_is_read(data: bytes) -> None:
    with pytest.raises(SparseMemberError) as caught:
        names(data + END)
    assert caught.value.name == "holes"


def test_the_number_of_members_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocwheel.wheels.tar.MAX_MEMBERS", 2)
    assert names(FILE * 2 + END) == ["n", "n"]
    assert refusal(FILE * 3 + END) == "the archive has more than 2 members"


def pack(path: Path, parts: Iterable[bytes]) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        for part in parts:
            file.write(part)
    return path


def many(part: bytes, count: int) -> Iterator[bytes]:
    yield from (part * 100 for _ in range(count // 100))
    yield END


def many_paths() -> Iterator[bytes]:
    return many(block(PAX, record(b"path", b"x" * 4000)) + FILE, 20_000)


def unknown_records_for_all() -> Iterator[bytes]:
    yield block(GLOBAL, b"".join(record(b"k%06d" % n, b"v") for n in range(60_000)))
    yield from many(block(PAX, record(b"path", b"a")) + FILE, 2000)


TOO_MANY_NAMES = "ReadError the names total more than 67108864 bytes"


@pytest.mark.parametrize(
    ("parts", "printed"),
    [
        (many(block(LONG_NAME, b"x" * 4000) + FILE, 20_000), TOO_MANY_NAMES),
        (many_paths(), TOO_MANY_NAMES),
        (unknown_records_for_all(), "2000 members"),
        ([block(PAX, b"2 " * (500 << 10) + b"a=\n"), FILE, END], "ReadError a pax record is damaged"),
        ([block(PAX, record(b"k", b"1" * (900 << 10))), FILE, END], "1 members"),
        ([block(LONG_NAME, size=2 << 30), *[bytes(1 << 20)] * 300], "ReadError a name is 2147483648 bytes long"),
    ],
    ids=["long names", "paths", "global records", "overlapping records", "digits", "long name"],
)
@pytest.mark.slow
def test_a_tar_bomb_is_read_with_little_memory(tmp_path: Path, parts: Iterable[bytes], printed: str) -> None:
    assert run_python(READ, pack(tmp_path / "bomb.tar.gz", parts), memory=ENOUGH) == f"{printed}\n"


@pytest.mark.parametrize(
    ("path", "link"),
    [("a/b", "a/b"), ("a/b/c/d", "a/b"), ("a", None), ("a/bc", None), ("b/a/b", None), ("", None)],
)
def test_a_member_written_through_a_link_is_detected(path: str, link: str | None) -> None:
    links = MemberLinks()
    links.add("a/b")
    assert (links.above(path) or (path if links.at(path) else None)) == link


def test_the_outermost_link_is_reported() -> None:
    links = MemberLinks()
    for path in ("a/b/c", "a/b"):
        links.add(path)
    assert links.above("a/b/c/d") == "a/b"
