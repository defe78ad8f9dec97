"""Tests of `rocwheel.binary.bundles.compressed`."""

from __future__ import annotations

import hashlib
import io
import os
import re
import struct
import tracemalloc
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.bundles import compressed
from rocwheel.binary.bundles.compressed import (
    Method,
    WrongHashError,
    compress_bundle,
    decompress_bundle,
    find_inner_magic,
    iter_decompressed,
    measure_entries,
    measure_frame,
    read_compressed_bundle,
    read_compressed_head,
    write_compressed_bundle,
)
from rocwheel.binary.bundles.plain import BundlePart, OffloadBundle, read_offload_bundle, write_offload_bundle
from rocwheel.binary.code_objects import CodePlace, DeviceCodeError
from rocwheel.core.compression import zstd
from rocwheel.core.reading import Data, FileRange, join_data

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.device_files import Fixture


MIB = 1 << 20
PARAMETER = zstd.CompressionParameter


def compress(data: bytes, *, checksum: bool = False, content_size: bool = True, level: int = 3) -> bytes:
    options = {
        int(PARAMETER.checksum_flag): int(checksum),
        int(PARAMETER.content_size_flag): int(content_size),
        int(PARAMETER.compression_level): level,
    }
    return zstd.compress(data, options=options)


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("content_size", [False, True])
@pytest.mark.parametrize("data", [b"", b"x", b"x" * 300, bytes(MIB), os.urandom(300_000), b"ab" * 70_000])
def test_data_after_a_frame_does_not_affect_its_end(data: bytes, *, checksum: bool, content_size: bool) -> None:
    frame = compress(data, checksum=checksum, content_size=content_size)
    assert measure_frame(memoryview(frame + b"what follows")) == len(frame)


def test_a_skippable_frame_is_measured() -> None:
    assert measure_frame(memoryview(b"\x5a\x2a\x4d\x18\x03\0\0\0abc and more")) == 11


def test_a_frame_truncated_anywhere_is_an_error() -> None:
    frame = compress(b"some text " * 20, checksum=True)
    for size in range(len(frame)):
        with pytest.raises(zstd.ZstdError):
            measure_frame(memoryview(frame[:size]))


def test_a_block_with_the_reserved_type_is_an_error() -> None:
    with pytest.raises(zstd.ZstdError, match="reserved type"):
        measure_frame(memoryview(b"\x28\xb5\x2f\xfd\x20\x00\x07\x00\x00"))


@given(st.binary(max_size=40).map(lambda rest: b"\x28\xb5\x2f\xfd" + rest))
def test_measured_frame_sizes_agree_with_zstd_for_any_bytes(data: bytes) -> None:
    try:
        expected = zstd.get_frame_size(data)
    except zstd.ZstdError:
        expected = None
    try:
        found = measure_frame(memoryview(data))
    except zstd.ZstdError:
        found = None
    assert found == expected or expected is None


def test_a_large_frame_is_not_read_into_memory(tmp_path: Path) -> None:
    frame = compress(os.urandom(48 * MIB), level=1)
    path = tmp_path / "payload"
    path.write_bytes(frame + b"more")
    size = len(frame)
    del frame
    tracemalloc.start()
    try:
        with FileRange.whole(path).view() as data:
            assert measure_frame(data) == size
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    finally:
        tracemalloc.stop()


PLACE = CodePlace("libx.so", 0, 0)
TRUNCATED = "where the data ends. The file may be truncated."
WHERE = "libx.so: bundle 0 at offset 0x0: "


def decompress(data: bytes | memoryview, limit: int = 1 << 20) -> tuple[bytes, WrongHashError | None]:
    view = memoryview(data)
    raw, warning = decompress_bundle(view, read_compressed_bundle(view, place=PLACE), place=PLACE, limit=limit)
    return bytes(raw), warning


