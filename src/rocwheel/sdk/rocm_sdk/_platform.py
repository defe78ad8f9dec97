"""What differs between the systems that the packages run on: everything else asks `this_platform`."""

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
    """Return the side of this machine: `Posix` or `Windows`."""
    if not _IN_USE:
        _IN_USE.append(Windows(WindowsCalls()) if sys.platform == "win32" else Posix())
    return _IN_USE[0]


def use_platform(platform: Platform) -> None:
    """Have another side asked from now on, such as Windows whose calls a test has replaced."""
    _IN_USE[:] = [platform]


class Posix:
    """A system with symbolic links, and whose programs replace one another."""

    is_windows: Literal[False] = False
    program_suffix = ""
    """What the names of programs end with."""
    libraries = "*.so*"
    """Pattern of the names of shared libraries."""

    @contextmanager
    def locked(self, file: IO[bytes]) -> Iterator[None]:
        """Hold the lock of a file that is open for writing; wait for whoever has it."""
        fcntl.flock(file, fcntl.LOCK_EX)
        yield  # closing the file gives it back

    def retry(self, action: Callable[..., Result], *arguments: Any) -> Result:
        """Do something with files once: nobody else keeps them from it for a moment."""
        return action(*arguments)

    def move_folder(self, new: Path, place: Path) -> None:
        """Give a folder another name in one step, where there may be an empty folder."""
        new.replace(place)

    def empty_folder(self, folder: Path, first: str) -> None:
        """Remove what a folder holds, one file before the others, without following a link.

        It goes by descriptors: where others may write to the folder above, they may put a link in its place.
        """
        descriptor = _open_folder(folder)
        try:
            with suppress(FileNotFoundError):
                os.unlink(first, dir_fd=descriptor)
            _empty(descriptor)
        finally:
            os.close(descriptor)

    def set_folder_mode(self, folder: Path, mode: int) -> None:
        """Give a folder its permissions. Raises `OSError` when another user has put a link in its place."""
        descriptor = _open_folder(folder)
        try:
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)

    def set_file_mode(self, file: IO[Any], mode: int) -> None:
        """Give an open file its permissions."""
        os.fchmod(file.fileno(), mode)

    def may_trust(self, folder: Path, package: Path) -> bool:
        """Return whether a folder was made by root, this user, or one who may change ``package`` itself.

        That is its owner; where its group may write to it, a user of that group; where all may, anybody: they can put
        an archive of their own there, of which trees are made. Whoever may make files beside the package alone can make
        such a folder or a link in its place, too. Raises `OSError` when there is none.

        Where the package has an access ACL, its group isn't trusted: the group's bits are then the ACL's mask, the most
        that its entries grant, and not what the group may do (acl(5), https://man7.org/linux/man-pages/man5/acl.5.html).
        """
        installed = package.stat()
        strangers = {folder.lstat().st_uid, folder.stat().st_uid} - {0, os.geteuid(), installed.st_uid}
        if installed.st_mode & stat.S_IWOTH:
            return True
        is_of_group = bool(installed.st_mode & stat.S_IWGRP) and not _may_have_acl(package)
        return all(is_of_group and _is_member(user, installed.st_gid) for user in strangers)

    def extended(self, path: Path) -> Path:
        """Return a path by which a file is reached however long it is: the path itself."""
        return path

    def plain(self, text: str) -> str:
        """Return a text with paths as people write them: the text itself."""
        return text

    def name_fault(self, path: str) -> str:  # noqa: ARG002 (`Windows` asks it)
        """Return why no file can have a path of an archive: any name is fine."""
        return ""


def _is_member(user: int, group: int) -> bool:
    """Return whether a user is in a group; one whom the system doesn't know is in none."""
    import pwd  # noqa: PLC0415 (of no use but for packages that a group may change)

    try:
        known = pwd.getpwuid(user)
    except KeyError:
        return False
    return group in os.getgrouplist(known.pw_name, known.pw_gid)


def _may_have_acl(folder: Path) -> bool:
    """Return whether a folder has an access ACL, or may have one that can't be asked for.

    One that says no more than the mode is none: Linux notes the mode alone.
    """
    list_attributes = getattr(os, "listxattr", None)  # Python before 3.11.4 has it with glibc alone
    if list_attributes is None:
        return True
    try:
        return "system.posix_acl_access" in list_attributes(folder)
    except OSError as e:
        return e.errno != errno.ENOTSUP  # that is what file systems without attributes say


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
"""Position of the byte that stands for a file's lock: a locked byte can't be read, so none of the file's own."""

LOCK_PAUSE = 0.1
"""Seconds between two questions whether a lock is free: Python has no call that waits for one of Windows."""

PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between attempts at files that another program, such as a virus scanner, has open for a moment."""

PREFIX = "\\\\?\\"
"""What begins a path that may be longer than 259 characters and is taken literally ("Naming Files, Paths")."""

REFUSED = re.compile(r'[<>:"|?*\\\x00-\x1f]')
DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[1-9¹²³])[ ]*([.].*)?", re.IGNORECASE)
"""Names that are devices in every folder, whatever their suffix."""


class Windows:
    """A system whose files are known by names in any case, and whose users may not make symbolic links."""

    is_windows: Literal[True] = True
    program_suffix = ".exe"
    libraries = "*.dll"

    def __init__(self, calls: WindowsCalls) -> None:
        self.calls = calls

    @contextmanager
    def locked(self, file: IO[bytes]) -> Iterator[None]:
        """Hold the lock of a file that is open for writing; wait for whoever has it.

        Windows takes it from a process that ends, however that comes.
        """
        while not self.calls.try_lock(file.fileno(), LOCKED_BYTE):
            self.calls.pause(LOCK_PAUSE)
        try:
            yield
        finally:
            self.calls.unlock(file.fileno(), LOCKED_BYTE)

    def retry(self, action: Callable[..., Result], *arguments: Any) -> Result:
        """Do something with files, again after a while where they are in use. Raises what the last attempt raises."""
        for pause in PAUSES:
            try:
                return action(*arguments)
            except PermissionError:  # noqa: PERF203 (ERROR_ACCESS_DENIED and ERROR_SHARING_VIOLATION)
                self.calls.pause(pause)
        return action(*arguments)

    def move_folder(self, new: Path, place: Path) -> None:
        """Give a folder another name in one step, where there may be an empty folder, which goes before."""
        if place.exists():
            self.retry(place.rmdir)
        self.retry(new.rename, place)

    def empty_folder(self, folder: Path, first: str) -> None:
        """Remove what a folder holds, one file before the others."""
        import shutil  # noqa: PLC0415 (slow to import)

        (folder / first).unlink(missing_ok=True)
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                self.retry(shutil.rmtree, path)
            else:
                path.unlink(missing_ok=True)

    def set_folder_mode(self, folder: Path, mode: int) -> None:
        """Give a folder its permissions: Windows knows one, which is to write."""
        folder.chmod(mode)

    def set_file_mode(self, file: IO[Any], mode: int) -> None:
        """Give an open file its permissions."""
        Path(file.name).chmod(mode)

    def may_trust(self, folder: Path, package: Path) -> bool:  # noqa: ARG002 (`Posix` asks it)
        """Return whether a folder beside a package is as good as that: who may make one there, Windows does not say."""
        return True

    def extended(self, path: Path) -> Path:
        """Return a path by which a file is reached however long it is."""
        text = str(path)
        if text.startswith(PREFIX):
            return path
        if text.startswith("\\\\"):
            return Path(f"{PREFIX}UNC\\{text[2:]}")
        return Path(PREFIX + text) if text[1:3] == ":\\" else path

    def plain(self, text: str) -> str:
        """Return a text with paths as people write them."""
        return text.replace(f"{PREFIX}UNC\\", "\\\\").replace(PREFIX, "")

    def name_fault(self, path: str) -> str:
        """Return why no file can have a path of an archive, whose folders are parted by ``/``; empty when one can.

        The rules: https://learn.microsoft.com/windows/win32/fileio/naming-a-file. Windows itself would take a name
        with a colon for a stream of another file, and leave out dots and blanks at an end.
        """
        for name in path.split("/"):
            refused = REFUSED.search(name)
            if refused:
                return f"{name!r} has {refused[0]!r}, which no name of Windows has"
            if name not in (".", "..") and name.endswith((".", " ")):
                return f"{name!r} ends with {name[-1]!r}, which Windows leaves out"
            if DEVICES.fullmatch(name):
                return f"{name!r} is a device of Windows"
        return ""


_LONGEST = 32768
"""Characters that a path of Windows has at most."""


class WindowsCalls:
    """What is asked of Windows itself, and nothing else: a test replaces it, so that all other code runs anywhere.

    Nothing here decides anything. The calls: https://learn.microsoft.com/windows/win32/api/libloaderapi/.
    """

    def __init__(self) -> None:
        self._ctypes: Any = import_module("ctypes")  # which Linux has no need of

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
        library: ctypes.CDLL = self._ctypes.CDLL(path)
        return library

    def loaded_path(self, name: str) -> str:
        """Return the path of the DLL of a file name that the process has, empty when it has none."""
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
        self._ctypes.windll.kernel32.SetErrorMode(0x8003)
