"""Kpack archives of Debian's librocsparse0 for one GPU: what each zstd level takes and gains, beside libdeflate.

Every code object is compressed by itself, as archives have it, by one thread; times are of that alone. Deflate is what
a wheel does to an archive that is not compressed.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import deflate

from rocwheel.binary.bundles.device_code import read_device_code
from rocwheel.binary.code_objects import parse_target_id
from rocwheel.binary.kpack.archive import Scheme
from rocwheel.binary.kpack.write import compress_kernel
from rocwheel.core.compression import zstd
from rocwheel.core.reading import FileRange, load
from trials.benchmarks.device_code import fetched_library
from trials.benchmarks.measure import machine, markdown_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["main"]

_TARGET = parse_target_id("gfx906:xnack-")
_ZSTD_LEVELS = (1, 3, 6, 9, 12, 15, 19)
_DEFLATE_LEVELS = (1, 6, 9)
"""libdeflate; rocwheel's wheels are packed with level 6."""


def main() -> None:
    """Print the table for the documentation."""
    codes = _read_codes()
    raw_size = sum(map(len, codes))
    print(machine())
    print(f"\n{len(codes)} code objects for {_TARGET}, {raw_size / 1e6:.1f} MB\n")
    rows = [_zstd_row(codes, level) for level in _ZSTD_LEVELS]
    rows += [_deflate_row(codes, level) for level in _DEFLATE_LEVELS]
    print(markdown_table(("", "MB", "share, %", "compress, s", "decompress, s"), rows))


def _read_codes() -> list[memoryview]:
    library = fetched_library()
    with FileRange.whole(library).view() as data:
        code = read_device_code(data, name=str(library))
        assert code is not None
        view = code.view(data)
        return [
            load(view[bundle.start + entry.offset :][: entry.size])
            for bundle in code.iter_bundles(data)
            for entry in bundle.plain.device_entries
            if entry.target == _TARGET
        ]


def _zstd_row(codes: Sequence[memoryview], level: int) -> Sequence[str]:
    return _row(f"zstd, level {level}", codes, lambda code: compress_kernel(code, Scheme.ZSTD, level), zstd.decompress)


def _deflate_row(codes: Sequence[memoryview], level: int) -> Sequence[str]:
    longest = max(map(len, codes))
    return _row(
        f"libdeflate, level {level}",
        codes,
        lambda code: deflate.deflate_compress(code, level),
        lambda data: deflate.deflate_decompress(data, longest),
    )


def _row(
    name: str,
    codes: Sequence[memoryview],
    compress: Callable[[memoryview], object],
    decompress: Callable[[bytes], object],
) -> Sequence[str]:
    start = time.thread_time()
    packed = [bytes(memoryview(compress(code))) for code in codes]  # type: ignore[arg-type]
    middle = time.thread_time()
    for data in packed:
        decompress(data)
    end = time.thread_time()
    size, raw_size = sum(map(len, packed)), sum(map(len, codes))
    share = f"{100 * size / raw_size:.1f}"
    return name, f"{size / 1e6:.1f}", share, f"{middle - start:.1f}", f"{end - middle:.1f}"


if __name__ == "__main__":
    main()
