"""The host half of a split of Debian's librocsparse0, beside the plain copy of the bytes that remain."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.binary.kpack.markers import Marker
from rocwheel.core.patch import write_patched
from rocwheel.core.reading import FileRange
from rocwheel.device.split.host_file import UnitLink, plan_host_file
from trials.benchmarks.device_code import fetched_library
from trials.benchmarks.measure import CACHE, machine, markdown_table

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["main"]

_RUNS = 9
_MARKERS = (Marker("lib/librocsparse.so.0.1", ("../.kpack/sparse_@GFXARCH@.kpack",)),)


def main() -> None:
    """Print the table for the documentation."""
    library = fetched_library()
    print(machine())
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        host, copy = Path(folder, "host.so"), Path(folder, "copy.so")
        split = _median(lambda: _split(library, host))
        floor = _median(lambda: copy.write_bytes(host.read_bytes()))
        rows = [
            ("splitting off the code, all wrappers' pointers included", f"{split * 1000:.1f}"),
            (f"copying the {host.stat().st_size / 1e6:.1f} MB that remain", f"{floor * 1000:.1f}"),
        ]
        print("\n" + markdown_table(("", "time, ms"), rows))


def _median(job: Callable[[], object]) -> float:
    times = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _split(library: Path, host: Path) -> None:
    name = str(library)
    with FileRange.whole(library).view() as data, host.open("wb") as file:
        fat = read_fat_binary(data, name=name)
        assert fat is not None
        index = {start: number for number, start in enumerate(fat.starts)}
        links = [UnitLink(index[wrapper.pointer.target - fat.section.address], 0) for wrapper in fat.wrappers]
        patch = plan_host_file(data, _MARKERS, links, name=name)
        write_patched(file, data, patch.replacements, size=patch.size)