def ccob(version: int, payload: bytes, raw_size: int, *, method: int = 1, extra: int = 0) -> bytes:
    layout = {1: "<4sHHI8s", 2: "<4sHHII8s", 3: "<4sHHQQ8s"}[version]
    total = () if version == 1 else (struct.calcsize(layout) + len(payload) + extra,)
    return struct.pack(layout, b"CCOB", version, method, *total, raw_size, bytes(8)) + payload


@pytest.mark.parametrize(
    ("name", "version", "method"),
    [
        ("v18/saxpy.ccob.hipfb", 1, Method.ZSTD),
        ("v19/saxpy.ccob.hipfb", 2, Method.ZSTD),
        ("v21/saxpy.ccob.hipfb", 2, Method.ZSTD),
        ("v22/saxpy.ccob.hipfb", 3, Method.ZSTD),
        ("v23/saxpy.ccob.hipfb", 3, Method.ZSTD),
        ("edge/zlib.v1.ccob", 1, Method.ZLIB),
        ("edge/zlib.v2.ccob", 2, Method.ZLIB),
        ("edge/zlib.v3.ccob", 3, Method.ZLIB),
        ("edge/zstd.v3.nosize.ccob", 3, Method.ZSTD),
        ("edge/zstd.v3.twoframes.ccob", 3, Method.ZSTD),
    ],
)
def test_every_version_and_compression_method_is_read_without_a_warning(
    fixture: Fixture, name: str, version: int, method: Method
) -> None:
    data = fixture(name)
    bundle = read_compressed_bundle(data, place=PLACE)
    assert (bundle.version, bundle.method, bundle.size) == (version, method, len(data))
    raw, warning = decompress(data)
    assert warning is None
    assert len(raw) == bundle.raw_size
    assert bundle.digest == hashlib.md5(raw).digest()[:8]


@pytest.mark.parametrize("name", ["edge/big.19.ccob", "edge/big.22.ccob"])
def test_the_targets_of_a_huge_bundle_are_read_from_the_beginning(fixture: Fixture, name: str) -> None:
    data = fixture(name)
    bundle = read_compressed_bundle(data, place=PLACE)
    assert bundle.raw_size == 4613738496
    head = read_compressed_head(data, bundle, place=PLACE)
    assert [str(target) for target in head.targets] == ["gfx1030"]


@pytest.mark.parametrize("method", list(Method))
def test_targets_are_read_from_only_the_first_bytes_of_the_payload(method: Method) -> None:
    code = memoryview(hashlib.shake_256(b"code").digest(4 << 20))
    raw = write_offload_bundle([BundlePart("hip-amdgcn-amd-amdhsa--gfx906", (code,))])
    data = bytearray(compress_bundle(list(raw), version=3, level=1, method=method))
    data[1 << 18 :] = bytes(len(data) - (1 << 18))
    bundle = read_compressed_bundle(memoryview(data), place=PLACE)
    head = read_compressed_head(memoryview(data), bundle, place=PLACE)
    assert [str(target) for target in head.targets] == ["gfx906"]


def test_a_bundle_larger_than_the_limit_is_refused(fixture: Fixture) -> None:
    message = f"{WHERE}contains a bundle of 4613738496 bytes; expected at most 4294967296, the current limit"
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        decompress(fixture("edge/big.22.ccob"), limit=1 << 32)


def test_a_declared_size_alone_does_not_use_memory() -> None:
    data = ccob(3, zstd.compress(b"x"), 1 << 28)
    tracemalloc.start()
    try:
        with pytest.raises(DeviceCodeError, match="decompresses to 1 byte; expected 268435456, as "):
            decompress(data, limit=1 << 28)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_a_bundle_of_several_gigabytes_is_decompressed_in_small_blocks(fixture: Fixture) -> None:
    data = fixture("edge/big.22.ccob")
    blocks = iter_decompressed(data, read_compressed_bundle(data, place=PLACE), place=PLACE)
    assert max(len(next(blocks)) for _ in range(64)) <= 1 << 20


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("method", list(Method))
@given(raw=st.lists(st.binary(min_size=1), min_size=1), level=st.integers(1, 19))
def test_bundles_round_trip_through_compression(version: int, method: Method, raw: list[bytes], level: int) -> None:
    data = compress_bundle([memoryview(part) for part in raw], version=version, level=level, method=method)
    assert decompress(data) == (b"".join(raw), None)


