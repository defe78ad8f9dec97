"""Tests of `rocwheel.binary.kpack.archive`."""

from __future__ import annotations

import hashlib
import re
import resource
import struct
import subprocess
import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.binary.code_objects import CodePlace
from rocwheel.binary.kpack.archive import (
    KpackArchive,
    KpackError,
    Scheme,
    decode_map,
    iter_kernel,
    read_archive,
    read_kernel,
    value_end,
)
from rocwheel.binary.kpack.write import compress_kernel
from rocwheel.core.compression import zstd
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.core.reading import FileRange
from tests.support.damage import damaged
from tests.support.example_counts import examples
from tests.support.kpack_files import by_hand, frames, make_kpack, toc

if TYPE_CHECKING:
    from pathlib import Path


PLACE = CodePlace("x.kpack", 0x40)
SCALARS: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=300)
    | st.binary(max_size=300)
    | st.builds(msgspec.msgpack.Ext, st.integers(0, 127), st.binary(max_size=40))
    | st.just(datetime(2026, 1, 1, tzinfo=timezone.utc))
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda values: st.lists(values, max_size=5) | st.dictionaries(st.text(max_size=5), values, max_size=5)
)


@given(VALUES, st.binary(max_size=20))
def test_data_after_a_value_does_not_affect_its_end(value: object, rest: bytes) -> None:
    data = msgspec.msgpack.encode(value)
    assert value_end(data + rest, 0, PLACE) == len(data)


@given(VALUES, st.data())
def test_a_truncated_value_is_refused(value: object, data: st.DataObject) -> None:
    encoded = msgspec.msgpack.encode(value)
    size = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(KpackError, match=r"^x\.kpack: offset 0x40: MessagePack that ends early"):
        value_end(encoded[:size], 0, PLACE)


def test_large_containers_are_skipped() -> None:
    value = {"a": list(range(70000)), "b": {str(number): None for number in range(70000)}, "c": "x" * 70000}
    data = msgspec.msgpack.encode(value)
    assert value_end(data, 0, PLACE) == len(data)


@pytest.mark.parametrize("nesting", [b"\x91", b"\x81\xa0"])
def test_deep_nesting_causes_no_overflow_and_uses_no_memory(nesting: bytes) -> None:
    data = nesting * 1_000_000
    with pytest.raises(KpackError, match="MessagePack that ends early"):
        value_end(data, 0, PLACE)


def test_a_deeply_nested_value_is_read_or_refused() -> None:
    value = b"\x81\xa1a" + b"\x91" * 100_000 + b"\xc0"
    assert value_end(value, 0, PLACE) == len(value)
    with pytest.raises(KpackError, match="a table that can't be read"):
        decode_map(value, "a table", PLACE)


def test_too_many_entries_are_refused_before_reading() -> None:
    message = f"{PLACE}: a table of 1048577 entries; expected at most 1048576"
    with pytest.raises(KpackError, match=f"^{re.escape(message)}$"):
        decode_map(b"\xdf\x00\x10\x00\x01", "a table", PLACE)


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


def test_an_archive_with_code_right_after_the_header_can_be_read() -> None:
    data = by_hand(toc())
    archive = read(data)
    assert (archive.scheme, archive.group, archive.family, archive.targets) == (
        Scheme.NONE, "group", "gfx906", ("gfx906",))  # fmt: skip
    entry = archive.find("lib/libx.so", 0, "gfx906")
    assert entry is not None
    assert bytes(read_kernel(memoryview(data), archive, entry)) == CODE


def test_code_beyond_4_gigabytes_is_read_and_reported_as_a_problem(tmp_path: Path) -> None:
    path, far = tmp_path / "x.kpack", 5 << 30
    with path.open("wb") as file:
        file.write(struct.pack("<4sIQ", b"KPAK", 1, far + len(CODE)))
        file.seek(far)
        file.write(CODE + msgspec.msgpack.encode(toc(blobs=[{"offset": far, "size": 8}])))
    with FileRange.whole(path).view() as data:
        archive = read_archive(data, name="x.kpack")
        [entry] = archive.entries
        assert (entry.offset, bytes(read_kernel(data, archive, entry))) == (far, CODE)
    assert archive.problems == (f"x.kpack: {path.stat().st_size} bytes, but some readers accept at most 2147483647",)


