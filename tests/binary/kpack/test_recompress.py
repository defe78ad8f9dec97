"""Tests of recompressing kpack archives."""

from __future__ import annotations

import random
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.kpack.archive import KpackArchive, read_archive
from rocwheel.binary.kpack.errors import KpackError
from rocwheel.binary.kpack.read_kernel import read_kernel
from rocwheel.binary.kpack.recompress import Storing, recompress_archive, would_change
from rocwheel.binary.kpack.select_entries import select_entries, unnamed_remark
from rocwheel.binary.kpack.toc import Scheme
from rocwheel.core.errors import RocwheelError
from rocwheel.core.reading import FileRange
from tests.support.damage import damaged
from tests.support.kpack_files import Discarding, Memory, by_hand, make_kpack, toc

if TYPE_CHECKING:
    from pathlib import Path

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
def test_the_code_stays_the_same(old: Scheme, new: Storing) -> None:
    data = make_kpack(KERNELS, scheme=old)
    changed = recompress(data, new)
    assert contents(changed) == contents(data)
    assert read(changed).scheme is new.scheme
    assert [e.ordinal for e in read(changed).entries] == [e.ordinal for e in read(data).entries]


def test_result_is_what_would_have_been_written_at_once() -> None:
    plain, packed = (make_kpack(KERNELS, scheme=scheme) for scheme in Scheme)
    assert recompress(plain, Storing(Scheme.ZSTD)) == packed
    assert recompress(packed, Storing(Scheme.NONE)) == plain
    assert recompress(packed, Storing(Scheme.ZSTD, 9)) == make_kpack(KERNELS, level=9)


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_workers_do_not_show_in_the_bytes(workers: int) -> None:
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
def test_archive_that_is_as_wanted_need_not_be_written(old: Scheme, storing: Storing, expected: bool) -> None:
    assert would_change(read(make_kpack(KERNELS, scheme=old)), storing) is expected


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.booleans() | st.floats(allow_nan=False) | st.binary())
)
def test_what_nobody_knows_is_kept(more: dict[str, Any]) -> None:
    metadata = {"metadata": {"m": [1, None]}, "type": "hsaco", "ordinal": 0, "original_size": 8}
    data = by_hand(toc(toc={KEY: {"gfx906": metadata}}, **more))
    changed = recompress(data, Storing(Scheme.ZSTD))
    fields = msgspec.msgpack.decode(changed[read(changed).toc_offset :])
    assert fields["toc"] == {KEY: {"gfx906": metadata}}
    assert {key: fields[key] for key in more} == more


def entry(ordinal: int, size: int) -> dict[str, Any]:
    return {"type": "hsaco", "ordinal": ordinal, "original_size": size, "more": "kept"}


def test_code_objects_that_no_key_names_are_left_out() -> None:
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
    assert unnamed_remark(read(data)) == "left out 1 code object that no key names"
    assert unnamed_remark(read(changed)) == ""


def test_an_archive_may_have_no_other_code_objects() -> None:
    assert read(recompress(by_hand(toc(toc={})), Storing(Scheme.ZSTD))).blobs == ()


def test_damaged_code_object_is_refused() -> None:
    data = bytearray(make_kpack(KERNELS))
    data[80:90] = bytes(10)
    with pytest.raises(KpackError, match=r"^x\.kpack: offset 0x48: a damaged zstd frame"):
        recompress(bytes(data), Storing(Scheme.NONE))


def test_few_code_objects_are_in_memory_at_a_time(tmp_path: Path) -> None:
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


def test_large_code_objects_are_not_in_memory_together(tmp_path: Path) -> None:
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
def test_part_of_a_damaged_archive_is_written_or_refused_by_name(content: bytes) -> None:
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
def test_damaged_archive_is_recompressed_or_refused_by_name(content: bytes) -> None:
    try:
        assert recompress(content, Storing(Scheme.ZSTD, 1)).startswith(b"KPAK")
    except RocwheelError as e:
        assert str(e).startswith("x.kpack: ")  # noqa: PT017
