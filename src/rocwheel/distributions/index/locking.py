"""One run at a time in an index: two would each leave out what the other has found."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rocwheel.core.scratch import locked_folder
from rocwheel.distributions.index.notes.known_files import read_families

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["locked_index"]


@contextmanager
def locked_index(output: Path) -> Iterator[None]:
    """Hold an index during the block, or wait for the run that does; raises `WorkError` as `locked_folder` does.

    The index of a family has the lock of the index above it, as a run for that one writes both. What stands in the
    place of the folder is left to who looks at that.
    """
    if output.exists() and not output.is_dir():
        yield
        return
    is_family = output.name in read_families(output.parent)
    with locked_folder(output.parent if is_family else output):
        yield
