"""Tests of `rocwheel.artifacts.host_parts`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.artifacts.host_parts import HostDifference, RelocatedWord, compare_host_parts, is_same_but_moved
from rocwheel.binary.kpack.markers import Marker, encode_markers
from rocwheel.core.errors import InputError
from tests.support.libraries import needs_compiler

if TYPE_CHECKING:
    from pathlib import Path


def words(*starts: int) -> RelocatedWord:
    """Accept the words of four bytes that begin at these offsets."""

    def behind(at: int, start: int) -> int | None:
        return next((word + 4 for word in starts if word <= at < word + 4 and word >= start), None)

    return behind


@given(st.binary(min_size=16, max_size=200), st.sets(st.integers(0, 40), max_size=5), st.integers(0, 49))
def test_only_accepted_words_may_differ(data: bytes, accepted: set[int], other: int) -> None:
    moved = bytearray(data)
    for word in (word for word in accepted if word * 4 + 4 <= len(data)):
        moved[word * 4] ^= 1
        moved[word * 4 + 3] ^= 255
    behind = words(*(word * 4 for word in accepted))
    assert is_same_but_moved(memoryview(data), memoryview(moved), behind)
    if other not in accepted and other * 4 < len(data):
        moved[other * 4] ^= 1
        assert not is_same_but_moved(memoryview(data), memoryview(moved), behind)


def test_a_word_that_spans_two_pieces_is_found() -> None:
    piece = 4 << 20
    data = bytearray(piece + 100)
    moved = bytearray(data)
    moved[piece - 2 : piece + 2] = b"word"
    assert is_same_but_moved(memoryview(data), memoryview(moved), words(piece - 2))
    assert not is_same_but_moved(memoryview(data), memoryview(moved), words(piece - 3))


@pytest.mark.parametrize("at", [0, 3, 7])
def test_a_difference_outside_the_accepted_words_is_a_change(at: int) -> None:
    data = bytearray(8)
    data[at] = 1
    assert not is_same_but_moved(memoryview(bytes(8)), memoryview(data), words())


def test_sections_with_different_sizes_differ() -> None:
    assert not is_same_but_moved(memoryview(bytes(8)), memoryview(bytes(9)), words(0, 4, 8))


Link = Callable[..., memoryview]

PROGRAM = """
extern const char bundles[] __attribute__((visibility("hidden")));
extern const char marker[] __attribute__((visibility("hidden")));
struct wrapper { unsigned magic, version; const char *bundle; long unused; };
static struct wrapper wrappers[UNITS] __attribute__((section(".hipFatBinSegment"), used)) = {
    { MAGIC, 1, POINTER, 0 },
#if UNITS > 1
    { MAGIC, 1, POINTER + DISTANCE, UNITS },
#endif
};
static const char *const names[] = { "one", "two" };
int counter = 5;
int constant = CONSTANT;
const int read_only[] = { 1, READ_ONLY };
int *pointer = &counter + PLACE;
int get(int i) { return counter++ * FACTOR + wrappers[0].version + names[i & 1][0]; }
int EXPORTED(int i) { return get(i) + i; }
asm(".section .hip_fatbin,\\"a\\",@KIND\\n.balign 4096\\n.hidden bundles\\n.globl bundles\\n"
    "bundles: .fill SIZE,1,BYTE\\n.section .rocm_kpack_ref,\\"a\\"\\n"
    ".hidden marker\\n.globl marker\\nmarker: .incbin \\"MARKER\\"\\n.text");
