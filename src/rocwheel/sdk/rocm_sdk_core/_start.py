"""Starts the program of a console script: in the place of this process, or on Windows, which can't, beside it."""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any, NoReturn, Union

    Starter = Union["PosixStarter", "WindowsStarter"]

__all__ = ["PosixStarter", "WindowsStarter", "this_starter"]


class PosixStarter:
    """Replaces the process, so that nothing of it is left in the way of the program."""

    def spellings(self, program: Path) -> list[Path]:
        """Return the paths that a program may have: its own."""
        return [program]

    def start(self, program: Path, arguments: Sequence[str]) -> NoReturn:
        """Become a program. Raises `OSError` when it can't be run."""
        # Python ignores these signals, and a program inherits that: writing to a closed pipe would not end it.
        for name in ("SIGPIPE", "SIGXFSZ"):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        os.execv(program, [str(program), *arguments])  # noqa: S606 (a file of the package, by its full path)


class WindowsStarter:
    """Waits for the program: there, a process that "becomes" another ends, and the shell no longer waits."""

    def spellings(self, program: Path) -> list[Path]:
        """Return the paths that a program may have: its own if it ends with ``.exe``, else that with ``.exe``."""
        name = program.name
        return [program] if name.lower().endswith(".exe") else [program.with_name(f"{name}.exe")]

    def start(self, program: Path, arguments: Sequence[str]) -> NoReturn:
        """Run a program and end with its exit code. Raises `OSError` when it can't be run.

        Arguments are quoted as Microsoft's C library reads them (`subprocess.list2cmdline`). Ctrl-C and Ctrl-Break
        reach the program, too, as all of a console: it decides what they do, and this process waits.
        """
        for name in ("SIGINT", "SIGBREAK"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_IGN)
        sys.exit(signed_code(self.run([str(program), *arguments])))

    def run(self, command: Sequence[str]) -> int:
        """Run a command in this console and return its exit code, 0 to 2**32 - 1."""
        import subprocess  # noqa: PLC0415 (takes 6 ms, which each hipcc on Linux would wait for)

        with subprocess.Popen(command) as process:
            self.bind(process)
            return process.wait()

    def bind(self, process: subprocess.Popen[bytes]) -> None:
        """Have a process end with this one; where Windows can't, it goes on."""
        from ._job import end_together, open_kernel  # noqa: PLC0415 (of one system)

        started: Any = process
        end_together(int(started._handle), open_kernel())  # noqa: SLF001 (the only way to it)


def signed_code(code: int) -> int:
    """Return an exit code as the number that Python passes on whole: 0xC0000005 is -1073741819."""
    return (code & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


def this_starter() -> Starter:
    """Return how this system starts programs."""
    return _STARTERS[sys.platform == "win32"]


_STARTERS: list[Starter] = [PosixStarter(), WindowsStarter()]
