"""Tests of `rocwheel.binary.kpack.write`."""

from __future__ import annotations

import random
import re
import tracemalloc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.kpack import write
from rocwheel.binary.kpack.archive import KernelKey, KpackArchive, KpackError, Scheme, read_archive, read_kernel
from rocwheel.binary.kpack.write import (
    ArchiveSettings,
    KpackWriter,
    Storing,
    assign_shards,
    compress_kernel,
    recompress_archive,
    select_entries,
    unnamed_remark,
    would_change,
)
from rocwheel.core.errors import RocwheelError
from rocwheel.core.reading import FileRange
from tests.support.damage import damaged
from tests.support.kpack_files import Discarding, Memory, by_hand, make_kpack, toc
from tests.support.kpack_reader import Archive

if TYPE_CHECKING:
    from pathlib import Path


NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\\"), min_size=1, max_size=30)
KEYS = st.tuples(NAMES, st.integers(0, (1 << 32) - 1), st.sampled_from(["gfx906", "gfx90a:xnack+", "gfx11-generic"]))


def writer(scheme: Scheme = Scheme.NONE) -> KpackWriter:
    return KpackWriter(Memory(), ArchiveSettings("group", "gfx906", scheme), name="x.kpack")


@given(st.dictionaries(KEYS, st.binary(min_size=1, max_size=3000), max_size=12), st.sampled_from(Scheme))
def test_any_written_archive_round_trips(kernels: dict[tuple[str, int, str], bytes], scheme: Scheme) -> None:
    data = memoryview(make_kpack(kernels, scheme=scheme))
    archive = read_archive(data, name="x.kpack")
    read = {(e.binary, e.index, e.target): bytes(read_kernel(data, archive, e)) for e in archive.entries}
    assert read == kernels
    assert archive.problems == ()


@pytest.mark.parametrize("scheme", Scheme)
def test_an_independent_reader_can_read_a_written_archive(tmp_path: Path, scheme: Scheme) -> None:
    kernels = {
        ("lib/a.so", n, target): f"{n} {target}".encode() * 99 for n in range(3) for target in ("gfx906", "gfx8")
    }
    path = tmp_path / "x.kpack"
    path.write_bytes(make_kpack(kernels, scheme=scheme))
    archive = Archive(path)
    assert archive.targets == ["gfx8", "gfx906"]
    assert {key: archive.kernel(f"{key[0]}#{key[1]}", key[2]) for key in kernels} == kernels


def test_the_table_of_contents_has_the_format_that_readers_expect() -> None:
    data = make_kpack({("lib/a.so", 1, "gfx906|gfx906:xnack-"): b"one", ("lib/a.so", 0, "gfx906"): b"four"},
                      scheme=Scheme.NONE)  # fmt: skip
    assert data[:16] == b"KPAK\1\0\0\0\x84\0\0\0\0\0\0\0"
    assert data[64:0x84] == b"one".ljust(64, b"\0") + b"four"
    assert msgspec.msgpack.decode(data[0x84:]) == {
        "format_version": 1,
        "group_name": "group",
        "gfx_arch_family": "gfx906",
        "gfx_arches": ["gfx906", "gfx906:xnack-"],
        "compression_scheme": "none",
        "blobs": [{"offset": 64, "size": 3}, {"offset": 128, "size": 4}],
        "toc": {
            "lib/a.so#0": {"gfx906": {"type": "hsaco", "ordinal": 1, "original_size": 4}},
            "lib/a.so#1": {
                "gfx906": {"type": "hsaco", "ordinal": 0, "original_size": 3},
                "gfx906:xnack-": {"type": "hsaco", "ordinal": 0, "original_size": 3},
            },
        },
    }


def test_all_frames_are_in_one_block_that_starts_with_their_count() -> None:
    data = make_kpack({("a", 0, "gfx906"): b"x" * 5000, ("a", 1, "gfx906"): b"y" * 5000})
    toc = msgspec.msgpack.decode(data[int.from_bytes(data[8:16], "little") :])
    assert toc["compression_scheme"] == "zstd-per-kernel"
    assert (toc["zstd_offset"], toc["zstd_size"]) == (64, int.from_bytes(data[8:16], "little") - 64)
    assert data[64:68] == b"\2\0\0\0"


def test_zstd_makes_the_archive_smaller() -> None:
    kernels = {("a", 0, "gfx906"): b"compress me! " * 1000}
    assert len(make_kpack(kernels)) * 5 < len(make_kpack(kernels, scheme=Scheme.NONE))


