"""Has a program end with the process that started it: Windows ends single processes, and a shell ends the script's.

Job objects: https://learn.microsoft.com/windows/win32/procthread/job-objects.
"""

from __future__ import annotations

import ctypes
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["end_together", "open_kernel"]

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
    job = kernel.CreateJobObjectW(None, None)
    if not job:
        return False
    limits = ctypes.create_string_buffer(LIMITS_SIZE)
    struct.pack_into("<I", limits, FLAGS_AT, FLAGS)
    is_limited = kernel.SetInformationJobObject(job, EXTENDED_LIMITS, limits, LIMITS_SIZE)
    return bool(is_limited and kernel.AssignProcessToJobObject(job, process))
