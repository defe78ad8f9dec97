"""What is asked of Windows itself, and nothing else: a test replaces it, so that all other code runs anywhere.

Nothing here decides anything. The calls: https://learn.microsoft.com/windows/win32/api/libloaderapi/.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["WindowsCalls"]

_LONGEST = 32768
"""Characters that a path of Windows has at most."""


class WindowsCalls:
    """The calls of the operating system and of its C library."""

    def add_dll_directory(self, folder: str) -> object:
        """Have DLLs looked for in a folder, too, and return the handle that takes it back (``AddDllDirectory``)."""
        system: Any = os
        handle: object = system.add_dll_directory(folder)
        return handle

    def load(self, path: str) -> ctypes.CDLL:
        """Load a DLL by its absolute path, with what it needs. Raises `OSError`.

        ctypes asks for ``LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR``: the DLL's folder, that
        of the program, those added, System32. PATH is not looked at.
        """
        return ctypes.CDLL(path)

    def loaded_path(self, name: str) -> str:
        """Return the path of the DLL of a file name that the process has, empty when it has none."""
        kernel: Any = self._kernel()
        kernel.GetModuleHandleW.restype = ctypes.c_void_p
        kernel.GetModuleHandleW.argtypes = [ctypes.c_wchar_p]
        kernel.GetModuleFileNameW.argtypes = [ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_uint32]
        handle = kernel.GetModuleHandleW(name)
        if not handle:
            return ""
        text = ctypes.create_unicode_buffer(_LONGEST)
        return text.value if kernel.GetModuleFileNameW(handle, text, _LONGEST) else ""

    def system_folder(self) -> str:
        r"""Return the folder of the system's DLLs, such as ``C:\Windows\System32``."""
        return os.path.join(os.environ.get("SystemRoot") or r"C:\Windows", "System32")  # noqa: PTH118, SIM112

    def program_folder(self) -> str:
        """Return the folder of the program that this process runs, where DLLs are looked for, too."""
        # A virtual environment's python.exe starts the one of the Python that it was made from.
        return os.path.dirname(getattr(sys, "_base_executable", "") or sys.executable)  # noqa: PTH120

    def try_lock(self, descriptor: int, position: int) -> bool:
        """Lock one byte of an open file, which may be behind its end; return whether nobody else has it."""
        runtime: Any = import_module("msvcrt")
        os.lseek(descriptor, position, os.SEEK_SET)
        try:
            runtime.locking(descriptor, runtime.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def unlock(self, descriptor: int, position: int) -> None:
        """Give the byte back."""
        runtime: Any = import_module("msvcrt")
        os.lseek(descriptor, position, os.SEEK_SET)
        runtime.locking(descriptor, runtime.LK_UNLCK, 1)

    def pause(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def silence_faults(self) -> None:
        """Have no window asked of people when a DLL is missing or the process breaks (``SetErrorMode``)."""
        self._kernel().SetErrorMode(0x8003)

    def _kernel(self) -> Any:
        loader: Any = ctypes
        return loader.windll.kernel32
