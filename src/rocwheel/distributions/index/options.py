"""The options of writing an index, and the folder that it goes to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import Readers
from rocwheel.distributions.index.notes.found import Found
from rocwheel.distributions.index.placing.extra_files import Extras, IndexContent, no_extras
from rocwheel.distributions.index.placing.place_files import FilePlacement
from rocwheel.distributions.index.planning.yanked import KEEP_YANKED, Yanking

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["IndexOptions", "WriteFamilies", "choose_output", "default_output"]


WriteFamilies = Callable[[Collection[str]], Mapping[str, IndexContent]]
"""Writes the indexes of families below one that lists these projects, and returns what they list, by name."""


def _no_families(_: Collection[str]) -> Mapping[str, IndexContent]:
    return {}


class IndexOptions(msgspec.Struct, frozen=True):
    """What is asked of an index beside its folders, and how it is made."""

    placement: FilePlacement = FilePlacement.RELATIVE
    """Whether the pages link to the files where they are, or to what the index has of them."""
    yanking: Yanking = KEEP_YANKED
    """Which files are to be yanked from now on, or no longer."""
    progress: Progress = SILENT
    """Is told how much of the distributions is read."""
    upload_time: int | None = None
    """Of all files that are new, in microseconds since 1970; none for the time of each file's last change."""
    extras: Extras = no_extras
    """Makes further files of what the index lists."""
    family: str = ""
    """Whose index it is, below that of all; empty for that one."""
    memory: dict[Path, Found] = msgspec.field(default_factory=dict)
    """What this process has read for other indexes, by path."""
    served: Path | None = None
    """The folder that a web server has to serve for the index; none for the one above it."""
    may_be_empty: bool = False
    """Whether the first folder may lack distributions."""
    machine: tuple[str, ...] = ()
    """The GPU targets of the machines that the index is for, for its wheel variants (a draft); empty for any."""
    left_out: frozenset[str] = frozenset()
    """Names of distributions in the folders that the index doesn't list."""
    write_families: WriteFamilies = _no_families
    """What is done when the pages of projects stand, before those that lead to the indexes of families."""
    readers: Readers | None = None
    """Who reads distributions; none for threads of this process."""


def default_output(dist_dir: Path) -> Path:
    """Return the absolute path where the index of ``dist_dir`` goes by default: folders side by side have one each."""
    folder = dist_dir.resolve()
    return folder.parent / ("simple" if folder.name in ("dist", "") else f"simple-{folder.name}")


def choose_output(dist_dirs: Sequence[Path], output: Path | None) -> Path:
    """Return where an index goes: the folder that is given, else the default for the only folder.

    Raises `InputError` where neither is there.
    """
    if output is None and len(dist_dirs) != 1:
        option, found = "--output", "is missing"
        raise InputError(option, found, expected="the folder for the index of several folders")
    return output or default_output(dist_dirs[0])
