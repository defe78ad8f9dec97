"""What the device code of many files takes when it is compressed and split off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.foundation.workers import open_workers
from rocwheel.installed.reading.read_file import begin_large
from rocwheel.report.measure_code import MeasuredCode, measure_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.diffing.values import Item, Unpack
    from rocwheel.foundation.progress import Progress
    from rocwheel.report.values.files import FileFacts

__all__ = ["measure_files"]


def measure_files(
    items: Sequence[Item], files: Sequence[FileFacts], progress: Progress, unpack: Unpack, *, estimate: bool
) -> dict[int, MeasuredCode]:
    """Return what was measured of the files with bundles, by their place; ``items`` are the files as they are held."""
    chosen = [place for place, file in enumerate(files) if file.parts]
    step = begin_large(progress, "measuring what could be saved", sum(items[place].size for place in chosen))
    found = {}
    with open_workers() as executor:
        for place in chosen:
            if (code := measure_code(items[place], executor, estimate=estimate, unpack=unpack)) is not None:
                found[place] = code
            step.advance(items[place].size)
    progress.end()
    return found