def test_a_table_without_code_can_be_read() -> None:
    assert read(by_hand(toc(blobs=[], toc={}), b"")).entries == ()


def test_zstd_frames_are_read_by_ordinal() -> None:
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


def test_a_target_is_found_only_in_its_exact_spelling() -> None:
    archive = read(by_hand(toc()))
    assert archive.find("lib/libx.so", 0, "gfx906:xnack-") is None
    assert archive.find("lib/libx.so", 1, "gfx906") is None
    assert archive.find("libx.so", 0, "gfx906") is None


def test_optional_fields_may_be_missing_and_unknown_fields_are_ignored() -> None:
    fields = toc(format_version=None, group_name=None, gfx_arch_family=None, compression_scheme=None, more=[1.5, None])
    archive = read(by_hand(fields))
    assert (archive.group, archive.family, archive.scheme, len(archive.entries)) == ("", "", Scheme.NONE, 1)


@pytest.mark.parametrize("key", ["ck_gemm", "a#b", "a#01", "a#4294967296", "a#-1", "a#²", "#", "a#" + "9" * 5000])
def test_a_key_written_by_other_software_is_kept_whole(key: str) -> None:
    [entry] = read(by_hand(toc(toc={key: {"gfx906": ENTRY}}))).entries
    assert (entry.binary, entry.index, entry.key) == (key, None, key)


def test_a_name_with_several_hash_signs_is_split_at_the_last() -> None:
    [entry] = read(by_hand(toc(toc={"a#1#4294967295": {"gfx906": ENTRY}}))).entries
    assert (entry.binary, entry.index) == ("a#1", 4294967295)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "offset 0x0: a file that begins with b''; expected a kpack archive, which begins with 'KPAK'"),
        (
            b"ELF!" + bytes(60),
            "offset 0x0: a file that begins with b'ELF!'; expected a kpack archive, which begins with 'KPAK'",
        ),
        (b"KPAK\1\0\0\0", "offset 0x0: a kpack archive of 8 bytes; expected at least 16"),
        (
            by_hand(toc(), version=2),
            "offset 0x4: a kpack archive with version 2; expected version 1. Use a newer rocwheel.",
        ),
        (
            by_hand(toc(), toc_offset=1 << 63),
            "offset 0x8: a table of contents at 0x8000000000000000 in a file that ends at ",
        ),
        (by_hand(b""), "offset 0x8: a table of contents at 0x18 in a file that ends at 0x18; expected a table inside"),
        (by_hand(toc(), toc_offset=15), "offset 0x8: a table of contents at 0xf in a file that ends at "),
        (by_hand(msgspec.msgpack.encode(toc())[:-9]), "offset 0x18: MessagePack that ends early, after 1"),
        (by_hand([]), "offset 0x18: the table of contents that can't be read (Expected `object`, got `array`)"),
        (by_hand({1: 2}), "offset 0x18: the table of contents that can't be read (Expected `str`, got `int` - at `k"),
        (
            by_hand(b"\x82\xa1a\xc0\xa1a\xc0"),
            "offset 0x18: the table of contents with 2 keys, but only 1 distinct key",
        ),
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
            "offset 0x18: lib/libx.so#0 for gfx906 has the ordinal 1; expected less than 1",
        ),
        (
            by_hand(toc(blobs=[])),
            (
                "offset 0x18: lib/libx.so#0 for gfx906 has the ordinal 0; expected no entries, because there is "
                "no code object"
            ),
        ),
        (
            by_hand(toc(blobs=[{"offset": 15, "size": 8}])),
            (
                "offset 0xf: code object 0, of 8 bytes; expected an offset between the header and the table of "
                "contents at "
                "0x18"
            ),
        ),
        (
            by_hand(toc(blobs=[{"offset": 16, "size": 9}])),
            (
                "offset 0x10: code object 0, of 9 bytes; expected an offset between the header and the table of "
                "contents at 0x18"
            ),
        ),
        (
            by_hand(toc(blobs=[{"offset": 20, "size": 4}, {"offset": 16, "size": 5}])),
            "offset 0x14: code object 0 begins inside code object 1, which ends at 0x15",
        ),
    ],
)
def test_a_damaged_archive_is_refused_with_its_offset(data: bytes, found: str) -> None:
    message = refusal(data)
    assert message.startswith("x.kpack: offset ")
    assert found in message


