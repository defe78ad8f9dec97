"""The development tree in the making: adds members of an archive after checking that they stay inside."""

from __future__ import annotations

import errno
import os
import posixpath
import shutil

from .. import _build_info
from .modes import make_folder, modes_like
from .place import DevelError, missing_packages_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import tarfile
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
        self.packages: list[str] = []
        """Folders of the packages that it links to."""

    def add(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """Make what a member describes. Raises `DevelError` when it would be outside the tree, or lead outside."""
        path = self._destination(member.name)
        if member.isdir():
            self._make_folder(path, member)
            return
        self._make_folder(path.parent, member)
        if os.path.lexists(path):
            raise _unsafe(member.name, "is there twice")
        if member.issym():
            self._add_link(path, member)
        elif member.isreg():
            self._add_file(path, tar, member)
        else:
            raise _unsafe(member.name, "is neither a file, a folder nor a symlink")

    def require_targets(self) -> None:
        """Raise `DevelError` when links of the tree lead nowhere."""
        absent = [name for name in self.packages if not (self._place.site / name / "__init__.py").exists()]
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
        return self._place.partial.joinpath(*parts[1:])

    def _make_folder(self, path: Path, member: tarfile.TarInfo) -> None:
        """Make a folder and those above it; a link in place of one must not lead the files elsewhere."""
        if path in self._folders:
            return
        self._make_folder(path.parent, member)
        if os.path.lexists(path):
            raise _unsafe(member.name, "lies below something that is not a folder")
        make_folder(path, self._modes)
        self._folders.add(path)

    def _add_file(self, path: Path, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        free = shutil.disk_usage(path.parent).free
        if member.size > free:  # rather than to fill the disk first
            raise OSError(errno.ENOSPC, f"{member.size} bytes to write, {free} free", str(path))
        source = tar.extractfile(member)
        with path.open("xb") as file:
            os.fchmod(file.fileno(), self._modes.program if member.mode & 0o111 else self._modes.file)
            if source:
                shutil.copyfileobj(source, file, 1 << 20)

    def _add_link(self, path: Path, member: tarfile.TarInfo) -> None:
        """Make a symlink; for a program of another package a hard link, as it finds its prefix by its own path."""
        own = self._place.partial
        folder = posixpath.join(self._place.root.name, path.parent.relative_to(own).as_posix())
        target = posixpath.normpath(posixpath.join(folder, member.linkname))
        if member.linkname.startswith("/") or target.split("/")[0] in ("..", "."):
            raise _unsafe(member.name, f"links to {member.linkname!r}, which is outside site-packages")
        package = target.split("/")[0]
        if package == self._place.root.name:
            path.symlink_to(posixpath.relpath(target, folder))
            return
        if package not in self.packages:
            self.packages.append(package)
        file = self._place.site / target
        if not file.exists():
            self._missing.append(target)
        elif _is_program(file):
            _link_hard(file, path)
        else:
            path.symlink_to(posixpath.relpath(target, folder))


def _is_program(path: Path) -> bool:
    """Return whether a file is a program or a script: executable, not named as a library, ELF or ``#!``."""
    if not path.is_file() or not os.access(path, os.X_OK) or ".so" in path.suffixes:
        return False
    with path.open("rb") as file:
        start = file.read(4)
    return start == b"\x7fELF" or start[:2] == b"#!"


def _link_hard(source: Path, path: Path) -> None:
    try:
        os.link(source.resolve(), path)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(source, path)


def _unsafe(name: str, what: str) -> DevelError:
    return DevelError(f"The archive of the ROCm development files has an unsafe member: {name!r} {what}.")
