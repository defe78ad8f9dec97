"""A command in a process of its own that is forked from this one, which has loaded what commands import."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from tests.support.command_server import end, run_module

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from trials.faults.shim import Plan

__all__ = ["Command", "Ended", "Running", "run"]

_MOST_SECONDS = 120


@dataclass(frozen=True)
class Command:
    """What to run, and where."""

    words: tuple[str, ...]
    cwd: Path
    environ: Mapping[str, str]
    module: str = "rocwheel"
    """What ``python -m`` would run."""
    site: Path | None = None
    """A folder that Python finds modules in before all others."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    """Its exit status, or the negative number of the signal that ended it."""
    messages: str
    """What it wrote to standard error."""
    text: str
    """What it wrote to standard output."""
    seconds: float


class Running:
    """A command that runs, in a group of processes of its own."""

    def __init__(self, command: Command, plan: Plan | None = None) -> None:
        self._outputs = os.memfd_create("text"), os.memfd_create("messages")
        self._timer: threading.Timer | None = None
        self._begun = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            _become(command, plan, *self._outputs)
        # Both do it, as a kill may come before the new process has run at all.
        os.setpgid(self.pid, self.pid)

    def kill_after(self, seconds: float) -> None:
        """Have it killed after so many seconds from now, with all that it has started."""
        self._timer = threading.Timer(seconds, self._kill)
        self._timer.start()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):  # it has just ended
            os.killpg(self.pid, signal.SIGKILL)

    def wait(self, kill_after: float = _MOST_SECONDS) -> Ended:
        """Wait until it ends; after so many seconds kill it and all that it has started."""
        process = os.pidfd_open(self.pid)
        if not select.select([process], [], [], kill_after)[0]:
            self._kill()
        if self._timer:  # before another process gets the number
            self._timer.cancel()
            self._timer.join()
        _, status = os.waitpid(self.pid, 0)
        seconds = time.monotonic() - self._begun
        os.close(process)
        text, messages = map(_read, self._outputs)
        return Ended(os.waitstatus_to_exitcode(status), messages, text, seconds)


def _read(output: int) -> str:
    with os.fdopen(output, "rb") as file:
        file.seek(0)
        return file.read().decode(errors="replace")


def run(command: Command, plan: Plan | None = None) -> Ended:
    """Run a command to its end."""
    return Running(command, plan).wait()


def _become(command: Command, plan: Plan | None, text: int, messages: int) -> NoReturn:
    os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number, file in enumerate((nothing, text, messages)):
        os.dup2(file, number)
        os.close(file)
    os.chdir(command.cwd)
    os.environ.clear()
    os.environ.update(command.environ)
    sys.argv[:] = [command.module, *command.words]
    sys.dont_write_bytecode = True
    if command.site:
        sys.path.insert(0, str(command.site))
    if plan:
        plan.arm()
    end(run_module(command.module))
