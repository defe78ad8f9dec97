"""Expands the archive of development files into the tree ``_rocm_sdk_devel``.

A rename makes the complete tree appear in one step. Until then, the tree's folder is empty. The RECORD file of
rocm-sdk-devel is always correct, so an uninstall also removes files that a killed process left behind. The next process
starts over.
"""

from __future__ import annotations

import errno
import json
import os
import posixpath
import shutil
import tarfile
from contextlib import suppress

from . import _build_info
from ._devel_archive import archive_members, open_archive
from ._devel_links import link_hard, linked_files, make_links, read_links
from ._devel_place import STATE, DevelError, make_folder, missing_packages_text, write_text
from ._files import is_there
from ._installing import reinstallation_hint
from ._platform import this_platform
from ._record import list_folders, list_tree, listed_hash, unlist

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from ._devel_place import DevelPlace


def ensure_expanded(place: DevelPlace) -> None:
    """Expand the archive, unless another process has already expanded it. Raises `DevelError` on failure."""
    try:
        with place.locked():
            archive = place.archive
            if archive is not None:
                made_from = _describe(place, archive)
                if not _is_made_from(place, made_from):
                    _expand(place, archive, made_from)
                list_tree(place, archive, linked_files(place))
                if _file_facts(archive) != made_from["archive_file"]:
                    msg = (
                        f"{archive}: was replaced by another program, such as an installer. Run `rocm-sdk init` again."
                    )
                    raise DevelError(msg)
                place.scratch.touch()  # if this process can't finish this work, the next process does
                archive.unlink()
            unlist(place, place.package)
            place.scratch.unlink(missing_ok=True)
    except OSError as e:
        if _is_whole(place):
            return  # only the steps after the rename failed
        raise DevelError(_failure_text(place, e)) from e


def _describe(place: DevelPlace, archive: Path) -> dict[str, object]:
    """Return values that identify an archive: its size, its modification time, and its hash, if RECORD lists it."""
    return {"archive": listed_hash(place, archive), "archive_file": _file_facts(archive)}


def _file_facts(archive: Path) -> list[int]:
    facts = archive.stat()
    return [facts.st_size, facts.st_mtime_ns]


def _is_made_from(place: DevelPlace, archive: dict[str, object]) -> bool:
    """Return whether there is a complete tree that was expanded from this archive; see `_describe`."""
    field = "archive" if archive["archive"] else "archive_file"
    return place.read_state().get(field) == archive[field]


def _is_whole(place: DevelPlace) -> bool:
    """Return whether the tree is complete. If the disk fails, the result may be wrong."""
    try:
        archive = place.archive
        return archive is None or _is_made_from(place, _describe(place, archive))
    except OSError:
        return False


def _failure_text(place: DevelPlace, error: OSError) -> str:
    where = f": {error.filename}" if error.filename else ""
    others = ", while no other program has open files there," if this_platform().is_windows else ""
    return (
        f"The ROCm development files can't be expanded in {place.site} ({error.strerror}{where}). "
        f"Run `rocm-sdk init` once{others} as a user with write access and with enough free "
        "space, before you use the files read-only."
    )


def _expand(place: DevelPlace, archive: Path, made_from: dict[str, object]) -> None:
    """Create the tree from its archive. The caller must hold the lock.

    Raises `DevelError` if the archive is damaged or unsafe, or if it links to files that aren't installed.
    """
    try:
        _make_root(place)
        tree = DevelTree(place)
        make_folder(place.partial, place.modes)
        _fill(place, tree, archive)
        _complete(place, {**made_from, "packages": tree.packages})
    except BaseException:
        _withdraw(place)
        raise


def _make_root(place: DevelPlace) -> None:
    """Remove the file that marks the tree as complete, and then create or empty the tree's folder."""
    if place.root.is_symlink() or place.root.is_file():
        place.root.unlink()
    if not place.root.exists():
        make_folder(place.root, place.modes)
    list_folders(place)
    if place.partial.exists():
        this_platform().retry(shutil.rmtree, place.partial)
    this_platform().empty_folder(place.root, first=STATE)


def _fill(place: DevelPlace, tree: DevelTree, archive: Path) -> None:
    try:
        with open_archive(archive) as tar:
            for member in archive_members(tar):
                tree.add(tar, member)
        for path, target in read_links(place).items():
            tree.add_link(path, target)
        tree.finish()
    except (DevelError, OSError):
        raise
    except UnicodeEncodeError as e:
        found = f"{archive}: this Python can't represent its file names ({e})"
        msg = f"{found}. Set PYTHONUTF8=1, and run `rocm-sdk init` again."
        raise DevelError(msg) from e
    except Exception as e:  # each decompressor raises its own errors
        msg = f"{archive}: is damaged ({e}). Reinstall: {reinstallation_hint('devel')}"
        raise DevelError(msg) from e


def _complete(place: DevelPlace, made_from: dict[str, object]) -> None:
    """Write the last files of the tree, and then rename the tree."""
    state = {"version": _build_info.VERSION, **made_from, "devices": {}}
    modes = place.modes
    write_text(place.partial / "__init__.py", "", modes)
    write_text(place.partial / STATE, json.dumps(state), modes)
    this_platform().move_folder(place.partial, place.root)


def _withdraw(place: DevelPlace) -> None:
    """Remove as many files of a failed expansion as possible.

    The lines for an older tree that can't be removed stay in RECORD. So do the lines for a tree that an interrupt
    leaves behind right after the rename.
    """
    shutil.rmtree(place.partial, ignore_errors=True)
    with suppress(OSError):
        if place.root.exists() and any(place.root.iterdir()):
            return
        unlist(place, place.package, place.root)
        place.root.rmdir()