def test_names_have_forward_slashes_on_all_systems() -> None:
    archive = read_archive(memoryview(make_kpack({("bin\\x.dll", 0, "gfx906"): b"code"})), name="x")
    assert archive.entries[0].key == "bin/x.dll#0"


def test_a_duplicate_key_is_refused() -> None:
    target = writer()
    key = KernelKey("lib/a.so", 0, "gfx906")
    target.add([key], memoryview(b"x"), 1)
    message = "x.kpack: offset 0x0: lib/a.so#0 for gfx906 occurs twice; expected one code object for each key"
    for keys in ([key], [KernelKey("b", 0, "gfx906"), KernelKey("lib\\a.so", 0, "gfx906")]):
        with pytest.raises(KpackError, match=f"^{re.escape(message)}$"):
            target.add(keys, memoryview(b"x"), 1)


def test_an_empty_code_object_is_refused() -> None:
    with pytest.raises(KpackError, match="a#0 for gfx906 is empty; expected code, because some readers reject"):
        writer().add([KernelKey("a", 0, "gfx906")], memoryview(b""), 0)


def test_a_code_object_with_the_wrong_size_is_refused() -> None:
    with pytest.raises(KpackError, match="a#0 for gfx906 has 4 bytes; expected 5"):
        writer().add([KernelKey("a", 0, "gfx906")], memoryview(b"code"), 5)


def test_nothing_can_be_added_to_a_finished_archive() -> None:
    target = writer()
    target.finish()
    with pytest.raises(AssertionError, match="the archive is finished"):
        target.add([KernelKey("a", 0, "gfx906")], memoryview(b"x"), 1)


@pytest.mark.parametrize("scheme", Scheme)
def test_an_archive_that_some_reader_refuses_is_not_written(monkeypatch: pytest.MonkeyPatch, scheme: Scheme) -> None:
    monkeypatch.setattr(write, "ARCHIVE_LIMIT", 10_000)
    target = writer(scheme)
    target.add([KernelKey("a", 0, "gfx906")], compress_kernel(memoryview(bytes(9_000)), Scheme.NONE), 9_000)
    message = (
        "an archive of more than 10000 bytes, which some readers reject; expected host files split across more archives"
    )
    with pytest.raises(KpackError, match=re.escape(message)):
        target.add([KernelKey("a", 1, "gfx906")], memoryview(bytes(1_000)), 1_000)
    for number in range(2, 9):
        target.add([KernelKey(f"{number}" * 90, 0, "gfx906")], memoryview(b"x"), 1)
    with pytest.raises(KpackError, match=re.escape(message)):
        target.finish()
    assert not target._blobs._file.getvalue()[8:16].strip(b"\0")  # type: ignore[attr-defined]


def test_more_code_objects_than_readers_accept_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "FRAME_LIMIT", 2)
    target = writer()
    for index in range(2):
        target.add([KernelKey("a", index, "gfx906")], memoryview(b"x"), 1)
    with pytest.raises(KpackError, match="more than 2 code objects; expected code objects split across more archives"):
        target.add([KernelKey("a", 2, "gfx906")], memoryview(b"x"), 1)


@pytest.mark.parametrize("level", write.LEVELS)
def test_the_same_code_at_the_same_level_gives_the_same_bytes(level: int) -> None:
    code = memoryview(b"some code for a GPU " * 500)
    assert compress_kernel(code, Scheme.ZSTD, level) == compress_kernel(code, Scheme.ZSTD, level)


@pytest.mark.parametrize("scheme", Scheme)
def test_memory_use_does_not_grow_with_the_archive(scheme: Scheme) -> None:
    file, code = Discarding(), memoryview(bytes(1 << 20))
    target = KpackWriter(file, ArchiveSettings("group", "gfx906", scheme), name="x.kpack")
    tracemalloc.start()
    try:
        for index in range(500):
            target.add([KernelKey("a", index, "gfx906")], code, 1 << 20)
        target.finish()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert file.size > 500 << 20
    assert peak < 2 << 20


KERNELS = {("lib/a.so", n, "gfx906|gfx906:xnack-"): f"kernel {n} ".encode() * (200 + n) for n in range(20)}
KEY = "lib/libx.so#0"


def read(data: bytes) -> KpackArchive:
    return read_archive(memoryview(data), name="x.kpack")


def recompress(data: bytes, storing: Storing, workers: int = 2) -> bytes:
    file = Memory()
    with ThreadPoolExecutor(workers) as executor:
        recompress_archive(memoryview(data), read(data), file, storing, executor)
    return file.getvalue()


