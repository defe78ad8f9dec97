"""Retargeting of Debian's librocsparse0 to six more GPUs, beside the plain work: read, relabel, hash and compress.

The floor is a program of its own, and so measured as a run is: ``python -m trials.benchmarks.retarget LEVEL``.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.binary.bundles.compressed import compress_bundle
from rocwheel.binary.bundles.device_code import read_device_code
from rocwheel.binary.bundles.plain import write_offload_bundle
from rocwheel.core.compression import DEVICE_CODE_LEVEL, zstd
from rocwheel.core.reading import FileRange, load
from rocwheel.device.edit_bundles import bundle_parts
from rocwheel.device.retarget import Retarget
from rocwheel.targets.retarget_pairs import parse_pairs
from trials.benchmarks.device_code import fetched_library
from trials.benchmarks.measure import CACHE, machine, markdown_table, run_measured

if TYPE_CHECKING:
    from rocwheel.binary.bundles.sequence import Bundle
    from rocwheel.core.reading import Data

__all__ = ["main"]

_PAIR = "gfx1030=extended"
_LEVELS = (1, 2, 3, 5, 7, 9, 12)
_EVERY = 9
"""One bundle in so many is a sample."""
_WORKERS = 2


def main() -> None:
    """Print the tables for the documentation."""
    library = fetched_library()
    print(machine())
    print("\n" + markdown_table(("zstd level", "CPU s", "MB"), [_level_row(library, level) for level in _LEVELS]))
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        output = Path(folder, "more.so")
        run = (sys.executable, "-m", "rocwheel", "device", "retarget", _PAIR, str(library), "--compress", "--quiet")
        commands = {
            "`device retarget --compress`": (*run, "-o", str(output)),
            "floor: read, relabel, hash, compress": (
                sys.executable,
                "-m",
                "trials.benchmarks.retarget",
                str(DEVICE_CODE_LEVEL),
            ),
        }
        print("\n" + markdown_table(("", "wall s", "CPU s", "resident MB"), [_row(*one) for one in commands.items()]))


def _level_row(library: Path, level: int) -> tuple[str, ...]:
    with FileRange.whole(library).view() as data:
        view, bundles = _read(data, library)
        raw = [_retargeted(view, bundle) for bundle in bundles[::_EVERY]]
    start = time.thread_time()
    size = sum(len(compress_bundle(buffers, version=2, level=level)) for buffers in raw)
    return str(level), f"{time.thread_time() - start:.1f}", f"{size / 1e6:.1f}"


def _row(name: str, command: tuple[str, ...]) -> tuple[str, ...]:
    run = run_measured(command, watched=(), environment={})
    return name, f"{run.wall:.1f}", f"{run.cpu:.1f}", f"{run.resident / 1e6:.0f}"


def _read(data: Data, library: Path) -> tuple[Data, list[Bundle]]:
    code = read_device_code(data, name=str(library))
    assert code is not None
    return code.view(data), list(code.iter_bundles(data))


def _retargeted(view: Data, bundle: Bundle) -> list[memoryview]:
    edit = Retarget(tuple(parse_pairs(_PAIR, source="benchmark")))
    return [load(buffer) for buffer in write_offload_bundle(edit(bundle_parts(view, bundle), place=bundle.place))]


def _compress_all(library: Path, level: int) -> int:
    """Compress all bundles, each with six more entries, by two threads; return how many bytes they take."""
    with FileRange.whole(library).view() as data, ThreadPoolExecutor(_WORKERS) as executor:
        view, bundles = _read(data, library)
        return sum(executor.map(lambda bundle: _packed_size(b"".join(_retargeted(view, bundle)), level), bundles))


def _packed_size(raw: bytes, level: int) -> int:
    hashlib.md5(raw, usedforsecurity=False).digest()
    names = zstd.CompressionParameter
    options: dict[int, int] = {
        names.compression_level: level,
        names.enable_long_distance_matching: 1,
        names.ldm_hash_rate_log: 7,
    }
    return len(zstd.compress(raw, options=options))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        print(_compress_all(fetched_library(), int(sys.argv[1])), file=sys.stderr)
    else:
        main()
