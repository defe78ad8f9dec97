"""The locations of an installed rocm-sdk-devel's parts, and the permissions for new files.

Anyone who may use the packages may use the new files next to them, regardless of the umask.
"""

from __future__ import annotations

import errno
import json
import stat
from contextlib import contextmanager
from typing import NamedTuple

from . import _build_info
from ._files import NOWHERE, NotAFileError, is_there, read_regular
from ._installing import installation_hint, opening_hint
from ._packages import describe_package, find_module
from ._platform import this_platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DISK_FAULTS = (errno.EDQUOT, errno.EIO, errno.ENOSPC, errno.EROFS)
"""Errors that prevent any kind of link. After other errors, a symlink or a copy may replace a hard link."""

STATE = ".expanded.json"
"""The state file of the tree, which describes its archive. The tree is complete if this file exists."""

LINKS = "_links.json"
"""The manifest next to an archive without symlinks. It lists the tree's files that other packages provide."""

ARCHIVES = ("_devel.tar", "_devel.tar.xz", "_devel.tar.zst")


class DevelError(RuntimeError):
    """The development files are installed but unusable. The text describes the reason and the remedy."""

    def __init__(self, text: str) -> None:
        super().__init__(this_platform().plain(text))


class Modes(NamedTuple):
    """Permission bits for each kind of file."""

    folder: int
    """The permissions of folders, including the bit that makes new files inherit the group."""

    program: int
    file: int


class DevelPlace(NamedTuple):
    """The locations of an installed rocm-sdk-devel's parts, as paths without a length limit."""

    package: Path
    """The folder ``rocm_sdk_devel``, which contains the archive until the expansion."""

    root: Path
    """The folder ``_rocm_sdk_devel``, which is the tree."""

    @property
    def site(self) -> Path:
        """The folder in which all packages are installed side by side."""
        return self.package.parent

    @property
    def partial(self) -> Path:
        """The unfinished tree in the package's folder, which RECORD lists during the expansion."""
        return self.package / ".tree"

    @property
    def scratch(self) -> Path:
        """The file to which the final RECORD is written before it is renamed.

        If it exists, the final RECORD isn't complete.
        """
        return self.package / "_record.scratch"

    @property
    def archive(self) -> Path | None:
        """The path of the archive, or `None` after the expansion.

        This property and `is_unfinished` can raise `OSError`.
        """
        paths = (self.package / name for name in ARCHIVES)
        return next((path for path in paths if is_there(path)), None)

    def read_state(self) -> dict[str, object]:
        """Return the state of the tree. The state is empty if the tree is incomplete or belongs to an untrusted user.

        Raises `DevelError` if the current user is not allowed to read the state, or if the disk fails.
        """
        try:
            if not this_platform().may_trust(self.root, self.package):
                return {}
            state = json.loads(read_regular(self.root / STATE))
        except PermissionError as e:
            msg = f"{e.filename}: the current user is not allowed to read this file. {opening_hint(self.root)}"
            raise DevelError(msg) from e
        except OSError as e:
            if isinstance(e, NotAFileError) or e.errno in NOWHERE:
                return {}
            msg = f"{self.root / STATE}: can't be read ({e.strerror}). Check the disk, and try again."
            raise DevelError(msg) from e
        except (ValueError, RecursionError):
            return {}
        return state if isinstance(state, dict) else {}

    @property
    def links(self) -> Path:
        """The manifest that lists links if the archive has no symlinks; see `read_links`."""
        return self.package / LINKS

    @property
    def modes(self) -> Modes:
        """The permissions for new files next to the package, derived from the folder that an installer created."""
        mode = stat.S_IMODE(self.package.stat().st_mode) | stat.S_IRWXU
        return Modes(mode & 0o2777, mode & 0o777, mode & 0o666)

    @property
    def is_unfinished(self) -> bool:
        """Whether the archive must still be expanded, or a killed process didn't write the final RECORD."""
        return self.archive is not None or is_there(self.scratch)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the tree. The lock is an installed file, so an uninstall removes it."""
        with (self.package / "__init__.py").open("r+b") as file, this_platform().locked(file):
            yield


def find_place() -> DevelPlace:
    """Return the location of rocm-sdk-devel. Raises `ModuleNotFoundError` with the command that installs it."""
    package = describe_package("devel")
    module = find_module(package.module) if package else None
    if package is None or module is None:
        msg = f"The ROCm development files are not installed. Install with: {installation_hint('devel')}"
        raise ModuleNotFoundError(msg)
    module = this_platform().extended(module)
    return DevelPlace(module, module.with_name(package.platform_module))


def missing_packages_text(modules: list[str]) -> str:
    """Return the message for missing packages that the tree links to. ``modules`` are the folders of these packages."""
    starts = {logical: names["platform_module"].partition("{")[0] for logical, names in _build_info.PACKAGES.items()}
    logical = [
        name
        for name in ("core", "libraries", "profiler")
        if name in starts and any(m.startswith(starts[name]) for m in modules)
    ]
    return (
        f"The ROCm development files link to packages that are not installed: {', '.join(modules)}. "
        f"Install with: {installation_hint('devel', *logical)}"
    )


def make_folder(path: Path, modes: Modes) -> None:
    """Create a folder and its missing parents."""
    if not path.parent.is_dir():
        make_folder(path.parent, modes)
    path.mkdir()
    this_platform().set_folder_mode(path, modes.folder)


def write_text(path: Path, text: str, modes: Modes) -> None:
    """Rewrite a file with the file permissions in ``modes``, without following a link at its path."""
    path.unlink(missing_ok=True)
    with path.open("x", encoding="utf-8") as file:
        this_platform().set_file_mode(file, modes.file)
        file.write(text)
