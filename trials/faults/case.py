"""A case: a command that writes, its inputs, and what its output folder holds before it runs."""

from __future__ import annotations

import importlib
import os
import shutil
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import TYPE_CHECKING

from trials.faults.forked import Command
from trials.faults.shim import Watched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from trials.faults.choice import Call

__all__ = ["MODULES", "Case", "Place", "all_cases", "find_case", "nothing"]

MODULES = ("packages", "device", "wheels", "artifacts", "sdk")
"""Modules of `trials.faults.cases`; each has its cases in ``CASES``."""


@dataclass(frozen=True)
class Place:
    """The folder in which a case runs; all that commands read and write is below it."""

    root: Path

    @property
    def given(self) -> Path:
        """What commands read, which nothing may change."""
        return self.root / "in"

    @property
    def out(self) -> Path:
        """What commands write."""
        return self.root / "out"

    @property
    def cache(self) -> Path:
        """Rocwheel's cache."""
        return self.root / "cache"

    @property
    def temporary(self) -> Path:
        """The folder for temporary files."""
        return self.root / "tmp"

    def command(self, words: Sequence[str | Path], module: str = "rocwheel", site: Path | None = None) -> Command:
        """Return a command that runs here, in an environment of its own."""
        environ = {
            "HOME": str(self.root / "home"),
            "LANG": "C.UTF-8",
            "PATH": os.defpath,
            "PYTHONDONTWRITEBYTECODE": "1",
            "ROCWHEEL_CACHE_DIR": str(self.cache),
            "SOURCE_DATE_EPOCH": "1700000000",
            "TMPDIR": str(self.temporary),
        }
        return Command(tuple(map(str, words)), self.root, environ, module, site)

    def clear(self) -> None:
        """Remove all but what commands read."""
        for path in (self.out, self.cache, self.temporary):
            shutil.rmtree(path, ignore_errors=True)
        self.temporary.mkdir()


def nothing(_: Place) -> None:
    """Prepare nothing."""


@dataclass(frozen=True)
class Case:
    """A command that writes."""

    name: str
    words: Callable[[Place], tuple[str | Path, ...]]
    prepare: Callable[[Place], None]
    """Makes the inputs, once."""
    begin: Callable[[Place], None] = nothing
    """Makes what its output folder holds before each run."""
    may_leave_out: tuple[str, ...] = ()
    """Inputs without which it may go on, where it can't read them; its exit status tells."""
    varies: tuple[str, ...] = ()
    """Outputs that hold times, so that no two runs write the same."""
    between: tuple[str, ...] = ()
    """Patterns of files that are there, or differ, from the beginning of its work to its end, even in another run."""
    is_report: bool = False
    """Whether it goes on without inputs that it can't read, and lists them in its result."""
    check: Callable[[Place], list[str]] = lambda _: []
    """Returns what is wrong at any time, each as a line."""
    module: str = "rocwheel"
    site: Callable[[Place], Path | None] = field(default=lambda _: None)

    def command(self, place: Place) -> Command:
        """Return what is run."""
        return place.command(self.words(place), self.module, self.site(place))

    def watched(self, place: Place) -> Watched:
        """Return where calls are counted: not where Python finds the command itself."""
        site = self.site(place)
        return Watched(place.root, site and site / self.module)

    def own_calls(self, place: Place, calls: Iterable[Call]) -> list[Call]:
        """Return the calls that are the command's.

        Those before are Python's: it looks through the folder of modules for the command. Where it can't, it says so
        by a traceback, or that there is no such module, whatever the command would do.
        """
        site = str(self.site(place))
        return list(dropwhile(lambda call: call.path == site, calls))


def all_cases() -> tuple[Case, ...]:
    """Return every case, in the order of the modules."""
    return tuple(case for module in MODULES for case in importlib.import_module(f"trials.faults.cases.{module}").CASES)


def find_case(name: str) -> Case:
    """Return the case of a name; raises `KeyError` for an unknown one."""
    return {case.name: case for case in all_cases()}[name]
