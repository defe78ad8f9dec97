"""Implements the differences between the systems that the packages run on.

All other modules access them through `this_platform`.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import time
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

if sys.platform != "win32":
    import fcntl

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable, Iterator
    from typing import IO, Any, Literal, TypeVar, Union

    Result = TypeVar("Result")
    Platform = Union["Posix", "Windows"]

_IN_USE: list[Platform] = []


def this_platform() -> Platform:
    """Return the platform of this machine: `Posix` or `Windows`."""
    if not _IN_USE:
        _IN_USE.append(Windows(WindowsCalls()) if sys.platform == "win32" else Posix())
    return _IN_USE[0]


def use_platform(platform: Platform) -> None:
    """Use another platform from now on, for example a `Windows` object whose system calls a test replaces."""
    _IN_USE[:] = [platform]


class Posix:
    """A system with symbolic links, on which a program can replace its process."""

    is_windows: Literal[False] = False
    program_suffix = ""
    """The suffix of program file names."""
    libraries = "*.so*"
    """The pattern for file names of shared libraries."""

    @contextmanager
    def locked(self, file: IO[bytes]) -> Iterator[None]:
        """Hold the lock of a file that is open for writing. Wait until the current holder releases it."""
        fcntl.flock(file, fcntl.LOCK_EX)
        yield  # closing the file also releases the lock

    def retry(self, action: Callable[..., Result], *arguments: Any) -> Result:
        """Run a file operation once. Other programs don't block access to files on this system."""
        return action(*arguments)

    def move_folder(self, new: Path, place: Path) -> None:
        """Rename a folder atomically. The target may be an empty folder."""
        new.replace(place)

    def empty_folder(self, folder: Path, first: str) -> None:
        """Remove the contents of a folder without following links. Remove the file ``first`` before all others.

        The function uses file descriptors, because users who may write to the parent folder might replace the folder
        with a link.
        """
        descriptor = _open_folder(folder)
        try:
            with suppress(FileNotFoundError):
                os.unlink(first, dir_fd=descriptor)
            _empty(descriptor)
        finally:
            os.close(descriptor)

    def set_folder_mode(self, folder: Path, mode: int) -> None:
        """Set the permissions of a folder. Raises `OSError` if another user has replaced the folder with a link."""
        descriptor = _open_folder(folder)
        try:
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)

    def set_file_mode(self, file: IO[Any], mode: int) -> None:
        """Set the permissions of an open file."""
        os.fchmod(file.fileno(), mode)

    def may_trust(self, folder: Path, package: Path) -> bool:
        """Return whether a folder belongs to root, to this user, or to a user who may change ``package`` itself.

        Users who may change the package are the owner, members of a group with write access, or anyone if all users
        have write access. They can replace the archive that trees are expanded from. Users who may only create files
        next to the package can also create such a folder or a link, so they aren't trusted. Raises `OSError` if the
        folder doesn't exist.

        If the package has an access ACL, its group isn't trusted. The group bits are then the ACL's mask, and not the
        permissions of the group (acl(5), https://man7.org/linux/man-pages/man5/acl.5.html).
        """
        installed = package.stat()
        strangers = {folder.lstat().st_uid, folder.stat().st_uid} - {0, os.geteuid(), installed.st_uid}
        if installed.st_mode & stat.S_IWOTH:
            return True
        is_of_group = bool(installed.st_mode & stat.S_IWGRP) and not _may_have_acl(package)
        return all(is_of_group and _is_member(user, installed.st_gid) for user in strangers)

    def extended(self, path: Path) -> Path:
        """Return a form of a path that works at any length. On this system, that is the path itself."""
        return path

    def plain(self, text: str) -> str:
        """Return text with paths in their usual form. On this system, the text is returned unchanged."""
        return text

    def name_fault(self, path: str) -> str:  # noqa: ARG002 (`Windows` uses it)
        """Return the reason why a path in an archive is invalid, or an empty string.

        On this system, any name is valid.
        """
        return ""