def contents(data: bytes) -> dict[tuple[str, str], bytes]:
    archive = read(data)
    return {(e.key, e.target): bytes(read_kernel(memoryview(data), archive, e)) for e in archive.entries}


@pytest.mark.parametrize("old", Scheme)
@pytest.mark.parametrize("new", [Storing(Scheme.NONE), Storing(Scheme.ZSTD), Storing(Scheme.ZSTD, 19)])
def test_recompression_does_not_change_the_code(old: Scheme, new: Storing) -> None:
    data = make_kpack(KERNELS, scheme=old)
    changed = recompress(data, new)
    assert contents(changed) == contents(data)
    assert read(changed).scheme is new.scheme
    assert [e.ordinal for e in read(changed).entries] == [e.ordinal for e in read(data).entries]


def test_recompression_gives_the_same_bytes_as_writing_a_new_archive() -> None:
    plain, packed = (make_kpack(KERNELS, scheme=scheme) for scheme in Scheme)
    assert recompress(plain, Storing(Scheme.ZSTD)) == packed
    assert recompress(packed, Storing(Scheme.NONE)) == plain
    assert recompress(packed, Storing(Scheme.ZSTD, 9)) == make_kpack(KERNELS, level=9)


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_the_number_of_workers_does_not_change_the_bytes(workers: int) -> None:
    assert recompress(make_kpack(KERNELS, scheme=Scheme.NONE), Storing(Scheme.ZSTD), workers) == make_kpack(KERNELS)


@pytest.mark.parametrize(
    ("old", "storing", "expected"),
    [
        (Scheme.NONE, Storing(Scheme.NONE), False),
        (Scheme.NONE, Storing(Scheme.ZSTD), True),
        (Scheme.ZSTD, Storing(Scheme.ZSTD), False),
        (Scheme.ZSTD, Storing(Scheme.ZSTD, 3), True),
        (Scheme.ZSTD, Storing(Scheme.NONE), True),
        (Scheme.NONE, Storing(Scheme.NONE, 3), False),
    ],
)
def test_an_archive_already_in_the_new_format_would_not_change(old: Scheme, storing: Storing, expected: bool) -> None:
    assert would_change(read(make_kpack(KERNELS, scheme=old)), storing) is expected


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.booleans() | st.floats(allow_nan=False) | st.binary())
)
def test_unknown_fields_are_kept(more: dict[str, Any]) -> None:
    metadata = {"metadata": {"m": [1, None]}, "type": "hsaco", "ordinal": 0, "original_size": 8}
    data = by_hand(toc(toc={KEY: {"gfx906": metadata}}, **more))
    changed = recompress(data, Storing(Scheme.ZSTD))
    fields = msgspec.msgpack.decode(changed[read(changed).toc_offset :])
    assert fields["toc"] == {KEY: {"gfx906": metadata}}
    assert {key: fields[key] for key in more} == more


def entry(ordinal: int, size: int) -> dict[str, Any]:
    return {"type": "hsaco", "ordinal": ordinal, "original_size": size, "more": "kept"}


def test_code_objects_without_a_key_are_left_out() -> None:
    blobs = [{"offset": 16, "size": 4}, {"offset": 20, "size": 8}, {"offset": 28, "size": 4}]
    table = {"a#0": {"gfx906": entry(2, 4)}, "b#0": {"gfx906": entry(0, 4), "gfx906:xnack-": entry(2, 4)}}
    data = by_hand(toc(blobs=blobs, toc=table, gfx_arches=["gfx906", "gfx1030"]), b"\x7fELF_nobody_\x7fELF")
    changed = recompress(data, Storing(Scheme.ZSTD))
    assert contents(changed) == contents(data)
    fields = msgspec.msgpack.decode(changed[read(changed).toc_offset :])
    assert len(read(changed).blobs) == 2
    assert fields["gfx_arches"] == ["gfx906", "gfx1030"]
    assert fields["toc"] == {
        "a#0": {"gfx906": entry(1, 4)},
        "b#0": {"gfx906": entry(0, 4), "gfx906:xnack-": entry(1, 4)},
    }
    assert unnamed_remark(read(data)) == "left out 1 code object that no key refers to"
    assert unnamed_remark(read(changed)) == ""


def test_an_archive_without_any_code_objects_can_be_recompressed() -> None:
    assert read(recompress(by_hand(toc(toc={})), Storing(Scheme.ZSTD))).blobs == ()