FRAME = frames(zstd.compress(CODE))


@pytest.mark.parametrize(
    ("blob", "changes", "found"),
    [
        (FRAME, {"zstd_offset": None}, "a table of contents without zstd_offset"),
        (FRAME, {"zstd_offset": 15}, "zstd frames from 0xf to "),
        (FRAME, {"zstd_size": len(FRAME) + 1}, "zstd frames from 0x10 to 0x2a; expected frames between the header and"),
        (FRAME, {"zstd_size": 3}, "zstd frames from 0x10 to 0x13; expected frames between"),
        (
            FRAME,
            {"zstd_size": len(FRAME) - 1},
            "offset 0x18: zstd frame 0 of 1, which extends past the end of all frames",
        ),
        (FRAME + b"x", {}, "offset 0x29: 1 byte after the last zstd frame; expected an end at 0x2a"),
        (struct.pack("<I", (1 << 20) + 1), {}, "offset 0x10: 1048577 zstd frames; expected at most 1048576"),
        (struct.pack("<I", 2) + FRAME[4:], {}, "zstd frame 1 of 2, which extends past the end of all frames"),
        (
            FRAME[:4] + b"\xff\xff\xff\xff" + FRAME[8:],
            {},
            "zstd frame 0 of 1, which extends past the end of all frames",
        ),
    ],
)
def test_damaged_frames_are_refused_with_their_offset(blob: bytes, changes: dict[str, Any], found: str) -> None:
    message = refusal(by_hand(zstd_toc(blob, **changes), blob))
    assert message.startswith("x.kpack: offset ")
    assert found in message


def test_all_faults_in_an_archive_are_reported_together() -> None:
    entries = {"gfx906": {**ENTRY, "ordinal": 7}, "gfx908": {**ENTRY, "ordinal": 8}}
    with pytest.raises(ProblemsError) as caught:
        read(by_hand(toc(blobs=[{"offset": 0, "size": 8}], toc={KEY: entries})))
    assert len(caught.value.problems) == 3


def test_code_that_some_readers_reject_or_never_find_is_reported() -> None:
    entries = {"gfx908": ENTRY, "gfx906": {**ENTRY, "original_size": 0}}
    assert read(by_hand(toc(toc={KEY: entries}), tail=b"\n\n")).problems == (
        "x.kpack: offset 0x18: 2 bytes after the table of contents, which some readers reject",
        "x.kpack: offset 0x18: lib/libx.so#0 for gfx908 is never found, because gfx_arches doesn't list the target",
        "x.kpack: offset 0x18: lib/libx.so#0 for gfx906 is empty, which some readers reject",
    )


def test_a_table_of_contents_larger_than_the_limit_is_not_read() -> None:
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
def test_a_damaged_archive_is_read_or_reported_by_name(content: bytes) -> None:
    data = memoryview(content)
    try:
        archive = read_archive(data, name="x.kpack")
        for entry in archive.entries:
            assert len(read_kernel(data, archive, entry, limit=1 << 20)) == entry.size
    except InputError as e:
        assert re.match("x.kpack: offset 0x", str(e))  # noqa: PT017
    except ProblemsError as e:
        assert str(e).startswith("x.kpack: ")  # noqa: PT017


def archive_of(frame: bytes, size: int) -> bytes:
    blob = frames(frame)
    entry = {"type": "hsaco", "ordinal": 0, "original_size": size}
    places: dict[str, Any] = {"zstd_offset": 16, "zstd_size": len(blob), "blobs": None}
    return by_hand(toc(**places, compression_scheme="zstd-per-kernel", toc={KEY: {"gfx906": entry}}), blob)


def read_of_read_kernel(data: bytes, **options: int) -> memoryview:
    archive = read_archive(memoryview(data), name="x.kpack")
    return read_kernel(memoryview(data), archive, archive.entries[0], **options)


