"""What the packages need of Linux and its kin, in the form that `windows` has it too."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import IO, Any, Literal, TypeVar

    Result = TypeVar("Result")

__all__ = ["Posix"]


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

    def patiently(self, action: Callable[..., Result], *arguments: Any) -> Result:
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