"""
HIPF, HIPK = 0x48495046, 0x4B504948


@pytest.fixture
def link(tmp_path: Path) -> Link:
    """Return a function that links a library with device code of a size, made of one byte."""

    def run(
        *,
        size: int = 8192,
        byte: int = 1,
        factor: int = 3,
        exported: str = "sum",
        units: int = 2,
        build_id: str = "00",
        is_split: bool = False,
        kernel: str = "lib/lib.so",
        data: tuple[int, int, int] = (0x10000, 0x10000, 0),
    ) -> memoryview:
        values: dict[str, object] = {
            "SIZE": size,
            "BYTE": 0 if is_split else byte,
            "FACTOR": factor,
            "EXPORTED": exported,
            "UNITS": units,
        }
        values |= dict(zip(("CONSTANT", "READ_ONLY", "PLACE"), data, strict=True))
        values |= {"MAGIC": HIPK if is_split else HIPF, "KIND": "nobits" if is_split else "progbits"}
        marker = tmp_path / "content"
        content, _ = encode_markers([Marker(kernel, ("../.kpack/x_@GFXARCH@.kpack",))])
        marker.write_bytes(content)
        values |= {"POINTER": "marker" if is_split else "bundles", "DISTANCE": 0 if is_split else size // 2}
        values["MARKER"] = marker
        source = PROGRAM
        for name, value in values.items():
            source = source.replace(name, str(value))
        path = tmp_path / "lib.so"
        command = ["gcc", "-O1", "-shared", "-fPIC", "-nostdlib", "-x", "c", "-", "-o", str(path)]
        subprocess.run([*command, f"-Wl,--build-id=0x{build_id}"], check=True, input=source.encode())
        return memoryview(path.read_bytes())

    return run


@needs_compiler
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, HostDifference.NONE),
        ({"build_id": "01"}, HostDifference.BUILD_ID),
        ({"byte": 2}, HostDifference.DEVICE_CODE),
        ({"size": 8192 * 50}, HostDifference.DEVICE_CODE),
        ({"size": 8192 * 50, "build_id": "01", "byte": 2}, HostDifference.DEVICE_CODE),
        ({"factor": 5}, HostDifference.HOST),
        ({"factor": 5, "size": 8192 * 50}, HostDifference.HOST),
        ({"factor": 1000000, "size": 8192 * 50}, HostDifference.HOST),
        ({"exported": "mus"}, HostDifference.HOST),
        ({"exported": "mus", "size": 8192 * 50}, HostDifference.HOST),
        ({"units": 1}, HostDifference.HOST),
        ({"is_split": True}, HostDifference.HOST),
    ],
)
def test_differences_in_build_id_device_code_and_host_code_are_distinguished(
    link: Link, change: dict[str, int], expected: HostDifference
) -> None:
    assert compare_host_parts(link(), link(**change), name="lib.so") is expected


@needs_compiler
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"size": 8192 * 50}, HostDifference.LAYOUT),
        ({"size": 8192 * 50, "factor": 5}, HostDifference.HOST),
        ({"build_id": "01"}, HostDifference.BUILD_ID),
        ({"kernel": "lib/bil.so"}, HostDifference.HOST),
        ({"size": 8192 * 50, "kernel": "lib/other.so"}, HostDifference.HOST),
        ({"size": 8192 * 50, "units": 1}, HostDifference.HOST),
        ({"size": 8192 * 2}, HostDifference.LAYOUT),
        ({"size": 8192 * 2, "data": (0x12000, 0x10000, 0)}, HostDifference.HOST),
        ({"size": 8192 * 2, "data": (0x10000, 0x12000, 0)}, HostDifference.HOST),
        ({"size": 8192 * 2, "data": (0x10000, 0x10000, 0x800)}, HostDifference.HOST),
    ],
)
def test_split_libraries_may_differ_in_the_size_of_their_removed_device_code(
    link: Link, change: dict[str, int], expected: HostDifference
) -> None:
    assert compare_host_parts(link(is_split=True), link(is_split=True, **change), name="lib.so") is expected


def test_other_files_are_compared_byte_by_byte() -> None:
    assert compare_host_parts(memoryview(b"a"), memoryview(b"b"), name="x") is HostDifference.HOST


@needs_compiler
def test_a_damaged_library_is_compared_or_refused_without_a_traceback(link: Link) -> None:
    good, other = bytes(link()), link(size=8192 * 50)

    @given(st.lists(st.tuples(st.integers(0, len(good) - 1), st.integers(0, 255)), max_size=4), st.integers(0, 1 << 13))
    def check(changes: list[tuple[int, int]], cut: int) -> None:
        data = bytearray(good)
        for at, value in changes:
            data[at] = value
        with suppress(InputError):
            compare_host_parts(memoryview(data)[: len(data) - cut], other, name="lib.so")

    check()