def _is_member(user: int, group: int) -> bool:
    """Return whether a user is in a group. An unknown user is not in any group."""
    import pwd  # noqa: PLC0415 (needed only for packages that a group may change)

    try:
        known = pwd.getpwuid(user)
    except KeyError:
        return False
    return group in os.getgrouplist(known.pw_name, known.pw_gid)


def _may_have_acl(folder: Path) -> bool:
    """Return whether a folder has an access ACL, or may have one that can't be read.

    An ACL that only repeats the mode is ignored, because Linux stores it as the mode.
    """
    list_attributes = getattr(os, "listxattr", None)  # before version 3.11.4, Python has this function only with glibc
    if list_attributes is None:
        return True
    try:
        return "system.posix_acl_access" in list_attributes(folder)
    except OSError as e:
        return e.errno != errno.ENOTSUP  # file systems without attributes raise this error


def _open_folder(path: Path | str, inside: int | None = None) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=inside)


def _empty(folder: int) -> None:
    for name in os.listdir(folder):
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
            continue
        inner = _open_folder(name, folder)
        try:
            _empty(inner)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=folder)


LOCKED_BYTE = 1 << 30
"""The position of the lock byte. A locked byte can't be read, so the lock byte is past the end of the file."""

LOCK_PAUSE = 0.1
"""The pause between attempts to acquire a lock, in seconds. Python can't wait for a lock on Windows."""

PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""The pauses, in seconds, between attempts to access files that another program, such as a virus scanner, is using."""

PREFIX = "\\\\?\\"
"""The prefix of literal paths, which may have more than 259 characters ("Naming Files, Paths, and Namespaces")."""

REFUSED = re.compile(r'[<>:"|?*\\\x00-\x1f]')
DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[1-9¹²³])[ ]*([.].*)?", re.IGNORECASE)
"""Names that refer to devices in every folder, regardless of the suffix."""


class Windows:
    """A system with case-insensitive file names, on which users can't create symbolic links."""

    is_windows: Literal[True] = True
    program_suffix = ".exe"
    libraries = "*.dll"

    def __init__(self, calls: WindowsCalls) -> None:
        self.calls = calls

    @contextmanager
    def locked(self, file: IO[bytes]) -> Iterator[None]:
        """Hold the lock of a file that is open for writing. Wait until the current holder releases it.

        Windows releases the lock when the process ends for any reason.
        """
        while not self.calls.try_lock(file.fileno(), LOCKED_BYTE):
            self.calls.pause(LOCK_PAUSE)
        try:
            yield
        finally:
            self.calls.unlock(file.fileno(), LOCKED_BYTE)

    def retry(self, action: Callable[..., Result], *arguments: Any) -> Result:
        """Run a file operation, and retry while files are in use. Raises the error from the last attempt."""
        for pause in PAUSES:
            try:
                return action(*arguments)
            except PermissionError:  # noqa: PERF203 (ERROR_ACCESS_DENIED and ERROR_SHARING_VIOLATION)
                self.calls.pause(pause)
        return action(*arguments)

    def move_folder(self, new: Path, place: Path) -> None:
        """Rename a folder. If the target is an empty folder, remove the target first."""
        if place.exists():
            self.retry(place.rmdir)
        self.retry(new.rename, place)

    def empty_folder(self, folder: Path, first: str) -> None:
        """Remove the contents of a folder. Remove the file ``first`` before all others."""
        import shutil  # noqa: PLC0415 (slow to import)

        (folder / first).unlink(missing_ok=True)
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                self.retry(shutil.rmtree, path)
            else:
                path.unlink(missing_ok=True)

    def set_folder_mode(self, folder: Path, mode: int) -> None:
        """Set the permissions of a folder. Windows has only a write permission."""
        folder.chmod(mode)

    def set_file_mode(self, file: IO[Any], mode: int) -> None:
        """Set the permissions of an open file."""
        Path(file.name).chmod(mode)

    def may_trust(self, folder: Path, package: Path) -> bool:  # noqa: ARG002 (`Posix` uses it)
        """Return `True`, because Windows doesn't show whether a folder is less trusted than the package next to it."""
        return True

    def extended(self, path: Path) -> Path:
        """Return a form of a path that works at any length."""
        text = str(path)
        if text.startswith(PREFIX):
            return path
        if text.startswith("\\\\"):
            return Path(f"{PREFIX}UNC\\{text[2:]}")
        return Path(PREFIX + text) if text[1:3] == ":\\" else path

    def plain(self, text: str) -> str:
        """Return text with paths in their usual form."""
        return text.replace(f"{PREFIX}UNC\\", "\\\\").replace(PREFIX, "")

    def name_fault(self, path: str) -> str:
        """Return the reason why a path in an archive, separated by ``/``, is invalid, or an empty string.

        The rules: https://learn.microsoft.com/windows/win32/fileio/naming-a-file. Windows treats a name with a colon as
        a stream of another file, and removes trailing dots and blanks.
        """
        for name in path.split("/"):
            refused = REFUSED.search(name)
            if refused:
                return f"{name!r} has {refused[0]!r}, which Windows doesn't allow"
            if name not in (".", "..") and name.endswith((".", " ")):
                return f"{name!r} ends with {name[-1]!r}, which Windows removes"
            if DEVICES.fullmatch(name):
                return f"{name!r} is a Windows device name"
        return ""


