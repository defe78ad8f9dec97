"""How far long work is: a bar on a terminal, lines in a log, and neither for what is over soon."""

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
"""Seconds of work after which steps are shown: a terminal can forget them, a log can't."""
_ROOM = 80
"""The columns of a terminal that has a bar with all that is said beside it, and the label."""
_BESIDE_BAR, _BESIDE_PERCENT, _BESIDE_SPINNER = 60, 15, 12
"""The columns that everything but the label takes, with one left free: a full line wraps on some terminals."""
_LEAST_ROOM = 12
"""The columns below which a label is only cut off."""
_LEAST = 0.1
"""Seconds that a step lasts at least if it is shown."""
_LINES_EVERY = 0.1
"""A log shows another step after this share of the elapsed time, so that a thousand short steps print few lines."""


def make_progress(*, quiet: bool) -> Progress:
    """Return a bar on a terminal, plain lines in a log, nothing when ``quiet``."""
    end_progress()
    if quiet:
        return SILENT
    made = _Delayed(_Bar, _BAR_AFTER, 0) if messages.is_terminal else _Delayed(_Lines, _LINES_AFTER, _LINES_EVERY)
    _current.append(made)
    return made


def end_progress() -> None:
    """Show no progress any more, as when a command fails."""
    while _current:
        _current.pop().end()


_current: list[Progress] = []
"""What the command that runs has made."""


class _View(Protocol):
    """A step that is shown."""

    def update(self, done: int) -> None:
        """Show that so much is done."""

    def close(self) -> None:
        """Show the step no longer."""


class _Delayed:
    """A `Progress` that shows nothing for some seconds, and then the steps that are not over soon.

    A step is shown even if nothing of it is done by then.
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
        """Return the seconds after which a step that begins now is shown."""
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
        """Add to what is done of the step."""
        with self._lock:
            self._done += amount
            if self._shown:
                self._shown.update(self._done)

    def end(self) -> None:
        """End the step, if there is one."""
        with self._lock:
            if self._timer:
                self._timer.cancel()
            if self._shown:
                self._shown.close()
            self._timer = self._shown = None


class _Bar:
    """One line on the terminal: a bar where it is known how much there is to do, else a spinner."""

    def __init__(self, label: str, total: int) -> None:
        from rich import progress as rich  # logs have no bars, and most commands end sooner than this is loaded
        from rich.table import Column
        from rich.text import Text

        class Speed(rich.TransferSpeedColumn):
            """The speed, once it is known."""

            def render(self, task: rich.Task) -> Text:
                """Return it, or nothing."""
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
        # Results on the same terminal go above the bar; those in a pipe stay out of it.
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
    """Return a label that fits: of a long one, as with the name of a wheel, the beginning and the end."""
    if len(label) <= room or room < _LEAST_ROOM:
        return label
    end = (room - 3) // 3
    return f"{label[: room - 3 - end]}...{label[-end:]}"


class _Lines:
    """Print a line when a step is shown, and one at each quarter of it that comes after that."""

    def __init__(self, label: str, total: int) -> None:
        self._label, self._total, self._reported = label, total, -1
        messages.print(f"{label} ...", markup=False)

    def update(self, done: int) -> None:
        quarter = min(4 * done // self._total, 4) if self._total else 0
        is_first, last = self._reported < 0, self._reported
        self._reported = max(quarter, last)
        if quarter > max(last, 0) and not is_first:
            messages.print(f"{self._label} {25 * quarter} %", markup=False)

    def close(self) -> None:
        """Leave the lines."""
