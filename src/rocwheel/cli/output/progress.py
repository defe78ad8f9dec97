"""How far long work is: a bar on a terminal, lines in a log."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rocwheel.cli.output.consoles import messages
from rocwheel.cli.output.printable import printable
from rocwheel.foundation.progress import SILENT, Progress

__all__ = ["make_progress"]


def make_progress(*, quiet: bool) -> Progress:
    """Return a bar on a terminal, plain lines in a log, nothing when ``quiet``."""
    if quiet:
        return SILENT
    return _BarProgress() if messages.is_terminal else _LineProgress()


class _BarProgress:
    def __init__(self) -> None:
        # Only now, as logs have no bars, and most commands end sooner than this is loaded.
        rich = import_module("rich.progress")
        columns = (
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.DownloadColumn(),
            rich.TransferSpeedColumn(),
            rich.TimeElapsedColumn(),
        )
        self._bar: Any = rich.Progress(*columns, console=messages.rich, transient=True)
        self._task: int | None = None

    def begin(self, label: str, total: int) -> None:
        self.end()
        self._task = self._bar.add_task(label, total=total)
        self._bar.start()

    def advance(self, amount: int) -> None:
        if self._task is not None:
            self._bar.advance(self._task, amount)

    def end(self) -> None:
        if self._task is not None:
            self._bar.stop()
            self._bar.remove_task(self._task)
            self._task = None


class _LineProgress:
    """Print a line when a step begins, and one at each quarter of it."""

    def __init__(self) -> None:
        self._label, self._total, self._done, self._reported = "", 0, 0, 0

    def begin(self, label: str, total: int) -> None:
        self._label, self._total, self._done, self._reported = printable(label), total, 0, 0
        messages.print(f"{self._label} ...", markup=False)

    def advance(self, amount: int) -> None:
        self._done += amount
        quarter = 4 * self._done // self._total if self._total else 4
        # Of short work, which passes no quarter before its end, the first line says enough.
        if self._reported < quarter <= 4 and (self._reported or quarter < 4):
            self._reported = quarter
            messages.print(f"{self._label} {25 * quarter} %", markup=False)

    def end(self) -> None:
        self._label = ""
