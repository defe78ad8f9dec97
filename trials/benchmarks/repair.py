"""Repair of a wheel with one large library, beside the plain inflating, hashing, deflating and writing of its bytes.

The floor is a program of its own, and so measured as a repair is: ``python -m trials.benchmarks.repair WHEEL DEST``.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import deflate
from zlib_ng import zlib_ng

from rocwheel.core.compression import WHEEL_LEVEL
from rocwheel.wheels.member_compression import BLOCK
from rocwheel.wheels.zip_directory import read_directory
from rocwheel.wheels.zip_reader import iter_packed
from tests.support.published_wheels import JAX_WHEELS
from tests.support.repair_proof.corpus import download, read_corpus
from trials.benchmarks.measure import CACHE, machine, markdown_table, median_run, run_measured

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.wheels.zip_reader import ZipMember
    from trials.benchmarks.measure import Run

__all__ = ["main"]

_WORKERS = 2
_PIECE = 4 << 20


def main() -> None:
    """Print the table for the documentation: of the wheel that is named, else of JAX's plugin for ROCm 7."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--wheel", type=Path, help="a wheel that a repair changes")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(sys.argv[1:] if sys.argv[0].endswith("repair.py") else [])
    print(machine())
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        work = Path(folder)
        wheel = options.wheel or _fetched_wheel()
        repairs, floors = [], []
        for number in range(options.rounds):
            repairs.append(_repair(wheel, work / f"repair-{number}"))
            floors.append(_floor(wheel, work / f"floor-{number}"))
        rows = [_row("`rocwheel repair`", median_run(repairs)), _row("floor: the same bytes", median_run(floors))]
        print("\n" + markdown_table(("", "wall s", "CPU s", "resident MB", "output bytes"), rows))


def _fetched_wheel() -> Path:
    """Return a published wheel with one library of 459 MB, whose run path lacks what it needs of the SDK."""
    wheel = next(wheel for wheel in read_corpus() if wheel.project == "jax-rocm7-pjrt")
    return download(wheel, JAX_WHEELS)


def _repair(wheel: Path, dest: Path) -> Run:
    command = (sys.executable, "-m", "rocwheel", "repair", str(wheel), "--output", str(dest), "--quiet")
    return _measured(command, dest)


def _floor(wheel: Path, dest: Path) -> Run:
    return _measured((sys.executable, "-m", "trials.benchmarks.repair", str(wheel), str(dest)), dest)


def _measured(command: tuple[str, ...], dest: Path) -> Run:
    dest.mkdir()
    return run_measured(command, watched=[dest], environment={})


def _row(name: str, run: Run) -> tuple[str, ...]:
    return name, f"{run.wall:.1f}", f"{run.cpu:.1f}", f"{run.resident / 1e6:.0f}", f"{run.output:,}"


def _write_again(wheel: Path, dest: Path) -> None:
    """Inflate and hash the largest member of a wheel once, deflate its blocks with two threads, and write these."""
    member = max(read_directory(wheel), key=lambda member: member.size)
    with (dest / "blocks").open("wb") as file, ThreadPoolExecutor(_WORKERS) as executor:
        waiting: deque[object] = deque()
        for block in _blocks(member):
            waiting.append(executor.submit(deflate.deflate_compress, block, WHEEL_LEVEL))
            if len(waiting) > 2 * _WORKERS:
                file.write(waiting.popleft().result())  # type: ignore[attr-defined]
        for future in waiting:
            file.write(future.result())  # type: ignore[attr-defined]


def _blocks(member: ZipMember) -> Iterator[bytes]:
    block, sha256, crc32 = bytearray(), hashlib.sha256(), 0
    inflater = zlib_ng.decompressobj(-15)
    for packed in iter_packed(member):
        waiting = packed
        while waiting:
            piece = inflater.decompress(waiting, _PIECE)
            waiting = inflater.unconsumed_tail
            sha256.update(piece)
            crc32 = zlib_ng.crc32(piece, crc32)
            block += piece
            if len(block) >= BLOCK:
                yield bytes(block[:BLOCK])
                del block[:BLOCK]
    assert crc32 == member.crc32
    yield bytes(block)


if __name__ == "__main__":
    if len(sys.argv) == 3 and not sys.argv[1].startswith("-"):
        _write_again(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        main()
