"""The development tree in the making: adds members of an archive after checking that they stay inside."""

from __future__ import annotations

import errno
import os
import posixpath
import shutil
import tarfile

from .. import _build_info
from .._platform import this_platform
from .._walk import is_there
from .hard_links import link_hard, make_links
from .modes import make_folder, modes_like
from .place import DevelError, missing_packages_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from .place import DevelPlace

__all__ = ["DevelTree"]


class DevelTree:
    """A new tree below ``place.partial``."""

    def __init__(self, place: DevelPlace) -> None:
        self._place = place
        self._modes = modes_like(place.package)
        self._folders = {place.partial}
        self._missing: list[str] = []
        self._platform = this_platform()
        self._spellings: dict[str, str] = {}
        self._waiting: dict[Path, str] = {}
        self.packages: list[str] = []
        """Folders of the packages that it links to."""

    def add(self, tar: tarfile.TarFile | None, member: tarfile.TarInfo) -> None:
        """Make what a member describes. Raises `DevelError` when it would be outside the tree, or lead outside."""
        path = self._destination(member.name)
        if member.isdir():
            self._make_folder(path, member)
            return
        self._make_folder(path.parent, member)
        if path in self._waiting or os.path.lexists(path):
            raise _unsafe(member.name, "is there twice")
        if member.issym():
            self._add_link(path, member)
        elif member.isreg():
            self._add_file(path, tar, member)
        else:
            raise _unsafe(member.name, "is neither a file, a folder nor a symlink")

    def add_link(self, name: str, target: str) -> None:
        """Make a file of the tree, at the path ``name`` in it, of one at the path ``target`` in site-packages."""
        member = tarfile.TarInfo(posixpath.join(self._place.root.name, name))
        member.type = tarfile.SYMTYPE
        folder = posixpath.dirname(member.name)
        member.linkname = posixpath.relpath(target, folder)
        self.add(None, member)

    def finish(self) -> None:
        """Make what had to wait for other files. Raises `DevelError` when links of the tree lead nowhere."""
        self._missing += make_links(list(self._waiting.items()), self._own_target, self._modes)
        self._require_targets()

    def _own_target(self, target: str) -> Path:
        """Return where a path in site-packages is now: the tree does not have its name yet."""
        package, _, rest = target.partition("/")
        return self._place.partial / rest if package == self._place.root.name else self._place.site / target

    def _require_targets(self) -> None:
        absent = [name for name in self.packages if not is_there(self._place.site / name / "__init__.py")]
        if absent:
            raise DevelError(missing_packages_text(absent))
        if self._missing:
            first, count = self._missing[0], len(self._missing)
            what = f"{first}, which" if count == 1 else f"{count} files, such as {first}, which"
            msg = (
                f"The ROCm development files link to {what} installed packages lack. "
                f"All packages must be of version {_build_info.VERSION}; reinstall them together."
            )
            raise DevelError(msg)

    def _destination(self, name: str) -> Path:
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts or parts[:1] != [self._place.root.name]:
            raise _unsafe(name, f"is not below {self._place.root.name}/")
        if not _is_utf8(name):
            raise _unsafe(name, "is not UTF-8, as RECORD has to list it")
        if self._platform.is_windows:
            self._require_name("/".join(parts))
        return self._place.partial.joinpath(*parts[1:])

    def _require_name(self, path: str) -> None:
        """Raise `DevelError` for a name that Windows hasn't, or that differs from another in case alone."""
        fault = self._platform.name_fault(path)
        if fault:
            raise _unsafe(path, f"can't be made on Windows: {fault}")
        spelling = self._spellings.setdefault(path.lower(), path)
        if spelling != path:
            raise _unsafe(path, f"is the same as {spelling!r} on Windows, which differs in case alone")

    def _make_folder(self, path: Path, member: tarfile.TarInfo) -> None:
        """Make a folder and those above it; a link in place of one must not lead the files elsewhere."""
        if path in self._folders:
            return
        self._make_folder(path.parent, member)
        if os.path.lexists(path):
            raise _unsafe(member.name, "lies below something that is not a folder")
        make_folder(path, self._modes)
        self._folders.add(path)

    def _add_file(self, path: Path, tar: tarfile.TarFile | None, member: tarfile.TarInfo) -> None:
        free = shutil.disk_usage(path.parent).free
        if member.size > free:  # rather than to fill the disk first
            raise OSError(errno.ENOSPC, f"{member.size} bytes to write, {free} free", str(path))
        source = tar.extractfile(member) if tar else None
        with path.open("xb") as file:
            path.chmod(self._modes.program if member.mode & 0o111 else self._modes.file)
            if source:
                shutil.copyfileobj(source, file, 1 << 20)

    def _add_link(self, path: Path, member: tarfile.TarInfo) -> None:
        """Make a symlink; for a program of another package a hard link, as it finds its prefix by its own path."""
        folder = posixpath.join(self._place.root.name, path.parent.relative_to(self._place.partial).as_posix())
        target = _link_target(folder, member)
        package = target.split("/")[0]
        if package not in (self._place.root.name, *self.packages):
            self.packages.append(package)
        if self._platform.is_windows:
            self._waiting[path] = target
            return
        if package == self._place.root.name:
            path.symlink_to(posixpath.relpath(target, folder))
            return
        file = self._place.site / target
        if not is_there(file):
            self._missing.append(target)
        elif _is_program(file):
            link_hard(file, path)
        else:
            path.symlink_to(posixpath.relpath(target, folder))


def _link_target(folder: str, member: tarfile.TarInfo) -> str:
    """Return the path below site-packages that a link in ``folder``, which is below it, leads to."""
    target = posixpath.normpath(posixpath.join(folder, member.linkname))
    if member.linkname.startswith("/") or target.split("/")[0] in ("..", "."):
        raise _unsafe(member.name, f"links to {member.linkname!r}, which is outside site-packages")
    return target


def _is_utf8(name: str) -> bool:
    """Return whether a name has no bytes that `tarfile` and the system could only take as they are."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_program(path: Path) -> bool:
    """Return whether a file is a program or a script: executable, not named as a library, ELF or ``#!``."""
    if not path.is_file() or not os.access(path, os.X_OK) or ".so" in path.suffixes:
        return False
    with path.open("rb") as file:
        start = file.read(4)
    return start == b"\x7fELF" or start[:2] == b"#!"


def _unsafe(name: str, what: str) -> DevelError:
    return DevelError(f"The archive of the ROCm development files has an unsafe member: {name!r} {what}.")