@pytest.mark.parametrize("method", list(Method))
def test_an_empty_bundle_round_trips_through_compression(method: Method) -> None:
    assert decompress(compress_bundle([], version=2, level=3, method=method)) == (b"", None)


def test_nothing_is_written_if_a_bundle_is_too_large_for_version_2() -> None:
    file = io.BytesIO()
    with pytest.raises(ValueError, match="a bundle of 4294967296 bytes can't be written in version 2"):
        write_compressed_bundle(file, [memoryview(bytes(MIB))] * 4096, version=2, level=3)
    assert not file.getvalue()


def test_identical_code_for_another_target_takes_almost_no_space(fixture: Fixture) -> None:
    code = hashlib.shake_256(b"code").digest(3 << 20)
    once = compress_bundle([memoryview(code)], version=3, level=3)
    thrice = compress_bundle([memoryview(code)] * 3, version=3, level=3)
    assert len(once) > len(code)
    assert len(thrice) < len(once) + 2000


def test_identical_code_takes_almost_no_space_across_a_large_bundle() -> None:
    code = memoryview(hashlib.shake_256(b"code").digest(6 << 20))
    once = compress_bundle([code], version=3, level=1)
    assert len(compress_bundle([code, code], version=3, level=1)) < len(once) + 4000


def test_the_same_code_in_another_order_takes_little_space() -> None:
    code = hashlib.shake_256(b"code").digest(4 << 20)
    pieces = [memoryview(code)[start : start + 4096] for start in range(0, len(code), 4096)]
    shuffled = sorted(pieces, key=lambda piece: hashlib.md5(piece).digest())
    assert len(compress_bundle([*pieces, *shuffled], version=3, level=1)) < 1.01 * len(code)


def test_a_frame_with_the_largest_window_can_be_read() -> None:
    # A zstd frame without content size, a window of 2 GiB, and one raw block, which is the last.
    frame = b"\x28\xb5\x2f\xfd\x00" + bytes([(31 - 10) << 3]) + (4 << 3 | 1).to_bytes(3, "little") + b"code"
    assert decompress(ccob(3, frame, 4))[0] == b"code"


@pytest.mark.slow
def test_the_window_is_the_largest_that_decoders_accept_by_default() -> None:
    block = memoryview(bytes(1 << 20))
    payload = compress_bundle([block] * 129, version=3, level=1)[32:]
    # The window descriptor follows magic and frame header: its upper five bits are the exponent less 10.
    assert 10 + (payload[5] >> 3) == 27
    assert len(zstd.ZstdDecompressor().decompress(payload)) == 129 << 20


@pytest.mark.parametrize("method", list(Method))
def test_compressed_bytes_are_attributed_to_entries(method: Method) -> None:
    code = memoryview(hashlib.shake_256(b"code").digest(1 << 20))
    spellings = [f"hip-amdgcn-amd-amdhsa--gfx{number}" for number in (900, 902, 906)]
    contents = [code, memoryview(bytes(1 << 20)), code[: 1 << 19]]
    parts = [BundlePart(spelling, (content,)) for spelling, content in zip(spellings, contents, strict=True)]
    data = memoryview(compress_bundle(list(write_offload_bundle(parts)), version=3, level=3, method=method))
    bundle = read_compressed_bundle(data, place=PLACE)
    plain = read_compressed_head(data, bundle, place=PLACE)
    sizes = measure_entries(data, bundle, plain, place=PLACE)
    assert sizes[0] == pytest.approx(1 << 20, rel=0.01)
    assert sizes[1] < 20000
    assert sizes[2] == pytest.approx(0 if method is Method.ZSTD else 1 << 19, abs=20000)
    assert sum(sizes) == pytest.approx(bundle.size - bundle.header_size, abs=5000)


