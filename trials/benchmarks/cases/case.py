"""What is measured of a command: on which inputs, beside which floor, and beside which other tools."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["PYTHON", "Case", "Words", "floor", "rocwheel", "tool"]

Words = tuple[str, ...]
"""A command line."""

PYTHON = sys.executable
_BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Case:
    """A command whose cost grows with its input; the functions get the folder of an input, and one to write into."""

    name: str
    unit: str
    """What is counted: files, wheels, or MB."""
    sizes: Sequence[int]
    """The smallest is what a command takes with hardly anything; the others grow by twos."""
    make: Callable[[Path, int], None]
    """Makes the input of a size in an empty folder."""
    command: Callable[[Path, Path], Words]
    floor: Callable[[Path, Path], Words]
    """The least that has to be done with the same bytes."""
    tools: Mapping[str, Callable[[Path, Path], Words]] = field(default_factory=dict)
    """What people use today for the same."""
    prepare: Callable[[Path, Path], None] | None = None
    """Makes anew what a run changes, before each run."""
    statuses: Sequence[int] = (0,)


def rocwheel(*words: object) -> Words:
    """Return the command line of a command of ours, without messages."""
    return (PYTHON, "-m", "rocwheel", *map(str, words), "--quiet")


def floor(name: str, *words: object) -> Words:
    """Return the command line of a floor of `trials.benchmarks.cases.floors`."""
    return (PYTHON, "-m", "trials.benchmarks.cases.floors", name, *map(str, words))


def tool(name: str, *words: object) -> Words:
    """Return the command line of a tool of this environment, or of the system."""
    own = _BIN / name
    return (str(own) if own.exists() else name, *map(str, words))
