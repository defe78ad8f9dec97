"""Sdists that are read: files of strangers, of which installers may unpack something else."""

from __future__ import annotations

import gzip
import random
import re
import tarfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core import compression
from rocwheel.core.errors import InputError
from rocwheel.wheels.sdist import read_sdist_file
from tests.support.bombs import tar_block
from tests.support.damage import damaged
from tests.support.processes import run_python

if TYPE_CHECKING:
    from pathlib import Path


ENOUGH = 300 << 20
"""Bytes of addresses: rocwheel's imports take half of them."""
END = bytes(1024)


INFO = tar_block(tarfile.REGTYPE, b"Name: a\n", name="a-1.0/PKG-INFO")
OTHER = tar_block(tarfile.REGTYPE, b"x" * 700, name="a-1.0/setup.py")
LONG = tar_block(tarfile.GNUTYPE_LONGNAME, b"a-1.0/" + b"n" * 300 + b"\0") + OTHER
RECORDS = tar_block(tarfile.XHDTYPE, b"12 path=a/b\n" + b"12 size=700\n") + OTHER
SDIST_FILE_READ = """
import sys
from rocwheel.wheels.sdist import read_sdist_file
try:
    print(read_sdist_file(__import__("pathlib").Path(sys.argv[1]), "PKG-INFO", to_end=True))
except Exception as e:
    print(type(e).__name__, e)
"""


LESS = """
from rocwheel.core import compression as expansion
expansion._TRUSTED >>= 2
"""
"""Take a quarter of what a small file may unpack to, in less time."""


def sdist(folder: Path, *blocks: bytes) -> Path:
    path = folder / "a-1.0.tar.gz"
    path.write_bytes(gzip.compress(b"".join(blocks)))
    return path


def read_or_refuse(path: Path) -> bytes | None:
    """Read the file, or none of a sdist that is refused; no other error is fit for users."""
    try:
        return read_sdist_file(path, "PKG-INFO", to_end=True)
    except InputError:
        return None


def test_the_first_matching_file_in_the_top_folder_is_read(tmp_path: Path) -> None:
    deeper = tar_block(tarfile.REGTYPE, b"deeper", name="a-1.0/a.egg-info/PKG-INFO")
    second = tar_block(tarfile.REGTYPE, b"second", name="a-1.0/PKG-INFO")
    assert read_sdist_file(sdist(tmp_path, deeper, INFO, second, END), "PKG-INFO") == b"Name: a\n"


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(tar_block(tarfile.REGTYPE, b"Name: b\n", name="a-1.0/PKG-INFO"), id="of the same name"),
        pytest.param(tar_block(tarfile.REGTYPE, b"Name: b\n", name="a-1.0/./PKG-INFO"), id="of another spelling"),
        pytest.param(tar_block(tarfile.SYMTYPE, b"", name="a-1.0/PKG-INFO"), id="that is a link"),
    ],
)
def test_a_second_file_that_installers_would_keep_is_refused(tmp_path: Path, second: bytes) -> None:
    path = sdist(tmp_path, INFO, second, END)
    with pytest.raises(InputError, match=r"has a-1\.0/PKG-INFO twice; expected each file only once"):
        read_sdist_file(path, "PKG-INFO", to_end=True)


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info.tobuf()


def unpacked(path: Path) -> bytes:
    """Unpack an sdist beside itself, as some installers do, and return the metadata that it leaves."""
    with tarfile.open(path) as tar:
        tar.extractall(path.parent)
    return (path.parent / "a-1.0/PKG-INFO").read_bytes()


@pytest.mark.parametrize(
    ("member", "second", "through"),
    [
        (link("a-1.0/b", "."), "a-1.0/b/PKG-INFO", "a-1.0/b"),
        (link("a-1.0/b", "PKG-INFO"), "a-1.0/b", "a-1.0/b"),
        (link("a-1.0/b", "a-1.0/PKG-INFO", tarfile.LNKTYPE), "a-1.0/./b", "a-1.0/b"),
    ],
    ids=["a folder's link", "a symlink itself", "a hard link itself"],
)
def test_a_file_written_through_a_link_is_refused(tmp_path: Path, member: bytes, second: str, through: str) -> None:
    other = tar_block(tarfile.REGTYPE, b"Name: b\n", name=second)
    path = sdist(tmp_path, INFO, member, other, END)
    assert unpacked(path) == b"Name: b\n"
    with pytest.raises(InputError) as caught:
        read_sdist_file(path, "PKG-INFO", to_end=True)
    assert str(caught.value) == (
        f"{path}: has {second.replace('/./', '/')!r}, which would be written through the link {through!r}; "
        "expected no files behind links. Build or fetch it again."
    )


