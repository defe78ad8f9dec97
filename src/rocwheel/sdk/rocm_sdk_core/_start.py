"""Starts the program of a console script. The program replaces this process, except on Windows.

For job objects, see https://learn.microsoft.com/windows/win32/procthread/job-objects.
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
    """Replaces the process with the program."""

    def spellings(self, program: Path) -> list[Path]:
        """Return the possible paths of a program. On this system, there is only one path."""
        return [program]

    def start(self, program: Path, arguments: Sequence[str]) -> NoReturn:
        """Replace this process with a program. Raises `OSError` if the program can't be run."""
        # Python ignores these signals, and programs would inherit that: a write to a closed pipe wouldn't end them.
        for name in ("SIGPIPE", "SIGXFSZ"):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        os.execv(program, [str(program), *arguments])  # noqa: S606 (a file of the package, by its full path)


class WindowsStarter:
    """Waits for the program.

    If a process on Windows replaces itself, it appears to end, and the shell stops waiting.
    """

    def spellings(self, program: Path) -> list[Path]:
        """Return the possible paths of a program, which end with ``.exe``.

        The given path may lack the suffix.
        """
        name = program.name
        return [program] if name.lower().endswith(".exe") else [program.with_name(f"{name}.exe")]

    def start(self, program: Path, arguments: Sequence[str]) -> NoReturn:
        """Run a program and exit with its exit code. Raises `OSError` if the program can't be run.

        Arguments are quoted for Microsoft's C library (`subprocess.list2cmdline`). Ctrl-C and Ctrl-Break reach all
        processes of a console. The program handles them, and this process keeps waiting.
        """
        for name in ("SIGINT", "SIGBREAK"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_IGN)
        sys.exit(signed_code(self.run([str(program), *arguments])))

    def run(self, command: Sequence[str]) -> int:
        """Run a command in this console and return its exit code, which is between 0 and 2**32 - 1."""
        import subprocess  # noqa: PLC0415 (takes 6 ms, which would delay every hipcc on Linux)

        with subprocess.Popen(command) as process:
            self.bind(process)
            return process.wait()

    def bind(self, process: subprocess.Popen[bytes]) -> None:
        """Make a process end when this process ends, if Windows supports that."""
        started: Any = process
        end_together(int(started._handle), open_kernel())  # noqa: SLF001 (the only way to get it)


def signed_code(code: int) -> int:
    """Return an exit code as a number that Python doesn't truncate, such as -1073741819 for 0xC0000005."""
    return (code & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


def this_starter() -> Starter:
    """Return the starter for programs on this system."""
    return _STARTERS[sys.platform == "win32"]


_STARTERS: list[Starter] = [PosixStarter(), WindowsStarter()]


EXTENDED_LIMITS = 9
"""``JobObjectExtendedLimitInformation``."""
LIMITS_SIZE = 144
"""The size of the 64-bit ``JOBOBJECT_EXTENDED_LIMIT_INFORMATION``, in bytes."""
FLAGS_AT = 16
"""The offset of ``BasicLimitInformation.LimitFlags``."""
FLAGS = 0x3000
"""``JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE`` and ``_SILENT_BREAKAWAY_OK``, which keeps the program's children alive."""


def open_kernel() -> Any:
    """Return an object with the ``kernel32.dll`` functions that `end_together` calls."""
    import ctypes  # noqa: PLC0415 (needed only on one system)

    loader: Any = ctypes
    kernel = loader.WinDLL("kernel32")
    handle, number = ctypes.c_void_p, ctypes.c_uint32
    kernel.CreateJobObjectW.restype = handle
    kernel.CreateJobObjectW.argtypes = [ctypes.c_void_p, ctypes.c_wchar_p]
    kernel.SetInformationJobObject.argtypes = [handle, number, ctypes.c_void_p, number]
    kernel.AssignProcessToJobObject.argtypes = [handle, handle]
    return kernel


def end_together(process: int, kernel: Any) -> bool:
    """Make a process end when this process ends for any reason. ``process`` is its handle.

    Return whether that succeeded.

    This process never closes the job's handle. Windows closes the handle when this process ends, and that ends the
    other process.
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
