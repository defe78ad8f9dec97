"""Device code of Debian's librocsparse0: inspect, extract and compress, beside LLVM's own bundler where it can.

The bundler knows one bundle, so it is given the largest one as a file; the whole library is for rocwheel alone.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import deflate

from rocwheel.binary.bundles.device_code import read_device_code
from rocwheel.core.reading import FileRange, iter_pieces, load
from trials.benchmarks.measure import CACHE, machine, markdown_table, run_measured

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["fetched_library", "main"]

_TARGET = "gfx90a:xnack-"
_IDS = [
    f"hipv4-amdgcn-amd-amdhsa--{target}"
    for target in ("gfx1030", "gfx803", "gfx900:xnack-", "gfx906:xnack-", "gfx908:xnack-", "gfx90a:xnack+", _TARGET)
]
_HOST = "host-x86_64-unknown-linux--"
_BUNDLER = "clang-offload-bundler-19"
"""The newest in Debian 12 that accepts the spelling of host entries of clang 15."""
_ROCWHEEL = (sys.executable, "-m", "rocwheel")
_BLOCK = 1 << 20
_FETCH = Path(__file__).parents[2] / "scripts" / "fetch_device_code_corpus.sh"


def main() -> None:
    """Print the tables for the documentation."""
    library = fetched_library()
    print(machine())
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        work = Path(folder)
        print("\n### The whole library: 111 bundles for 7 targets\n")
        print(markdown_table(("", "time, s", "CPU, s", "memory, MB"), _measure_library(library, work)))
        print("\n### Sizes, MB\n")
        print(markdown_table(("", "file", "on disk", "deflated, as in a wheel"), _measure_sizes(library, work)))
        print("\n### The largest bundle by itself\n")
        bundle = work / "bundle.hipfb"
        _write_largest_bundle(library, bundle)
        print(markdown_table(("", "time, s", "CPU, s", "memory, MB"), _measure_bundle(bundle, work)))


def fetched_library() -> Path:
    """Return the library, fetched into the cache when it isn't there."""
    pattern = "librocsparse0/usr/lib/*/librocsparse.so.0.1"
    if not any(CACHE.glob(pattern)):
        subprocess.run(["sh", _FETCH], check=True)  # noqa: S607 (this machine's)
    return next(CACHE.glob(pattern))


def _measure_library(library: Path, work: Path) -> list[Sequence[str]]:
    commands = {
        "inspect": ("inspect", library),
        "list": ("device", "list", library),
        f"extract {_TARGET} from all": ("device", "extract", library, "-t", _TARGET, "-d", work / "code"),
        "compress": ("device", "compress", library, "-o", work / "compress.so"),
        "compress --level 3": ("device", "compress", library, "--level", "3", "-o", work / "compress --level 3.so"),
        "compress --trim": ("device", "compress", library, "--trim", "-o", work / "compress --trim.so"),
        "inspect the compressed": ("inspect", work / "compress.so"),
        "extract from the compressed": (
            "device", "extract", work / "compress.so", "-t", _TARGET, "-d", work / "code"),
        "retarget gfx1030=extended": (
            "device", "retarget", "gfx1030=extended", library, "--compress",
            "-o", work / "retarget gfx1030=extended.so"),
    }  # fmt: skip
    return [_row(name, (*_ROCWHEEL, *map(str, command), "--quiet")) for name, command in commands.items()]


def _measure_sizes(library: Path, work: Path) -> list[Sequence[str]]:
    return [_size_row("as it is", library), *(_size_row(path.stem, path) for path in sorted(work.glob("*.so")))]


def _size_row(name: str, path: Path) -> Sequence[str]:
    status = path.stat()
    return name, _mega(status.st_size), _mega(status.st_blocks * 512), _mega(_deflated_size(path))


def _deflated_size(path: Path) -> int:
    """Return the size of the file in a wheel, nearly: deflated in blocks, which cost 0.16 %."""
    with FileRange.whole(path).view() as data, ThreadPoolExecutor(2) as executor:
        return sum(executor.map(lambda block: len(deflate.deflate_compress(block, 5)), iter_pieces(data, _BLOCK)))


def _write_largest_bundle(library: Path, path: Path) -> None:
    with FileRange.whole(library).view() as data:
        code = read_device_code(data, name=str(library))
        assert code is not None
        bundle = max(code.iter_bundles(data), key=lambda bundle: bundle.size)
        path.write_bytes(load(code.view(data)[bundle.start : bundle.stop]))


def _measure_bundle(bundle: Path, work: Path) -> list[Sequence[str]]:
    small = work / "bundle.ccob"
    commands: dict[str, Sequence[object]] = {
        "rocwheel device list": (*_ROCWHEEL, "device", "list", bundle),
        "rocwheel device extract": (*_ROCWHEEL, "device", "extract", bundle, "-t", _TARGET, "-d", work / "code"),
        "rocwheel device compress": (*_ROCWHEEL, "device", "compress", bundle, "-o", small, "--level", "3"),
        "rocwheel device list, compressed": (*_ROCWHEEL, "device", "list", small),
        "rocwheel device extract, compressed": (
            *_ROCWHEEL, "device", "extract", small, "-t", _TARGET, "-d", work / "code"),
    }  # fmt: skip
    rows = [_row(name, [*map(str, command), "--quiet"]) for name, command in commands.items()]
    sizes = {"as it is": bundle, "rocwheel, level 3": small}
    if shutil.which(_BUNDLER):
        stock = work / "stock.ccob"
        rows += [
            _row(f"{_BUNDLER} {name}", command) for name, command in _bundler_commands(bundle, stock, work).items()
        ]
        sizes[f"{_BUNDLER}, level 3"] = stock
    return [*rows, *((f"size: {name}", f"{path.stat().st_size} bytes", "", "") for name, path in sizes.items())]


def _bundler_commands(bundle: Path, compressed: Path, work: Path) -> dict[str, Sequence[str]]:
    parts = [work / f"part{number}" for number in range(len(_IDS))]
    read, read_small = ((_BUNDLER, "--type=o", f"--input={path}") for path in (bundle, compressed))
    extract = ("--unbundle", f"--targets={_IDS[-1]}", f"--output={work / 'code.co'}")
    extract_all = ("--unbundle", f"--targets={','.join(_IDS)}", *(f"--output={part}" for part in parts))
    write = (_BUNDLER, "--type=o", "--bundle-align=4096", "--compress", f"--targets={','.join([_HOST, *_IDS])}")
    return {
        "--list": (*read, "--list"),
        "--unbundle": (*read, *extract),
        "--unbundle, all": (*read, *extract_all),
        "--compress, from these": (
            *write, "--input=/dev/null", *(f"--input={part}" for part in parts), f"--output={compressed}"),
        "--list, compressed": (*read_small, "--list"),
        "--unbundle, compressed": (*read_small, *extract),
    }  # fmt: skip


def _row(name: str, command: Sequence[str]) -> Sequence[str]:
    run = run_measured(command, watched=(), environment={})
    return name, f"{run.wall:.2f}", f"{run.cpu:.2f}", _mega(run.resident)


def _mega(size: int) -> str:
    return f"{size / 1e6:.0f}"


if __name__ == "__main__":
    main()