def test_a_damaged_code_object_is_refused() -> None:
    data = bytearray(make_kpack(KERNELS))
    data[80:90] = bytes(10)
    with pytest.raises(KpackError, match=r"^x\.kpack: offset 0x48: a damaged zstd frame"):
        recompress(bytes(data), Storing(Scheme.NONE))


def test_only_a_few_code_objects_are_in_memory_at_a_time(tmp_path: Path) -> None:
    size, number = 1 << 20, 60
    path = tmp_path / "x.kpack"
    path.write_bytes(make_kpack({("a", n, "gfx906"): bytes([n]) * size for n in range(number)}, scheme=Scheme.NONE))
    with FileRange.whole(path).view() as data, ThreadPoolExecutor(2) as executor:
        archive = read_archive(data, name="x.kpack")
        tracemalloc.start()
        try:
            recompress_archive(data, archive, Memory(), Storing(Scheme.ZSTD, 1), executor)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 20 * size


def test_large_code_objects_are_not_in_memory_at_the_same_time(tmp_path: Path) -> None:
    size, path = 40 << 20, tmp_path / "x.kpack"
    code = random.Random(0).randbytes(size)
    path.write_bytes(make_kpack({("a", n, "gfx906"): code for n in range(8)}, scheme=Scheme.NONE))
    with FileRange.whole(path).view() as data, ThreadPoolExecutor(4) as executor:
        archive = read_archive(data, name="x.kpack")
        tracemalloc.start()
        try:
            recompress_archive(data, archive, Discarding(), Storing(Scheme.ZSTD, 1), executor)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    # Its bytes, what they are compressed to, and the copy in which that is put together.
    assert peak < 4 * size


@given(damaged([make_kpack(KERNELS, scheme=scheme) for scheme in Scheme]))
def test_part_of_a_damaged_archive_is_written_or_reported_by_name(content: bytes) -> None:
    try:
        whole = read(content)
        part = select_entries(whole, [entry for entry in whole.entries if entry.ordinal % 2])
        file = Memory()
        with ThreadPoolExecutor(1) as executor:
            recompress_archive(memoryview(content), part, file, Storing(whole.scheme), executor)
        assert [entry.key for entry in read(file.getvalue()).entries] == [entry.key for entry in part.entries]
    except RocwheelError as e:
        assert str(e).startswith("x.kpack: ")  # noqa: PT017


@given(damaged([make_kpack(KERNELS, scheme=scheme) for scheme in Scheme]))
def test_a_damaged_archive_is_recompressed_or_reported_by_name(content: bytes) -> None:
    try:
        assert recompress(content, Storing(Scheme.ZSTD, 1)).startswith(b"KPAK")
    except RocwheelError as e:
        assert str(e).startswith("x.kpack: ")  # noqa: PT017


UNITS = st.lists(st.dictionaries(st.sampled_from(["gfx906", "gfx908", "gfx90a"]), st.integers(0, 100), max_size=3))


def test_units_that_fit_go_into_one_archive() -> None:
    assert assign_shards([{"gfx906": 40, "gfx908": 60}, {"gfx906": 60}, {"gfx908": 40}], limit=100) == (0, 0, 0)


def test_a_new_archive_starts_when_one_target_runs_out_of_room() -> None:
    assert assign_shards([{"gfx906": 60}, {"gfx908": 60}, {"gfx906": 41}, {"gfx908": 10}], limit=100) == (0, 0, 1, 1)


def test_no_units_need_no_archive() -> None:
    assert assign_shards([]) == ()


def test_archives_with_the_default_limit_stay_below_two_gigabytes() -> None:
    assert assign_shards([{"gfx906": 1 << 30}, {"gfx906": (1 << 30) - 1}, {"gfx906": 1}]) == (0, 0, 1)


def test_a_unit_too_large_for_any_archive_is_refused() -> None:
    message = "unit 1: offset 0x0: 101 bytes of code for gfx908; expected at most 100 in an archive"
    with pytest.raises(KpackError, match=f"^{re.escape(message)}$"):
        assign_shards([{"gfx906": 1}, {"gfx908": 101}], limit=100)


@given(UNITS)
def test_no_archive_exceeds_the_limit_and_units_keep_their_order(units: list[dict[str, int]]) -> None:
    shards = assign_shards(units, limit=100)
    filled: Counter[tuple[int, str]] = Counter()
    for shard, sizes in zip(shards, units, strict=True):
        filled.update({(shard, target): size for target, size in sizes.items()})
    assert all(size <= 100 for size in filled.values())
    assert list(shards) == sorted(shards)
    assert set(shards) == set(range(max(shards, default=-1) + 1))
