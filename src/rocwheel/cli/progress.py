"""Shows the progress of long work: a bar on a terminal, or lines in a log. Short work shows no progress."""

from __future__ import annotations

import sys
from threading import RLock, Timer
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from rocwheel.cli.output import messages
from rocwheel.core.messages import in_one_line
from rocwheel.core.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Callable

_BAR_AFTER, _LINES_AFTER = 0.5, 2.0
"""The number of seconds of work before steps are shown. A terminal can erase steps, but a log can't."""
_ROOM = 80
"""The number of terminal columns for a complete bar with its label."""
_BESIDE_BAR, _BESIDE_PERCENT, _BESIDE_SPINNER = 60, 15, 12
"""The columns for everything except for the label.

One column remains unused, because full lines wrap on some terminals.
"""
_LEAST_ROOM = 12
"""The number of columns below which a label is only truncated."""
_LEAST = 0.1
"""The minimum duration of a displayed step in seconds."""
_LINES_EVERY = 0.1
"""A log shows another step after this share of the elapsed time, so that a thousand short steps print few lines."""


def make_progress(*, quiet: bool) -> Progress:
    """Return a bar on a terminal, plain lines in a log, or nothing when ``quiet``."""
    end_progress()
    if quiet:
        return SILENT
    made = _Delayed(_Bar, _BAR_AFTER, 0) if messages.is_terminal else _Delayed(_Lines, _LINES_AFTER, _LINES_EVERY)
    _current.append(made)
    return made


def end_progress() -> None:
    """Stop showing progress, for example, when a command fails."""
    while _current:
        _current.pop().end()


_current: list[Progress] = []
"""The progress displays of the running command."""


class _View(Protocol):
    """A displayed step."""

    def update(self, done: int) -> None:
        """Show the completed amount."""

    def close(self) -> None:
        """Stop showing the step."""


class _Delayed:
    """A `Progress` that shows nothing for a few seconds, and then shows the steps that take longer.

    A step is shown even if no part of it is done by then.
    """

    def __init__(self, view: Callable[[str, int], _View], after: float, every: float) -> None:
        self._view, self._after, self._every = view, after, every
        self._began = self._last = monotonic()
        self._lock, self._done = RLock(), 0
        self._timer: Timer | None = None
        self._shown: _View | None = None

    def begin(self, label: str, total: int) -> None:
        """Start a step."""
        self.end()
        with self._lock:
            self._done = 0
            self._timer = timer = Timer(self._pause(), lambda: self._show(timer, label, total))
            timer.daemon = True
            timer.start()

    def _pause(self) -> float:
        """Return the number of seconds before a new step is shown."""
        now = monotonic()
        due = self._began + self._after
        if self._every:
            due = self._last + max(self._after, self._every * (now - self._began))
        return max(due - now, min(_LEAST, self._after))

    def _show(self, timer: Timer, label: str, total: int) -> None:
        with self._lock:
            if self._timer is timer:
                self._last = monotonic()
                self._shown = self._view(in_one_line(label), total)
                self._shown.update(self._done)

    def advance(self, amount: int) -> None:
        """Add to the completed amount of the step."""
        with self._lock:
            self._done += amount
            if self._shown:
                self._shown.update(self._done)

    def end(self) -> None:
        """End the current step, if there is one."""
        with self._lock:
            if self._timer:
                self._timer.cancel()
            if self._shown:
                self._shown.close()
            self._timer = self._shown = None


class _Bar:
    """A line on the terminal: a bar if the total amount is known, or a spinner otherwise."""

    def __init__(self, label: str, total: int) -> None:
        from rich import (
            progress as rich,
        )  # logs have no bars, and most commands take less time than loading this module
        from rich.table import Column
        from rich.text import Text

        class Speed(rich.TransferSpeedColumn):
            """The speed, if it is known."""

            def render(self, task: rich.Task) -> Text:
                """Return the text for the speed, or an empty string."""
                return super().render(task) if task.finished_speed or task.speed else Text()

        spinner = rich.SpinnerColumn("line" if messages.rich.options.ascii_only else "dots")
        parts: tuple[rich.ProgressColumn, ...] = (spinner, rich.TimeElapsedColumn())
        beside = _BESIDE_SPINNER
        if total and messages.rich.width >= _ROOM:
            parts = (rich.BarColumn(20), rich.DownloadColumn(), Speed(), rich.TimeElapsedColumn())
            beside = _BESIDE_BAR
        elif total:
            parts, beside = (rich.TaskProgressColumn(), rich.TimeElapsedColumn()), _BESIDE_PERCENT
        room = max(messages.rich.width - beside, 1)
        in_one_row = Column(no_wrap=True, overflow="ellipsis", width=min(len(label), room))
        text = rich.TextColumn("{task.description}", markup=False, table_column=in_one_row)
        columns = (text, *parts) if beside == _BESIDE_BAR else (*parts, text)
        # Results on the same terminal go above the bar. Results in a pipe don't contain the bar.
        is_shared = bool(sys.stdout and sys.stdout.isatty())
        self._bar = rich.Progress(*columns, console=messages.rich, transient=True, redirect_stdout=is_shared)
        self._task = self._bar.add_task(_shortened(label, room), total=total or None)
        self._is_started = False

    def update(self, done: int) -> None:
        self._bar.update(self._task, completed=done)
        if not self._is_started:
            self._is_started = True
            self._bar.start()

    def close(self) -> None:
        self._bar.stop()


def _shortened(label: str, room: int) -> str:
    """Return a label that fits on the line.

    The beginning and the end of a long label remain, for example, if the label contains a wheel's name.
    """
    if len(label) <= room or room < _LEAST_ROOM:
        return label
    end = (room - 3) // 3
    return f"{label[: room - 3 - end]}...{label[-end:]}"


class _Lines:
    """Prints a line when a step is first shown, and at each following quarter of the step."""

    def __init__(self, label: str, total: int) -> None:
        self._label, self._total, self._reported = label, total, -1
        messages.print(f"{label} ...", markup=False)

    def update(self, done: int) -> None:
        quarter = min(4 * done // self._total, 4) if self._total else 0
        is_first, last = self._reported < 0, self._reported
        self._reported = max(quarter, last)
        if quarter > max(last, 0) and not is_first:
            messages.print(f"{self._label} {25 * quarter}%", markup=False)

    def close(self) -> None:
        """Keep the lines."""
