"""How far long work is, in a log and on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING

import pytest

from rocwheel.cli import progress as module
from rocwheel.cli.progress import make_progress
from rocwheel.core.progress import SILENT

if TYPE_CHECKING:
    import io

    from rocwheel.core.progress import Progress


@pytest.fixture
def progress(messages: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> Progress:
    """Return what a log gets, at once."""
    monkeypatch.setattr(module, "_LINES_AFTER", 0.0)
    return make_progress(quiet=False)


def begin(progress: Progress, messages: io.StringIO, label: str, total: int) -> None:
    """Begin a step and wait until it is shown."""
    progress.begin(label, total)
    for _ in range(500):
        if f"{label} ..." in messages.getvalue():
            return
        time.sleep(0.01)
    pytest.fail(f"{label} is not shown")


def test_quiet_mode_reports_no_progress() -> None:
    assert make_progress(quiet=True) is SILENT


def test_a_log_has_a_line_for_each_step_and_each_quarter(progress: Progress, messages: io.StringIO) -> None:
    begin(progress, messages, "building [rocm]", 1000)
    for _ in range(100):
        progress.advance(10)
    progress.end()
    assert messages.getvalue().splitlines() == [
        "building [rocm] ...", "building [rocm] 25%", "building [rocm] 50%", "building [rocm] 75%",
        "building [rocm] 100%",
    ]  # fmt: skip


def test_a_step_of_unknown_length_has_one_line(progress: Progress, messages: io.StringIO) -> None:
    begin(progress, messages, "installing", 0)
    progress.advance(10)
    progress.end()
    assert messages.getvalue() == "installing ...\n"


def test_a_jump_over_several_quarters_is_reported_once(progress: Progress, messages: io.StringIO) -> None:
    begin(progress, messages, "building", 100)
    progress.advance(60)
    progress.advance(40)
    progress.end()
    assert messages.getvalue().splitlines() == ["building ...", "building 50%", "building 100%"]


def test_a_log_has_no_lines_for_a_short_step(messages: io.StringIO) -> None:
    progress = make_progress(quiet=False)
    for label in ("reading", "building"):
        progress.begin(label, 100)
        progress.advance(100)
    progress.end()
    progress.end()
    assert messages.getvalue() == ""


def test_a_step_that_is_already_superseded_is_not_shown(messages: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LINES_AFTER", 2.0)
    progress = make_progress(quiet=False)
    progress.advance(5)
    progress.begin("reading", 100)
    progress.begin("building", 100)
    time.sleep(2.5)
    progress.end()
    assert messages.getvalue() == "building ...\n"


_WORK = """
import sys, time
from rocwheel.cli.output import results
from rocwheel.cli.progress import end_progress, make_progress
progress = make_progress(quiet=False)
progress.begin("reading [x]", 100)
progress.advance(50)
time.sleep(SECONDS)
results.print("a result", markup=False)
if len(sys.argv) > 1:
    end_progress()
    sys.exit(3)
progress.end()
print("the end", file=sys.stderr)
"""


def run_in_terminal(seconds: float, *words: str) -> tuple[str, str]:
    """Return what work of some seconds shows on a terminal as standard error, and what it prints to a pipe."""
    ours, theirs = pty.openpty()
    code = _WORK.replace("SECONDS", str(seconds))
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": os.environ.get("WIDTH", "80")}
    with subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=theirs, text=True, env=environ
    ) as process:
        os.close(theirs)
        shown = b""
        while data := _read(ours):
            shown += data
        assert process.stdout
        printed = process.stdout.read()
    os.close(ours)
    return shown.decode(), printed


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # which Linux says when the other end is closed
        return b""


@pytest.mark.slow
def test_a_terminal_shows_a_bar_and_clears_it() -> None:
    shown, printed = run_in_terminal(2)
    assert "reading [x]" in shown
    assert "50/100 bytes" in shown
    assert shown.endswith("\x1b[2Kthe end\r\n")
    assert printed == "a result\n"


@pytest.mark.slow
def test_a_bar_is_cleared_when_the_work_fails() -> None:
    shown, _ = run_in_terminal(2, "fail")
    assert "50/100 bytes" in shown
    assert shown.endswith("\x1b[2K")


@pytest.mark.slow
def test_a_terminal_shows_no_bar_for_a_short_step() -> None:
    assert run_in_terminal(0) == ("the end\r\n", "a result\n")


_LONG = "reading tensorflow_cpu-2.21.0-cp311-cp311-manylinux_2_27_x86_64.whl"
_STEP = f"""
import time
from rocwheel.cli.progress import make_progress
progress = make_progress(quiet=False)
progress.begin({_LONG!r}, TOTAL)
progress.advance(1_023_000_000)
time.sleep(1.5)
progress.end()
"""


def rows_in_terminal(total: int, width: int) -> list[str]:
    """Return the rows that a step with a long name shows on a terminal of so many columns, each once."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    environ = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": "xterm"}
    code = _STEP.replace("TOTAL", str(total))
    with subprocess.Popen([sys.executable, "-c", code], stdout=theirs, stderr=theirs, env=environ):
        os.close(theirs)
        shown = b""
        while data := _read(ours):
            shown += data
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    return list(dict.fromkeys(row.rstrip() for row in re.split(r"[\r\n]+", text) if row.strip()))


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 40, 20])
@pytest.mark.parametrize("total", [1_023_900_000, 0])
def test_a_step_fits_on_one_row_of_any_terminal(total: int, width: int) -> None:
    rows = rows_in_terminal(total, width)
    assert rows
    assert max(map(len, rows)) < width


@pytest.mark.slow
def test_a_long_name_is_shortened_in_the_middle() -> None:
    row = rows_in_terminal(1_023_900_000, 80)[0]
    assert row.startswith("reading tens...4.whl ")
    assert "1.0/1.0 GB" in row


@pytest.mark.slow
def test_a_step_of_unknown_length_is_a_spinner_with_its_name() -> None:
    rows = rows_in_terminal(0, 80)
    assert all(row.endswith(f" 0:00:0{row[8]} {_LONG}") for row in rows)
    assert len({row[0] for row in rows}) > 1
    assert "?" not in "".join(rows)


@pytest.mark.slow
def test_a_narrow_terminal_shows_the_percentage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIDTH", "40")
    shown, _ = run_in_terminal(2)
    assert " 50%" in shown
    assert "reading [x]" in shown
