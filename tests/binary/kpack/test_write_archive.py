"""Tests of writing kpack archives."""

from __future__ import annotations

import re
import tracemalloc
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.kpack import write_archive
from rocwheel.binary.kpack.archive import read_archive
from rocwheel.binary.kpack.errors import KpackError
from rocwheel.binary.kpack.read_kernel import read_kernel
from rocwheel.binary.kpack.toc import KernelKey, Scheme
from rocwheel.binary.kpack.write_archive import ArchiveFacts, KpackWriter, compress_kernel
from tests.support.kpack_files import Discarding, Memory, make_kpack
from tests.support.kpack_reader import Archive

if TYPE_CHECKING:
    from pathlib import Path

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\\"), min_size=1, max_size=30)
KEYS = st.tuples(NAMES, st.integers(0, (1 << 32) - 1), st.sampled_from(["gfx906", "gfx90a:xnack+", "gfx11-generic"]))


def writer(scheme: Scheme = Scheme.NONE) -> KpackWriter:
    return KpackWriter(Memory(), ArchiveFacts("group", "gfx906", scheme), name="x.kpack")


@given(st.dictionaries(KEYS, st.binary(min_size=1, max_size=3000), max_size=12), st.sampled_from(Scheme))
def test_all_that_is_written_is_read_by_us(kernels: dict[tuple[str, int, str], bytes], scheme: Scheme) -> None:
    data = memoryview(make_kpack(kernels, scheme=scheme))
    archive = read_archive(data, name="x.kpack")
    read = {(e.binary, e.index, e.target): bytes(read_kernel(data, archive, e)) for e in archive.entries}
    assert read == kernels
    assert archive.problems == ()


@pytest.mark.parametrize("scheme", Scheme)
def test_all_that_is_written_is_read_by_a_reader_of_its_own(tmp_path: Path, scheme: Scheme) -> None:
    kernels = {
        ("lib/a.so", n, target): f"{n} {target}".encode() * 99 for n in range(3) for target in ("gfx906", "gfx8")
    }
    path = tmp_path / "x.kpack"
    path.write_bytes(make_kpack(kernels, scheme=scheme))
    archive = Archive(path)
    assert archive.targets == ["gfx8", "gfx906"]
    assert {key: archive.kernel(f"{key[0]}#{key[1]}", key[2]) for key in kernels} == kernels


def test_table_of_contents_is_what_readers_expect() -> None:
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


def test_frames_are_in_one_place_with_their_number_before_them() -> None:
    data = make_kpack({("a", 0, "gfx906"): b"x" * 5000, ("a", 1, "gfx906"): b"y" * 5000})
    toc = msgspec.msgpack.decode(data[int.from_bytes(data[8:16], "little") :])
    assert toc["compression_scheme"] == "zstd-per-kernel"
    assert (toc["zstd_offset"], toc["zstd_size"]) == (64, int.from_bytes(data[8:16], "little") - 64)
    assert data[64:68] == b"\2\0\0\0"


def test_zstd_takes_less() -> None:
    kernels = {("a", 0, "gfx906"): b"compress me! " * 1000}
    assert len(make_kpack(kernels)) * 5 < len(make_kpack(kernels, scheme=Scheme.NONE))


def test_names_have_slashes_on_all_systems() -> None:
    archive = read_archive(memoryview(make_kpack({("bin\\x.dll", 0, "gfx906"): b"code"})), name="x")
    assert archive.entries[0].key == "bin/x.dll#0"


def test_key_that_comes_twice_is_refused() -> None:
    target = writer()
    key = KernelKey("lib/a.so", 0, "gfx906")
    target.add([key], memoryview(b"x"), 1)
    message = "x.kpack: offset 0x0: lib/a.so#0 for gfx906 comes twice; expected one code object for each key"
    for keys in ([key], [KernelKey("b", 0, "gfx906"), KernelKey("lib\\a.so", 0, "gfx906")]):
        with pytest.raises(KpackError, match=f"^{re.escape(message)}$"):
            target.add(keys, memoryview(b"x"), 1)


def test_code_object_without_bytes_is_refused() -> None:
    with pytest.raises(KpackError, match="a#0 for gfx906 is empty; expected code: some readers refuse"):
        writer().add([KernelKey("a", 0, "gfx906")], memoryview(b""), 0)


def test_code_object_of_another_size_is_refused() -> None:
    with pytest.raises(KpackError, match="a#0 for gfx906 has 4 bytes; expected 5"):
        writer().add([KernelKey("a", 0, "gfx906")], memoryview(b"code"), 5)


def test_nothing_is_added_to_a_finished_archive() -> None:
    target = writer()
    target.finish()
    with pytest.raises(AssertionError, match="the archive is finished"):
        target.add([KernelKey("a", 0, "gfx906")], memoryview(b"x"), 1)


@pytest.mark.parametrize("scheme", Scheme)
def test_archive_that_some_reader_refuses_is_not_written(monkeypatch: pytest.MonkeyPatch, scheme: Scheme) -> None:
    monkeypatch.setattr(write_archive, "ARCHIVE_LIMIT", 10_000)
    target = writer(scheme)
    target.add([KernelKey("a", 0, "gfx906")], compress_kernel(memoryview(bytes(9_000)), Scheme.NONE), 9_000)
    message = "an archive of more than 10000 bytes, which some readers refuse; expected its host files in more archives"
    with pytest.raises(KpackError, match=re.escape(message)):
        target.add([KernelKey("a", 1, "gfx906")], memoryview(bytes(1_000)), 1_000)
    for number in range(2, 9):
        target.add([KernelKey(f"{number}" * 90, 0, "gfx906")], memoryview(b"x"), 1)
    with pytest.raises(KpackError, match=re.escape(message)):
        target.finish()
    assert not target._blobs._file.getvalue()[8:16].strip(b"\0")  # type: ignore[attr-defined]


def test_more_code_objects_than_readers_take_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_archive, "FRAME_LIMIT", 2)
    target = writer()
    for index in range(2):
        target.add([KernelKey("a", index, "gfx906")], memoryview(b"x"), 1)
    with pytest.raises(KpackError, match="more than 2 code objects; expected more archives"):
        target.add([KernelKey("a", 2, "gfx906")], memoryview(b"x"), 1)


@pytest.mark.parametrize("level", write_archive.LEVELS)
def test_same_code_of_the_same_level_gives_the_same_bytes(level: int) -> None:
    code = memoryview(b"some code for a GPU " * 500)
    assert compress_kernel(code, Scheme.ZSTD, level) == compress_kernel(code, Scheme.ZSTD, level)


@pytest.mark.parametrize("scheme", Scheme)
def test_memory_does_not_grow_with_the_archive(scheme: Scheme) -> None:
    file, code = Discarding(), memoryview(bytes(1 << 20))
    target = KpackWriter(file, ArchiveFacts("group", "gfx906", scheme), name="x.kpack")
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
