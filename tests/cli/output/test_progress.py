"""How far long work is, in a log and on a terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console

from rocwheel.cli.output.consoles import LazyConsole
from rocwheel.cli.output.progress import make_progress
from rocwheel.foundation.progress import SILENT

if TYPE_CHECKING:
    import pytest


def test_quiet_work_reports_no_progress() -> None:
    assert make_progress(quiet=True) is SILENT


def test_a_log_gets_a_line_for_each_step_and_each_quarter(messages: io.StringIO) -> None:
    progress = make_progress(quiet=False)
    progress.begin("building [rocm]", 1000)
    for _ in range(100):
        progress.advance(10)
    progress.end()
    assert messages.getvalue().splitlines() == [
        "building [rocm] ...", "building [rocm] 25 %", "building [rocm] 50 %", "building [rocm] 75 %",
        "building [rocm] 100 %",
    ]  # fmt: skip


def test_a_step_of_unknown_length_gets_one_line(messages: io.StringIO) -> None:
    progress = make_progress(quiet=False)
    progress.begin("installing", 0)
    progress.advance(10)
    progress.end()
    assert messages.getvalue() == "installing ...\n"


def test_a_jump_over_several_quarters_is_reported_once(messages: io.StringIO) -> None:
    progress = make_progress(quiet=False)
    progress.begin("building", 100)
    progress.advance(60)
    progress.advance(40)
    progress.end()
    assert messages.getvalue().splitlines() == ["building ...", "building 50 %", "building 100 %"]


def test_a_terminal_shows_a_bar_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    console = LazyConsole(stderr=True)
    console.rich = Console(file=stream, force_terminal=True, width=80)
    monkeypatch.setattr("rocwheel.cli.output.progress.messages", console)
    progress = make_progress(quiet=False)
    progress.advance(5)
    progress.begin("reading", 100)
    progress.begin("building", 100)
    progress.advance(50)
    progress.end()
    progress.end()
    assert "building" in stream.getvalue()
    assert stream.getvalue().endswith("\x1b[2K")