def test_compressed_bytes_in_every_frame_are_attributed() -> None:
    codes = [memoryview(hashlib.shake_256(bytes([number])).digest(1 << 18)) for number in range(3)]
    parts = [BundlePart(f"hip-amdgcn-amd-amdhsa--gfx90{n}", (code,)) for n, code in zip((0, 2, 6), codes, strict=True)]
    raw = join_data(write_offload_bundle(parts))
    frames = [zstd.compress(raw[start : start + 300_000]) for start in range(0, len(raw), 300_000)]
    data = memoryview(ccob(3, b"".join(frames), len(raw)))
    bundle = read_compressed_bundle(data, place=PLACE)
    plain = read_compressed_head(data, bundle, place=PLACE)
    assert len(frames) == 3
    assert measure_entries(data, bundle, plain, place=PLACE) == pytest.approx([1 << 18] * 3, rel=0.03)


def test_a_wrong_hash_is_reported_with_both_values(fixture: Fixture) -> None:
    _, wrong_hash = decompress(fixture("edge/zlib.v3.badhash.ccob"))
    assert str(wrong_hash) == (
        f"{WHERE}its header has the hash 0000000000000000, but its content has ceddc72cae1760d9. "
        "The device code may be damaged. Get the file again, or use --force to accept the bundle anyway."
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("edge/v4.ccob", "a compressed bundle of version 4; expected version 1, 2 or 3"),
        ("edge/zlib.v3.badmethod.ccob", "a payload with compression method 2; expected 0 (zlib) or 1 (zstd)"),
        ("edge/zlib.v3.usizebig.ccob", "decompresses to 37432 bytes; expected 37433, as its header declares"),
        ("edge/zlib.v3.usizesmall.ccob", "decompresses to more than the 37431 bytes that its header declares"),
    ],
)
def test_a_bundle_with_a_wrong_header_is_refused(fixture: Fixture, name: str, message: str) -> None:
    with pytest.raises(DeviceCodeError, match=re.escape(WHERE + message)):
        decompress(fixture(name))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"CCOB\x02", "5 bytes, too few for a compressed bundle"),
        (b"CCOB\x02\x00\x01\x00", "8 bytes, too few for a version 2 header"),
        (
            ccob(2, zstd.compress(b"x"), 1, extra=1),
            f"its header declares a total size of 35 bytes; expected more than 24 and at most 34, {TRUNCATED}",
        ),
        (ccob(3, b"", 1), "its header declares a total size of 32 bytes; expected more than 32"),
        (
            ccob(3, zstd.compress(b"x") + b"\0", 1),
            "its payload ends 1 byte short of the declared total size of 43. LLVM 22 and earlier reject",
        ),
        (ccob(3, zstd.compress(b"x" * 99)[:-1], 99), "its payload can't be decompressed (the compressed data ends"),
        (
            ccob(3, zlib.compress(b"x" * 99)[:-1], 99, method=0),
            "its payload can't be decompressed (the compressed data",
        ),
        (ccob(3, b"no zstd", 1), "its payload can't be decompressed"),
        (ccob(1, b"no zstd", 1), "its payload can't be decompressed"),
        (ccob(1, zlib.compress(bytes(1 << 22)), 9, method=0), "decompresses to more than the 9 bytes"),
        (ccob(3, zstd.compress(bytes(1 << 26)), 9), "decompresses to more than the 9 bytes"),
    ],
    ids=["short", "header", "total", "empty", "rest", "zstd end", "zlib end", "zstd", "v1", "zlib bomb", "zstd bomb"],
)
def test_a_damaged_bundle_is_refused_with_its_offset(data: bytes, message: str) -> None:
    with pytest.raises(DeviceCodeError, match=re.escape(WHERE + message)):
        decompress(data)


