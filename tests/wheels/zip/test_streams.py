"""Members whose ends programs that read an archive as a stream find by themselves, as Java and uv do."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.wheels.checking import check_members
from rocwheel.wheels.zip_directory import read_directory
from rocwheel.wheels.zip_reader import (
    ZipMember,
    digest_member,
    iter_member,
    open_content,
    open_unpacked,
    read_member,
)
from tests.support.raw_zip import RawMember, deflated, raw_zip

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXT = b"print('good')\n"
HIDDEN = RawMember(b"hidden.pth", b"import os\n").local()
PLAIN = RawMember(b"a", TEXT, deflated(TEXT), 8)
STREAM = RawMember(b"a", TEXT, deflated(TEXT), 8, flags=8)
LARGE_EXTRA = b"\1\0\x10\0" + bytes(16)


def _with_hidden(flags: int) -> RawMember:
    """Return a member with its descriptor and another member within its packed bytes."""
    packed = deflated(TEXT) + STREAM.descriptor() + HIDDEN
    return RawMember(b"a", TEXT, packed, 8, flags=flags)


def _only(path: Path, member: RawMember) -> ZipMember:
    path.write_bytes(raw_zip(member))
    (found,) = read_directory(path)
    return found


def _open(member: ZipMember) -> None:
    with open_unpacked(member):
        pass


def _open_content(member: ZipMember) -> None:
    with open_content(member):
        pass


@pytest.mark.parametrize("flags", [0, 8], ids=["sizes before it", "written as a stream"])
@pytest.mark.parametrize(
    "unpack",
    [
        digest_member,
        read_member,
        _open,
        _open_content,
        lambda member: deque(iter_member(member, copy_to=bytearray().extend), maxlen=0),
    ],
    ids=["hashed", "read", "opened", "opened without its hash", "copied"],
)
def test_a_member_hidden_after_the_end_of_packed_bytes_is_refused(
    tmp_path: Path, unpack: Callable[[ZipMember], object], flags: int
) -> None:
    member = _only(tmp_path / "a.zip", _with_hidden(flags))
    with pytest.raises(InputError) as caught:
        unpack(member)
    assert str(caught.value) == (
        f"{tmp_path}/a.zip!a: has extra bytes after the end of its packed bytes; expected no extra bytes. "
        "Build or download it again."
    )


def test_a_wheel_with_a_hidden_member_is_not_indexed(tmp_path: Path) -> None:
    path = tmp_path / "a-1-py3-none-any.whl"
    path.write_bytes(raw_zip(_with_hidden(8), RawMember(b"a-1.dist-info/RECORD", b"a,,\na-1.dist-info/RECORD,,\n")))
    with pytest.raises((InputError, ProblemsError), match="has extra bytes after the end"):
        check_members(path, read_directory(path))


@pytest.mark.parametrize("size", [(1 << 20) + 1, 3 << 20], ids=["a byte", "several pieces"])
def test_hidden_bytes_are_found_after_the_first_piece(tmp_path: Path, size: int) -> None:
    content = bytes((1 << 20) - 5 * 17)
    packed = deflated(content, 0)
    assert len(packed) == 1 << 20
    member = _only(tmp_path / "a.zip", RawMember(b"a", content, packed.ljust(size, b"x"), 8))
    with pytest.raises(InputError, match="has extra bytes after the end of its packed bytes"):
        digest_member(member)


def test_packed_bytes_without_an_end_marker_are_refused(tmp_path: Path) -> None:
    # The end mark of deflate lacks: a whole block that is not the last.
    unended = b"\0" + len(TEXT).to_bytes(2, "little") + (len(TEXT) ^ 0xFFFF).to_bytes(2, "little") + TEXT
    member = _only(tmp_path / "a.zip", RawMember(b"a", TEXT, unended, 8))
    with pytest.raises(InputError) as caught:
        digest_member(member)
    assert str(caught.value) == (
        f"{tmp_path}/a.zip!a: the packed bytes end too early; expected a complete stream. Build or download it again."
    )


@pytest.mark.parametrize(
    ("member", "found"),
    [
        pytest.param(
            RawMember(b"a", TEXT, TEXT + HIDDEN), "!a: is stored in 64 bytes; expected its unpacked size, 14", id="more"
        ),
        pytest.param(
            RawMember(b"a", TEXT, b""), "!a: is stored in 0 bytes; expected its unpacked size, 14", id="fewer"
        ),
    ],
)
def test_a_stored_member_with_a_different_packed_size_is_refused(tmp_path: Path, member: RawMember, found: str) -> None:
    with pytest.raises(InputError) as caught:
        _only(tmp_path / "a.zip", member)
    assert found in str(caught.value)


def _stream(behind: bytes, extra: bytes = b"") -> RawMember:
    return RawMember(b"a", TEXT, deflated(TEXT), 8, flags=8, extra=extra, behind=behind)


@pytest.mark.parametrize(
    "member",
    [
        pytest.param(STREAM, id="with a signature"),
        pytest.param(_stream(STREAM.descriptor()[4:]), id="without one"),
        pytest.param(_stream(STREAM.descriptor("<4sI2Q"), LARGE_EXTRA), id="of 64 bits"),
        pytest.param(_stream(STREAM.descriptor("<4sI2Q")[4:], LARGE_EXTRA), id="of 64 bits without a signature"),
        pytest.param(RawMember(b"a", TEXT, deflated(TEXT), 8, flags=8, directory_flags=0), id="only in its header"),
        pytest.param(RawMember(b"a", TEXT, deflated(TEXT), 8, directory_flags=8), id="none, only in the directory"),
    ],
)
def test_common_data_descriptors_are_read(tmp_path: Path, member: RawMember) -> None:
    assert read_member(_only(tmp_path / "a.zip", member)) == TEXT


@pytest.mark.parametrize(
    "behind",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(STREAM.descriptor()[:-1], id="a part"),
        pytest.param(STREAM.descriptor() + b"\0", id="a byte more"),
        pytest.param(STREAM.descriptor() + HIDDEN, id="a hidden member behind it"),
        pytest.param(b"\0" * 16, id="zeros"),
        pytest.param(RawMember(b"a", b"other").descriptor(), id="that of another"),
        pytest.param(STREAM.descriptor("<4sI2Q"), id="64 bits that nothing announces"),
    ],
)
def test_a_stream_without_its_data_descriptor_is_refused(tmp_path: Path, behind: bytes) -> None:
    with pytest.raises(InputError) as caught:
        _only(tmp_path / "a.zip", _stream(behind))
    assert str(caught.value) == (
        f"{tmp_path}/a.zip!a: isn't followed directly by its data descriptor; expected a data descriptor, which "
        "follows each streamed member. Build or download it again."
    )


def test_a_32_bit_descriptor_is_refused_if_64_bits_are_announced(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="isn't followed directly by its data descriptor"):
        _only(tmp_path / "a.zip", _stream(STREAM.descriptor(), LARGE_EXTRA))


def test_a_descriptor_announced_only_in_the_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="bytes 47 to 63 don't belong to any member"):
        _only(
            tmp_path / "a.zip",
            RawMember(b"a", TEXT, deflated(TEXT), 8, directory_flags=8, behind=STREAM.descriptor()),
        )
