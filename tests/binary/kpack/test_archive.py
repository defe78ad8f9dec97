"""Tests of reading kpack archives."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings

from rocwheel.binary.kpack.archive import KpackArchive, read_archive
from rocwheel.binary.kpack.errors import KpackError
from rocwheel.binary.kpack.read_kernel import read_kernel
from rocwheel.binary.kpack.toc import Scheme
from rocwheel.core.compression import zstd
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.core.reading import FileRange
from tests.support.damage import damaged
from tests.support.example_counts import examples
from tests.support.kpack_files import by_hand, frames, make_kpack, toc

if TYPE_CHECKING:
    from pathlib import Path

CODE = b"\x7fELFcode"
KEY = "lib/libx.so#0"
ENTRY = {"type": "hsaco", "ordinal": 0, "original_size": 8}


def read(data: bytes) -> KpackArchive:
    return read_archive(memoryview(data), name="x.kpack")


def zstd_toc(blob: bytes, **changes: Any) -> dict[str, Any]:
    places = {"zstd_offset": 16, "zstd_size": len(blob), "blobs": None, "compression_scheme": "zstd-per-kernel"}
    return toc(**{**places, **changes})


def refusal(data: bytes) -> str:
    with pytest.raises(RocwheelError) as caught:
        read(data)
    return str(caught.value)


def test_archive_whose_code_begins_behind_the_header_is_read() -> None:
    data = by_hand(toc())
    archive = read(data)
    assert (archive.scheme, archive.group, archive.family, archive.targets) == (
        Scheme.NONE, "group", "gfx906", ("gfx906",))  # fmt: skip
    entry = archive.find("lib/libx.so", 0, "gfx906")
    assert entry is not None
    assert bytes(read_kernel(memoryview(data), archive, entry)) == CODE


def test_code_beyond_4_gigabytes_is_read_and_that_some_readers_refuse_it_is_said(tmp_path: Path) -> None:
    path, far = tmp_path / "x.kpack", 5 << 30
    with path.open("wb") as file:
        file.write(struct.pack("<4sIQ", b"KPAK", 1, far + len(CODE)))
        file.seek(far)
        file.write(CODE + msgspec.msgpack.encode(toc(blobs=[{"offset": far, "size": 8}])))
    with FileRange.whole(path).view() as data:
        archive = read_archive(data, name="x.kpack")
        [entry] = archive.entries
        assert (entry.offset, bytes(read_kernel(data, archive, entry))) == (far, CODE)
    assert archive.problems == (f"x.kpack: {path.stat().st_size} bytes; some readers take at most 2147483647",)


def test_table_without_code_is_read() -> None:
    assert read(by_hand(toc(blobs=[], toc={}), b"")).entries == ()


def test_zstd_frames_are_read_by_their_ordinals() -> None:
    blob = frames(zstd.compress(b"first"), zstd.compress(CODE))
    data = by_hand(zstd_toc(blob, toc={KEY: {"gfx906": {**ENTRY, "ordinal": 1}}}), blob)
    archive = read(data)
    assert [bytes(read_kernel(memoryview(data), archive, entry)) for entry in archive.entries] == [CODE]


def test_keys_may_share_a_code_object() -> None:
    targets = ["gfx906", "gfx906:xnack-", "gfx906:xnack+"]
    archive = read(by_hand(toc(gfx_arches=targets, toc={KEY: dict.fromkeys(targets, ENTRY)})))
    assert [(entry.target, entry.ordinal, entry.offset) for entry in archive.entries] == [
        (target, 0, 16) for target in targets
    ]
    assert archive.problems == ()


def test_target_is_found_only_as_it_is_spelled() -> None:
    archive = read(by_hand(toc()))
    assert archive.find("lib/libx.so", 0, "gfx906:xnack-") is None
    assert archive.find("lib/libx.so", 1, "gfx906") is None
    assert archive.find("libx.so", 0, "gfx906") is None


def test_what_readers_pass_over_may_be_missing_or_more() -> None:
    fields = toc(format_version=None, group_name=None, gfx_arch_family=None, compression_scheme=None, more=[1.5, None])
    archive = read(by_hand(fields))
    assert (archive.group, archive.family, archive.scheme, len(archive.entries)) == ("", "", Scheme.NONE, 1)


@pytest.mark.parametrize("key", ["ck_gemm", "a#b", "a#01", "a#4294967296", "a#-1", "a#²", "#", "a#" + "9" * 5000])
def test_key_of_other_software_is_kept_whole(key: str) -> None:
    [entry] = read(by_hand(toc(toc={key: {"gfx906": ENTRY}}))).entries
    assert (entry.binary, entry.index, entry.key) == (key, None, key)


def test_name_with_a_mark_is_split_at_the_last() -> None:
    [entry] = read(by_hand(toc(toc={"a#1#4294967295": {"gfx906": ENTRY}}))).entries
    assert (entry.binary, entry.index) == ("a#1", 4294967295)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "offset 0x0: a file that begins with b''; expected a kpack archive, with 'KPAK'"),
        (b"ELF!" + bytes(60), "offset 0x0: a file that begins with b'ELF!'; expected a kpack archive, with 'KPAK'"),
        (b"KPAK\1\0\0\0", "offset 0x0: a kpack archive of 8 bytes; expected at least 16"),
        (
            by_hand(toc(), version=2),
            "offset 0x4: a kpack archive of version 2; expected version 1. Ask for a newer rocwheel.",
        ),
        (
            by_hand(toc(), toc_offset=1 << 63),
            "offset 0x8: a table of contents at 0x8000000000000000 of a file that ends at ",
        ),
        (by_hand(b""), "offset 0x8: a table of contents at 0x18 of a file that ends at 0x18; expected one inside"),
        (by_hand(toc(), toc_offset=15), "offset 0x8: a table of contents at 0xf of a file that ends at "),
        (by_hand(msgspec.msgpack.encode(toc())[:-9]), "offset 0x18: MessagePack that ends early, after 1"),
        (by_hand([]), "offset 0x18: the table of contents that can't be read (Expected `object`, got `array`)"),
        (by_hand({1: 2}), "offset 0x18: the table of contents that can't be read (Expected `str`, got `int` - at `k"),
        (by_hand(b"\x82\xa1a\xc0\xa1a\xc0"), "offset 0x18: the table of contents with 2 keys, of which 1 differ"),
        (by_hand(toc(gfx_arches=None)), "offset 0x18: a table of contents without gfx_arches"),
        (by_hand(toc(gfx_arches="gfx906")), "offset 0x18: gfx_arches that can't be read (Expected `array`, got `str`)"),
        (by_hand(toc(toc=None)), "offset 0x18: a table of contents without toc"),
        (by_hand(toc(blobs=None)), "offset 0x18: a table of contents without blobs"),
        (
            by_hand(toc(compression_scheme="lz4")),
            "offset 0x18: the unknown compression scheme 'lz4'; expected none or zstd-per-kernel",
        ),
        (
            by_hand(toc(toc={KEY: {"gfx906": {**ENTRY, "ordinal": -1}}})),
            "toc entry 'lib/libx.so#0' for 'gfx906' that can't be read (Expected `int` >= 0 - at `$.ordinal`)",
        ),
        (
            by_hand(toc(toc={KEY: {"gfx906": {**ENTRY, "ordinal": 0.0}}})),
            "that can't be read (Expected `int`, got `float` - at `$.ordinal`)",
        ),
        (
            by_hand(toc(toc={KEY: {"gfx906": {**ENTRY, "original_size": True}}})),
            "that can't be read (Expected `int`, got `bool` - at `$.original_size`)",
        ),
        (by_hand(toc(blobs=[{"offset": -1, "size": 8}])), "blobs that can't be read (Expected `int` >= 0 - at `$[0]"),
        (
            by_hand(toc(toc={KEY: {"gfx906": {**ENTRY, "ordinal": 1}}})),
            "offset 0x18: lib/libx.so#0 for gfx906 has the ordinal 1; expected one of 1",
        ),
        (
            by_hand(toc(blobs=[])),
            "offset 0x18: lib/libx.so#0 for gfx906 has the ordinal 0; expected none, as there is no code object",
        ),
        (
            by_hand(toc(blobs=[{"offset": 15, "size": 8}])),
            "offset 0xf: code object 0, of 8 bytes; expected it between the header and the table of contents at 0x18",
        ),
        (
            by_hand(toc(blobs=[{"offset": 16, "size": 9}])),
            "offset 0x10: code object 0, of 9 bytes; expected it between the header and the table of contents at 0x18",
        ),
        (
            by_hand(toc(blobs=[{"offset": 20, "size": 4}, {"offset": 16, "size": 5}])),
            "offset 0x14: code object 0 begins inside of code object 1, which ends at 0x15",
        ),
    ],
)
def test_damaged_archive_is_refused_with_its_place(data: bytes, found: str) -> None:
    message = refusal(data)
    assert message.startswith("x.kpack: offset ")
    assert found in message


FRAME = frames(zstd.compress(CODE))


@pytest.mark.parametrize(
    ("blob", "changes", "found"),
    [
        (FRAME, {"zstd_offset": None}, "a table of contents without zstd_offset"),
        (FRAME, {"zstd_offset": 15}, "zstd frames from 0xf to "),
        (FRAME, {"zstd_size": len(FRAME) + 1}, "zstd frames from 0x10 to 0x2a; expected them between the header and"),
        (FRAME, {"zstd_size": 3}, "zstd frames from 0x10 to 0x13; expected them between"),
        (FRAME, {"zstd_size": len(FRAME) - 1}, "offset 0x18: zstd frame 0 of 1, which goes on behind the last of them"),
        (FRAME + b"x", {}, "offset 0x29: 1 byte after the last zstd frame; expected its end at 0x2a"),
        (struct.pack("<I", (1 << 20) + 1), {}, "offset 0x10: 1048577 zstd frames; expected at most 1048576"),
        (struct.pack("<I", 2) + FRAME[4:], {}, "zstd frame 1 of 2, which goes on behind the last of them"),
        (FRAME[:4] + b"\xff\xff\xff\xff" + FRAME[8:], {}, "zstd frame 0 of 1, which goes on behind the last of them"),
    ],
)
def test_damaged_frames_are_refused_with_their_place(blob: bytes, changes: dict[str, Any], found: str) -> None:
    message = refusal(by_hand(zstd_toc(blob, **changes), blob))
    assert message.startswith("x.kpack: offset ")
    assert found in message


def test_all_faults_of_an_archive_are_reported_together() -> None:
    entries = {"gfx906": {**ENTRY, "ordinal": 7}, "gfx908": {**ENTRY, "ordinal": 8}}
    with pytest.raises(ProblemsError) as caught:
        read(by_hand(toc(blobs=[{"offset": 0, "size": 8}], toc={KEY: entries})))
    assert len(caught.value.problems) == 3


def test_what_some_readers_refuse_or_never_find_is_a_problem() -> None:
    entries = {"gfx908": ENTRY, "gfx906": {**ENTRY, "original_size": 0}}
    assert read(by_hand(toc(toc={KEY: entries}), tail=b"\n\n")).problems == (
        "x.kpack: offset 0x18: 2 bytes after the table of contents, which some readers refuse",
        "x.kpack: offset 0x18: lib/libx.so#0 for gfx908 is never found: gfx_arches does not list the target",
        "x.kpack: offset 0x18: lib/libx.so#0 for gfx906 is empty, which some readers refuse",
    )


def test_table_of_hundreds_of_megabytes_is_not_read() -> None:
    data = by_hand(toc(), tail=bytes(64 << 20))
    with pytest.raises(KpackError, match="a table of contents of 67109049 bytes; expected at most 67108864"):
        read(data)


DAMAGED = [
    make_kpack(
        {("lib/libx.so", index, "gfx906|gfx906:xnack-"): CODE * 50 * (index + 1) for index in range(3)}, scheme=s
    )
    for s in Scheme
]


@given(damaged(DAMAGED))
@settings(max_examples=examples(300))
def test_damaged_archive_is_read_or_refused_by_name(content: bytes) -> None:
    data = memoryview(content)
    try:
        archive = read_archive(data, name="x.kpack")
        for entry in archive.entries:
            assert len(read_kernel(data, archive, entry, limit=1 << 20)) == entry.size
    except InputError as e:
        assert re.match("x.kpack: offset 0x", str(e))  # noqa: PT017
    except ProblemsError as e:
        assert str(e).startswith("x.kpack: ")  # noqa: PT017