def outcome(data: bytes) -> str:
    try:
        decompress(data)
    except DeviceCodeError as e:
        return str(e)
    return "content"


@given(st.binary(max_size=60), st.integers(0, 5), st.integers(0, 3))
def test_any_payload_gives_content_or_a_device_code_error(payload: bytes, version: int, method: int) -> None:
    data = b"CCOB" + struct.pack("<HH", version, method) + payload
    assert outcome(data) == "content" or outcome(data).startswith(WHERE)


def test_a_payload_that_is_not_a_bundle_is_refused_while_reading_the_header() -> None:
    data = memoryview(ccob(3, zstd.compress(b"no bundle at all, though long enough for one"), 44))
    bundle = read_compressed_bundle(data, place=PLACE)
    with pytest.raises(DeviceCodeError, match=re.escape(f"{WHERE}starts with b'no bundle at all, though")):
        read_compressed_head(data, bundle, place=PLACE)


def test_the_search_for_the_end_of_a_header_is_bounded() -> None:
    raw = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 1 << 32) + bytes(8 << 20)
    data = memoryview(compress_bundle([memoryview(raw)], version=3, level=3))
    bundle = read_compressed_bundle(data, place=PLACE)
    tracemalloc.start()
    try:
        with pytest.raises(DeviceCodeError, match=f"{WHERE}4294967296 entries declared in a header of"):
            read_compressed_head(data, bundle, place=PLACE)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_long_header_is_read_only_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundle of 19,000 entries compresses to 185 bytes: its header was read anew with each 16 KB, for a second."""
    entry = struct.pack("<QQQ", 0, 0, 976) + b"host-".ljust(976, b"x")
    raw = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 1024) + entry * 1024
    data = memoryview(compress_bundle([memoryview(raw)], version=3, level=3))
    bundle = read_compressed_bundle(data, place=PLACE)
    sizes: list[int] = []

    def read(head: Data, *, place: CodePlace, available: int) -> OffloadBundle:
        sizes.append(len(head))
        return read_offload_bundle(head, place=place, available=available)

    monkeypatch.setattr(compressed, "read_offload_bundle", read)
    assert len(read_compressed_head(data, bundle, place=PLACE).entries) == 1024
    assert sizes == [1 << shift for shift in range(14, 20)] + [len(raw)]


def _plain_with_magic() -> bytes:
    """Return a bundle whose code can't be made smaller, and has the magic of compressed bundles in two places."""
    noise = b"".join(hashlib.sha256(bytes([number])).digest() for number in range(128))
    code = noise[:2000] + b"CCOB" + noise[2000:] + b"xCCOBCCOB"
    parts = [
        BundlePart("host-x86_64-unknown-linux--", ()),
        BundlePart("hipv4-amdgcn-amd-amdhsa--gfx906", (memoryview(code),)),
    ]
    return join_data(write_offload_bundle(parts))


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("cut", [1, 6097, 6098, 6099, 6100, 6101])
def test_a_compressed_bundle_never_contains_the_magic_inside(cut: int, version: int, method: Method) -> None:
    plain = _plain_with_magic()
    assert plain.find(b"CCOB") == 6096
    buffers = [memoryview(plain)[:cut], memoryview(plain)[cut:]]
    written = compress_bundle(buffers, version=version, level=3, method=method)
    assert (written.count(b"CCOB"), find_inner_magic(written)) == (1, None)
    assert decompress(written) == (plain, None)
    assert decompress(written + b"\0\0" if method is Method.ZLIB else written)[0] == plain


def test_the_magic_inside_a_compressed_bundle_is_found() -> None:
    header = compress_bundle([memoryview(_plain_with_magic())], version=3, level=3)[:32]
    encoder = zstd.ZstdCompressor()
    data = header + encoder.compress(_plain_with_magic(), mode=encoder.FLUSH_FRAME)
    assert find_inner_magic(data) == data.index(b"CCOB", 1)
    assert find_inner_magic(header) is None