@pytest.mark.parametrize(
    ("kind", "target"), [(tarfile.SYMTYPE, "evil"), (tarfile.LNKTYPE, "a-1.0/evil")], ids=["symlink", "hard link"]
)
def test_a_link_created_through_a_link_is_refused(tmp_path: Path, kind: bytes, target: str) -> None:
    evil = tar_block(tarfile.REGTYPE, b"Name: b\n", name="a-1.0/evil")
    path = sdist(tmp_path, INFO, evil, link("a-1.0/d", "."), link("a-1.0/d/PKG-INFO", target, kind), END)
    assert unpacked(path) == b"Name: b\n"
    with pytest.raises(
        InputError, match=r"has 'a-1\.0/d/PKG-INFO', which would be written through the link 'a-1\.0/d';"
    ):
        read_sdist_file(path, "PKG-INFO", to_end=True)


def test_a_file_name_that_climbs_out_of_a_link_is_refused(tmp_path: Path) -> None:
    deep = tar_block(tarfile.REGTYPE, b"", name="a-1.0/d/e/f")
    other = tar_block(tarfile.REGTYPE, b"Name: b\n", name="a-1.0/l/../../PKG-INFO")
    path = sdist(tmp_path, INFO, deep, link("a-1.0/l", "d/e"), other, END)
    assert unpacked(path) == b"Name: b\n"
    with pytest.raises(InputError, match=r"has 'a-1\.0/l/\.\./\.\./PKG-INFO', which contains '\.\.';"):
        read_sdist_file(path, "PKG-INFO", to_end=True)


def test_a_duplicate_link_is_not_treated_as_pointing_elsewhere(tmp_path: Path) -> None:
    path = sdist(tmp_path, INFO, link("a-1.0/l", "x"), link("a-1.0/l", "y"), END)
    assert read_sdist_file(path, "PKG-INFO", to_end=True) == b"Name: a\n"


def _file(name: str) -> bytes:
    return tar_block(tarfile.REGTYPE, b"[build-system]\n", name=name)


@pytest.mark.parametrize(
    ("blocks", "found"),
    [
        ((INFO, _file("b-1.0/PKG-INFO")), "has 'b-1.0/PKG-INFO' outside of the top folder 'a-1.0'"),
        ((_file("pyproject.toml"), INFO), "has 'pyproject.toml' outside of the top folder 'pyproject.toml'"),
        ((INFO, _file("pyproject.toml")), "has 'pyproject.toml' outside of the top folder 'a-1.0'"),
        ((INFO, link("b-1.0", "a-1.0"), _file("b-1.0/PKG-INFO")), "has 'b-1.0' outside of the top folder 'a-1.0'"),
        ((INFO, _file("a-1.0/pyproject.toml"), _file("a-1.0/pyproject.toml")), "has a-1.0/pyproject.toml twice"),
        ((INFO, _file("a-1.0/setup.py"), _file("a-1.0/./setup.py")), "has a-1.0/setup.py twice"),
    ],
    ids=["two folders", "a file before it", "a file behind it", "a link", "two of a name", "two spellings"],
)
def test_files_that_programs_would_choose_differently_are_refused(
    tmp_path: Path, blocks: tuple[bytes, ...], found: str
) -> None:
    path = sdist(tmp_path, *blocks, END)
    with pytest.raises(InputError) as caught:
        read_sdist_file(path, "PKG-INFO", to_end=True)
    assert str(caught.value).startswith(f"{path}: {found}; expected ")


@pytest.mark.parametrize("name", ["/a-1.0/x", "//a-1.0/x", "./a-1.0/x", "", ".", "a-1.0/x/"])
def test_a_name_that_does_not_begin_with_the_top_folder_is_refused(tmp_path: Path, name: str) -> None:
    path = sdist(tmp_path, INFO, _file(name), END)
    with pytest.raises(InputError) as caught:
        read_sdist_file(path, "PKG-INFO", to_end=True)
    assert str(caught.value) == (
        f"{path}: has a member with the name {name!r}; expected paths that begin with the top folder. "
        "Build or fetch it again."
    )


@pytest.mark.parametrize("kind", [tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, b"V"])
def test_a_device_or_pipe_is_refused(tmp_path: Path, kind: bytes) -> None:
    path = sdist(tmp_path, INFO, tar_block(kind, name="a-1.0/f"), END)
    with pytest.raises(InputError, match=r"has 'a-1\.0/f', which isn't a file, folder, or link; expected no devices"):
        read_sdist_file(path, "PKG-INFO", to_end=True)


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "..", "../x", "../a-1.0/PKG-INFO", "./../x", "b/..", "b/../../x", "", "l"]
)
def test_a_symlink_that_leads_out_of_the_top_folder_or_to_itself_is_refused(tmp_path: Path, target: str) -> None:
    path = sdist(tmp_path, INFO, link("a-1.0/l", target), END)
    with pytest.raises(InputError) as caught:
        read_sdist_file(path, "PKG-INFO", to_end=True)
    assert str(caught.value) == (
        f"{path}: has the link 'a-1.0/l' to {target!r}; expected a symlink inside the top folder. "
        "Build or fetch it again."
    )


def test_links_inside_the_top_folder_are_accepted(tmp_path: Path) -> None:
    hard = link("a-1.0/h", "a-1.0/PKG-INFO", tarfile.LNKTYPE)
    path = sdist(tmp_path, INFO, link("a-1.0/d/l", "../PKG-INFO"), link("a-1.0/e", "."), hard, END)
    assert read_sdist_file(path, "PKG-INFO", to_end=True) == b"Name: a\n"


