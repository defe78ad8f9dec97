"""Where the parts of an installed rocm-sdk-devel are, and with which permissions more is made there.

Whoever may use the packages may use what is made next to them, whatever the umask.
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
"""Why no link of any kind can be made; for other reasons, a symlink or a copy may do in place of a hard link."""

STATE = ".expanded.json"
"""In the tree: the file that says what it was made from. Its presence means that the tree is whole."""

LINKS = "_links.json"
"""Beside an archive without symlinks: what the tree has of other packages."""

ARCHIVES = ("_devel.tar", "_devel.tar.xz", "_devel.tar.zst")


class DevelError(RuntimeError):
    """The development files are installed but can't be used; the text says why and what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(this_platform().plain(text))


class Modes(NamedTuple):
    """Permission bits by kind of file."""

    folder: int
    """With the bit that passes the group on to what is made inside."""

    program: int
    file: int


class DevelPlace(NamedTuple):
    """Where the parts of an installed rocm-sdk-devel are, by paths of any length."""

    package: Path
    """``rocm_sdk_devel``, with the archive until it is expanded."""

    root: Path
    """``_rocm_sdk_devel``, the tree."""

    @property
    def site(self) -> Path:
        """The folder in which all packages are installed, side by side."""
        return self.package.parent

    @property
    def partial(self) -> Path:
        """The tree while it is being made, below the package's folder: RECORD lists that meanwhile."""
        return self.package / ".tree"

    @property
    def scratch(self) -> Path:
        """Says that the last RECORD is yet to be written; that takes its place, then its name."""
        return self.package / "_record.scratch"

    @property
    def archive(self) -> Path | None:
        """The archive, None once it is expanded. Raises `OSError` where that can't be told, as `is_unfinished` does."""
        paths = (self.package / name for name in ARCHIVES)
        return next((path for path in paths if is_there(path)), None)

    def read_state(self) -> dict[str, object]:
        """Return what the tree was made from, empty when there is no whole tree, or one that a stranger put there.

        Raises `DevelError` when this user may not read it, or the disk fails.
        """
        try:
            if not this_platform().may_trust(self.root, self.package):
                return {}
            state = json.loads(read_regular(self.root / STATE))
        except PermissionError as e:
            msg = f"{e.filename}: this user may not read it. {opening_hint(self.root)}"
            raise DevelError(msg) from e
        except OSError as e:
            if isinstance(e, NotAFileError) or e.errno in NOWHERE:
                return {}
            msg = f"{self.root / STATE}: can't be read ({e.strerror}). Check its disk, and try again."
            raise DevelError(msg) from e
        except (ValueError, RecursionError):
            return {}
        return state if isinstance(state, dict) else {}

    @property
    def links(self) -> Path:
        """The manifest of what the tree has of other packages, of archives without symlinks; see `read_links`."""
        return self.package / LINKS

    @property
    def modes(self) -> Modes:
        """The permissions for what is made beside the package: those of its folder, which an installer made."""
        mode = stat.S_IMODE(self.package.stat().st_mode) | stat.S_IRWXU
        return Modes(mode & 0o2777, mode & 0o777, mode & 0o666)

    @property
    def is_unfinished(self) -> bool:
        """Whether the archive is to be expanded, or a killed process was about to write the last RECORD."""
        return self.archive is not None or is_there(self.scratch)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the tree: a file that is installed with it, so that no lock file is left behind."""
        with (self.package / "__init__.py").open("r+b") as file, this_platform().locked(file):
            yield


def find_place() -> DevelPlace:
    """Return where rocm-sdk-devel is. Raises `ModuleNotFoundError` with the command that installs it."""
    package = describe_package("devel")
    module = find_module(package.module) if package else None
    if package is None or module is None:
        msg = f"The ROCm development files are not installed. Install with: {installation_hint('devel')}"
        raise ModuleNotFoundError(msg)
    module = this_platform().extended(module)
    return DevelPlace(module, module.with_name(package.platform_module))


def missing_packages_text(modules: list[str]) -> str:
    """Return the message for packages that the tree links to but that aren't installed, given their folders."""
    starts = {logical: names["platform_module"].partition("{")[0] for logical, names in _build_info.PACKAGES.items()}
    logical = [
        name
        for name in ("core", "libraries", "profiler")
        if name in starts and any(m.startswith(starts[name]) for m in modules)
    ]
    return (
        f"The ROCm development files link to files in {', '.join(modules)}, which is not installed. "
        f"Install with: {installation_hint('devel', *logical)}"
    )


def make_folder(path: Path, modes: Modes) -> None:
    """Make a folder, and those above it that don't exist."""
    if not path.parent.is_dir():
        make_folder(path.parent, modes)
    path.mkdir()
    this_platform().set_folder_mode(path, modes.folder)


def write_text(path: Path, text: str, modes: Modes) -> None:
    """Write a file anew with the permissions that ``modes`` has for files; a link in its place isn't followed."""
    path.unlink(missing_ok=True)
    with path.open("x", encoding="utf-8") as file:
        this_platform().set_file_mode(file, modes.file)
        file.write(text)