_LONGEST = 32768
"""The maximum length of a path on Windows."""


class WindowsCalls:
    """Calls Windows functions. Tests replace this class, so that all other code can run on any system.

    This class contains no logic. The functions: https://learn.microsoft.com/windows/win32/api/libloaderapi/.
    """

    def __init__(self) -> None:
        self._ctypes: Any = import_module("ctypes")  # imported here because Linux doesn't need this module

    def add_dll_directory(self, folder: str) -> object:
        """Add a folder to the DLL search path (``AddDllDirectory``), and return a handle that can remove the folder."""
        system: Any = os
        handle: object = system.add_dll_directory(folder)
        return handle

    def load(self, path: str) -> ctypes.CDLL:
        """Load a DLL by its absolute path, with its dependencies. Raises `OSError`.

        ctypes uses ``LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR``. Windows then searches the
        DLL's folder, the program's folder, the added folders, and System32, but not PATH.
        """
        library: ctypes.CDLL = self._ctypes.CDLL(path)
        return library

    def loaded_path(self, name: str) -> str:
        """Return the path of the loaded DLL with this file name, or an empty string."""
        ctypes, kernel = self._ctypes, self._ctypes.windll.kernel32
        kernel.GetModuleHandleW.restype = ctypes.c_void_p
        kernel.GetModuleHandleW.argtypes = [ctypes.c_wchar_p]
        kernel.GetModuleFileNameW.argtypes = [ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_uint32]
        handle = kernel.GetModuleHandleW(name)
        if not handle:
            return ""
        text = ctypes.create_unicode_buffer(_LONGEST)
        return str(text.value) if kernel.GetModuleFileNameW(handle, text, _LONGEST) else ""

    def system_folder(self) -> str:
        r"""Return the folder of the system DLLs, such as ``C:\Windows\System32``."""
        return os.path.join(os.environ.get("SystemRoot") or r"C:\Windows", "System32")  # noqa: PTH118, SIM112

    def program_folder(self) -> str:
        """Return the folder of this process's program, which Windows also searches for DLLs."""
        # The python.exe of a virtual environment runs the base Python's python.exe.
        return os.path.dirname(getattr(sys, "_base_executable", "") or sys.executable)  # noqa: PTH120

    def try_lock(self, descriptor: int, position: int) -> bool:
        """Lock one byte of an open file, possibly past its end. Return whether the lock was acquired."""
        runtime: Any = import_module("msvcrt")
        os.lseek(descriptor, position, os.SEEK_SET)
        try:
            runtime.locking(descriptor, runtime.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def unlock(self, descriptor: int, position: int) -> None:
        """Release the lock."""
        runtime: Any = import_module("msvcrt")
        os.lseek(descriptor, position, os.SEEK_SET)
        runtime.locking(descriptor, runtime.LK_UNLCK, 1)

    def pause(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def silence_faults(self) -> None:
        """Disable dialog boxes for missing DLLs and crashes (``SetErrorMode``)."""
        self._ctypes.windll.kernel32.SetErrorMode(0x8003)