READ_KERNEL_FRAME = zstd.compress(b"x" * 100_000)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (
            archive_of(READ_KERNEL_FRAME, 99_999),
            "offset 0x18: a zstd frame of more than 99999 bytes; expected the declared size",
        ),
        (
            archive_of(READ_KERNEL_FRAME, 100_001),
            "offset 0x18: a zstd frame of 100000 bytes; expected 100001, as declared",
        ),
        (
            archive_of(READ_KERNEL_FRAME, 0),
            "offset 0x18: a zstd frame of more than 0 bytes; expected the declared size",
        ),
        (archive_of(READ_KERNEL_FRAME[:-1], 100_000), "offset 0x18: a zstd frame that ends early, after "),
        (archive_of(b"", 100_000), "offset 0x18: a zstd frame that ends early, after 0 bytes of 100000"),
        (
            archive_of(READ_KERNEL_FRAME + b"x", 100_000),
            "offset 0x18: 1 byte after the end of a zstd frame; expected no bytes after it",
        ),
        (
            archive_of(READ_KERNEL_FRAME + READ_KERNEL_FRAME, 200_000),
            "offset 0x18: a zstd frame of 100000 bytes; expected 200000, as declared",
        ),
        (archive_of(b"noise" * 9, 45), "offset 0x18: a damaged zstd frame ("),
        (
            by_hand(toc(toc={KEY: {"gfx906": {"ordinal": 0, "original_size": 9}}})),
            "offset 0x10: lib/libx.so#0 for gfx906 takes 8 bytes; expected 9, its declared size",
        ),
    ],
)
def test_a_code_object_that_differs_from_its_declaration_is_refused(data: bytes, found: str) -> None:
    with pytest.raises(KpackError, match=f"^x.kpack: {re.escape(found)}"):
        read_of_read_kernel(data)


def test_every_changed_byte_in_a_written_code_object_is_detected() -> None:
    code = hashlib.sha512(b"code").digest() * 3
    frame = bytes(compress_kernel(memoryview(code), Scheme.ZSTD))
    whole = archive_of(frame, len(code))
    assert bytes(read_of_read_kernel(whole)) == code
    start = whole.index(frame)
    for offset in range(start, start + len(frame)):
        with pytest.raises(KpackError):
            read_of_read_kernel(whole[:offset] + bytes([whole[offset] ^ 0x08]) + whole[offset + 1 :])


def test_decompressed_pieces_never_exceed_the_declared_size() -> None:
    data = archive_of(zstd.compress(bytes(64 << 20)), 9 << 20)
    archive = read_archive(memoryview(data), name="x.kpack")
    pieces: list[int] = []
    with pytest.raises(KpackError, match="a zstd frame of more than 9437184 bytes"):
        pieces.extend(map(len, iter_kernel(memoryview(data), archive, archive.entries[0])))
    assert 0 < sum(pieces) <= 9 << 20


def test_a_code_object_beyond_the_limit_is_not_read() -> None:
    message = (
        "x.kpack: offset 0x18: lib/libx.so#0 for gfx906 has a declared size of 100000 bytes; expected at most 4096"
    )
    with pytest.raises(KpackError, match=f"^{re.escape(message)}$"):
        read_of_read_kernel(archive_of(READ_KERNEL_FRAME, 100_000), limit=4096)


def test_declared_sizes_do_not_use_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.kpack"
    path.write_bytes(archive_of(READ_KERNEL_FRAME, 1 << 30))
    code = (
        "import sys; from pathlib import Path; from rocwheel.binary.kpack.archive import read_archive\n"
        "from rocwheel.binary.kpack.archive import read_kernel\n"
        "from rocwheel.core.errors import InputError\n"
        "data = memoryview(Path(sys.argv[1]).read_bytes()); archive = read_archive(data, name='x')\n"
        "try: read_kernel(data, archive, archive.entries[0])\n"
        "except InputError as e: print(e)"
    )
    limit = 400 << 20
    done = subprocess.run(
        [sys.executable, "-c", code, path],
        check=True,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert "a zstd frame of 100000 bytes; expected 1073741824, as declared" in done.stdout
