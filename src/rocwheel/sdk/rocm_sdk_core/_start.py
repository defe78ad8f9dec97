"""Starts the program of a console script: in the place of this process, or on Windows, which can't, beside it.

Job objects: https://learn.microsoft.com/windows/win32/procthread/job-objects.
"""

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
        started: Any = process
        end_together(int(started._handle), open_kernel())  # noqa: SLF001 (the only way to it)


def signed_code(code: int) -> int:
    """Return an exit code as the number that Python passes on whole: 0xC0000005 is -1073741819."""
    return (code & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


def this_starter() -> Starter:
    """Return how this system starts programs."""
    return _STARTERS[sys.platform == "win32"]


_STARTERS: list[Starter] = [PosixStarter(), WindowsStarter()]


EXTENDED_LIMITS = 9
"""``JobObjectExtendedLimitInformation``."""
LIMITS_SIZE = 144
"""Bytes of ``JOBOBJECT_EXTENDED_LIMIT_INFORMATION`` of 64 bits."""
FLAGS_AT = 16
"""Where its ``BasicLimitInformation.LimitFlags`` begin."""
FLAGS = 0x3000
"""``JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE``, and ``_SILENT_BREAKAWAY_OK``: what the program itself starts may go on."""


def open_kernel() -> Any:
    """Return the functions of ``kernel32.dll`` that `end_together` calls."""
    import ctypes  # noqa: PLC0415 (of one system)

    loader: Any = ctypes
    kernel = loader.WinDLL("kernel32")
    handle, number = ctypes.c_void_p, ctypes.c_uint32
    kernel.CreateJobObjectW.restype = handle
    kernel.CreateJobObjectW.argtypes = [ctypes.c_void_p, ctypes.c_wchar_p]
    kernel.SetInformationJobObject.argtypes = [handle, number, ctypes.c_void_p, number]
    kernel.AssignProcessToJobObject.argtypes = [handle, handle]
    return kernel


def end_together(process: int, kernel: Any) -> bool:
    """Have a process, by its handle, end when this one does, however that comes; return whether Windows agreed.

    The job's handle is never closed: Windows closes it with this process, and that ends the other.
    """
    import ctypes  # noqa: PLC0415
    import struct  # noqa: PLC0415

    job = kernel.CreateJobObjectW(None, None)
    if not job:
        return False
    limits = ctypes.create_string_buffer(LIMITS_SIZE)
    struct.pack_into("<I", limits, FLAGS_AT, FLAGS)
    is_limited = kernel.SetInformationJobObject(job, EXTENDED_LIMITS, limits, LIMITS_SIZE)
    return bool(is_limited and kernel.AssignProcessToJobObject(job, process))