class DevelTree:
    """A new tree below ``place.partial``."""

    def __init__(self, place: DevelPlace) -> None:
        self._place = place
        self._modes = place.modes
        self._folders = {place.partial}
        self._missing: list[str] = []
        self._platform = this_platform()
        self._spellings: dict[str, str] = {}
        self._waiting: dict[Path, str] = {}
        self.packages: list[str] = []
        """The folders of the packages that the tree links to."""

    def add(self, tar: tarfile.TarFile | None, member: tarfile.TarInfo) -> None:
        """Create the file, folder, or link of a member.

        Raises `DevelError` if it would be outside the tree or point outside it.
        """
        path = self._destination(member.name)
        if member.isdir():
            self._make_folder(path, member)
            return
        self._make_folder(path.parent, member)
        if path in self._waiting or os.path.lexists(path):
            raise _unsafe(member.name, "occurs twice")
        if member.issym():
            self._add_link(path, member)
        elif member.isreg():
            self._add_file(path, tar, member)
        else:
            raise _unsafe(member.name, "is not a file, a folder, or a symlink")

    def add_link(self, name: str, target: str) -> None:
        """Create the file ``name`` in the tree as a link to the file ``target`` in site-packages."""
        member = tarfile.TarInfo(posixpath.join(self._place.root.name, name))
        member.type = tarfile.SYMTYPE
        folder = posixpath.dirname(member.name)
        member.linkname = posixpath.relpath(target, folder)
        self.add(None, member)

    def finish(self) -> None:
        """Create the links that depend on other files. Raises `DevelError` if links in the tree are broken."""
        self._missing += make_links(list(self._waiting.items()), self._own_target, self._modes)
        absent = [name for name in self.packages if not is_there(self._place.site / name / "__init__.py")]
        if absent:
            raise DevelError(missing_packages_text(absent))
        if self._missing:
            first, count = self._missing[0], len(self._missing)
            what = f"{first}, which" if count == 1 else f"{count} files, such as {first}, which"
            msg = (
                f"The ROCm development files link to {what} the installed packages lack. "
                f"All packages must have version {_build_info.VERSION}; reinstall them together."
            )
            raise DevelError(msg)

    def _own_target(self, target: str) -> Path:
        """Return the current location of a path in site-packages. The tree isn't renamed yet, so its paths differ."""
        package, _, rest = target.partition("/")
        return self._place.partial / rest if package == self._place.root.name else self._place.site / target

    def _destination(self, name: str) -> Path:
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts or parts[:1] != [self._place.root.name]:
            raise _unsafe(name, f"is not below {self._place.root.name}/")
        if any("\ud800" <= letter <= "\udfff" for letter in name):  # bytes that `tarfile` can't decode
            raise _unsafe(name, "is not UTF-8, which RECORD requires")
        if self._platform.is_windows:
            path = "/".join(parts)
            fault = self._platform.name_fault(path)
            if fault:
                raise _unsafe(path, f"can't be created on Windows: {fault}")
            spelling = self._spellings.setdefault(path.lower(), path)
            if spelling != path:
                raise _unsafe(path, f"is the same as {spelling!r} on Windows: only the case differs")
        return self._place.partial.joinpath(*parts[1:])

    def _make_folder(self, path: Path, member: tarfile.TarInfo) -> None:
        """Create a folder and its parents.

        Fail if there is a link instead of a folder, because files would then be written to the link's target.
        """
        if path in self._folders:
            return
        self._make_folder(path.parent, member)
        if os.path.lexists(path):
            raise _unsafe(member.name, "is below a path that is not a folder")
        make_folder(path, self._modes)
        self._folders.add(path)

    def _add_file(self, path: Path, tar: tarfile.TarFile | None, member: tarfile.TarInfo) -> None:
        free = shutil.disk_usage(path.parent).free
        if member.size > free:  # fail early, before the disk is full
            raise OSError(errno.ENOSPC, f"{member.size} bytes to write, but only {free} bytes free", str(path))
        source = tar.extractfile(member) if tar else None
        with path.open("xb") as file:
            path.chmod(self._modes.program if member.mode & 0o111 else self._modes.file)
            if source:
                shutil.copyfileobj(source, file, 1 << 20)

    def _add_link(self, path: Path, member: tarfile.TarInfo) -> None:
        """Create a symlink, or a hard link if the target is a program.

        A program derives its prefix from its own path.
        """
        folder = posixpath.join(self._place.root.name, path.parent.relative_to(self._place.partial).as_posix())
        # The target of the link, relative to site-packages. ``folder`` is the link's folder in site-packages.
        target = posixpath.normpath(posixpath.join(folder, member.linkname))
        if member.linkname.startswith("/") or target.split("/")[0] in ("..", "."):
            raise _unsafe(member.name, f"links to {member.linkname!r}, which is outside site-packages")
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


def _is_program(path: Path) -> bool:
    """Return whether a file is an executable ELF file or script whose name isn't that of a library."""
    if not path.is_file() or not os.access(path, os.X_OK) or ".so" in path.suffixes:
        return False
    with path.open("rb") as file:
        start = file.read(4)
    return start == b"\x7fELF" or start[:2] == b"#!"


def _unsafe(name: str, what: str) -> DevelError:
    return DevelError(f"The archive of the ROCm development files has an unsafe member: {name!r} {what}.")