@pytest.mark.parametrize("target", ["/etc/passwd", "../x", "PKG-INFO", "a-1.0/later", "a-1.0/h"])
def test_a_hard_link_to_anything_but_an_earlier_file_is_refused(tmp_path: Path, target: str) -> None:
    path = sdist(tmp_path, INFO, link("a-1.0/h", target, tarfile.LNKTYPE), _file("a-1.0/later"), END)
    with pytest.raises(InputError) as caught:
        read_sdist_file(path, "PKG-INFO", to_end=True)
    assert f"has the link 'a-1.0/h' to {target!r}; expected a hard link to an earlier file" in str(caught.value)


@pytest.mark.parametrize(
    "member",
    [
        _file("a-1.0/PKG-INFO/x"),
        tar_block(tarfile.DIRTYPE, name="a-1.0/PKG-INFO"),
        link("a-1.0/PKG-INFO/x", "y"),
    ],
    ids=["a file below it", "a folder", "a link below it"],
)
def test_a_file_that_is_also_a_folder_is_refused(tmp_path: Path, member: bytes) -> None:
    for order in ((INFO, member), (member, INFO)):
        path = sdist(tmp_path, *order, _file("a-1.0/PKG-INFO.txt"), END)
        with pytest.raises(InputError, match=r"has '?a-1\.0/PKG-INFO'? (as a file and as a folder|twice)"):
            read_sdist_file(path, "PKG-INFO", to_end=True)


def test_a_file_missing_from_an_sdist_returns_none(tmp_path: Path) -> None:
    assert read_sdist_file(sdist(tmp_path, OTHER, END), "PKG-INFO") is None


def test_data_after_the_file_is_read_only_on_request(tmp_path: Path) -> None:
    path = sdist(tmp_path, INFO, b"\xff" * 512, END)
    assert read_sdist_file(path, "PKG-INFO") == b"Name: a\n"
    with pytest.raises(InputError, match=re.escape(f"{path}: isn't a readable .tar.gz archive (a header is damaged")):
        read_sdist_file(path, "PKG-INFO", to_end=True)


def test_a_file_larger_than_16_mib_is_refused(tmp_path: Path) -> None:
    large = tar_block(tarfile.REGTYPE, name="a-1.0/PKG-INFO", size=(16 << 20) + 1)
    with pytest.raises(InputError, match=r"a-1\.0/PKG-INFO is 16777217 bytes long; expected at most 16 MiB$"):
        read_sdist_file(sdist(tmp_path, large), "PKG-INFO")


def test_an_sdist_with_an_extreme_unpacked_size_is_refused_with_little_memory(tmp_path: Path) -> None:
    """Given 512 MiB of zeros, of which a quarter may be unpacked."""
    path = write_zeros(tmp_path, 8)
    assert run_python(LESS + SDIST_FILE_READ, path, memory=400 << 20) == (
        f"InputError {path}: unpacks to more than 268435456 bytes; expected at most 1 GiB, or 200 times its packed "
        "size. "
        "Don't unpack this file unless you trust its source.\n"
    )


def test_a_large_sdist_may_be_compressed_to_one_percent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_TRUSTED", 4096)
    content = random.Random(1).randbytes(1000) + bytes(100_000)
    path = sdist(tmp_path, INFO, tar_block(tarfile.REGTYPE, content, name="a-1.0/a"), END)
    assert path.stat().st_size < 2000
    assert read_sdist_file(path, "PKG-INFO", to_end=True) == b"Name: a\n"


def test_an_extreme_number_of_links_is_refused_with_little_memory(tmp_path: Path) -> None:
    names = (f"a-1.0/{number}/{'x/' * 50}l" for number in range(2000))
    path = sdist(tmp_path, *(link(name, "y") for name in names), END)
    assert run_python(SDIST_FILE_READ, path, memory=400 << 20) == (
        f"InputError {path}: isn't a readable .tar.gz archive (the links and their folders have more than 50000 names)"
        ". Build or fetch it again.\n"
    )


def write_zeros(folder: Path, members: int) -> Path:
    """Write an sdist with a file of zeros, as members of gzip of which each has 64 MiB."""
    path = folder / "a-1.0.tar.gz"
    header = tar_block(tarfile.REGTYPE, name="a-1.0/x", size=9 << 30)
    path.write_bytes(gzip.compress(header) + gzip.compress(bytes(64 << 20), 9) * members)
    return path


@given(damaged([b"".join(blocks) for blocks in ((OTHER, INFO, END), (LONG, INFO, END), (RECORDS, INFO, END))]))
def test_a_damaged_tar_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = sdist(tmp_path_factory.mktemp("sdist"), data)
    found = read_or_refuse(path)
    assert found is None or len(found) < len(data)


@given(damaged([gzip.compress(OTHER + INFO + END)]) | st.binary(max_size=100))
def test_a_damaged_gzip_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("sdist") / "a-1.0.tar.gz"
    path.write_bytes(data)
    assert read_or_refuse(path) in (b"Name: a\n", None)
