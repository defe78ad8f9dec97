"""One file of a device package in the development tree.

Links are hard links: what opens a library or program by its path in the tree looks for its kernels beside that, and
some of it doesn't follow symlinks. Across file systems, and where there are no hard links, they are symlinks; on
Windows, whose users may not make these, copies.
"""

from __future__ import annotations

import os
import posixpath
import shutil
from contextlib import suppress

from .._packages import describe_package
from .._platform import this_platform
from .._walk import is_file, is_folder, is_there
from .hard_links import give_name
from .modes import make_folder, modes_like
from .place import DISK_FAULTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from .place import DevelPlace

__all__ = ["is_free", "lacks_link", "link_file", "unlink_file"]


def link_file(place: DevelPlace, path: str, noted: Collection[str]) -> None:
    """Link a file of a device package into the tree unless `lacks_link` says no. Raises `OSError`.

    ``noted`` are the paths that were linked before, or are to be.
    """
    if not lacks_link(place, path, noted):
        return
    link, file = place.root / path, place.site / _device_module() / path
    if not link.parent.is_dir():
        make_folder(link.parent, modes_like(place.package))
    with suppress(FileNotFoundError):
        link.unlink()  # what an earlier package had there
    try:
        give_name(file, link)
    except OSError as e:  # another file system, or one without hard links
        if e.errno in DISK_FAULTS:
            raise
        if this_platform().is_windows:
            shutil.copy2(file, link)
        else:
            link.symlink_to(_link_text(path))


def lacks_link(place: DevelPlace, path: str, noted: Collection[str]) -> bool:
    """Return whether a file lacks its link; not when the package lacks it or the tree has its own file there.

    A link to a file that was replaced since has other content, or another time.
    """
    link, file = place.root / path, place.site / _device_module() / path
    if not is_file(file) or is_folder(link):
        return False
    if os.path.lexists(link) and (path not in noted or _is_as(link, file)):
        return False
    return link.parent.resolve() == place.root.resolve() / posixpath.dirname(path)


def is_free(place: DevelPlace, path: str) -> bool:
    """Return whether the tree has nothing of its own at a path: nothing at all, or the link already."""
    link, file = place.root / path, place.site / _device_module() / path
    return not os.path.lexists(link) or (is_there(link) and is_there(file) and link.samefile(file))


def _is_as(link: Path, file: Path) -> bool:
    """Return whether a link leads to a file; also to a copy of it, which image layers make of hard links."""
    if not is_there(link):
        return False
    there, here = link.stat(), file.stat()
    return link.samefile(file) or (there.st_size, int(there.st_mtime)) == (here.st_size, int(here.st_mtime))


def unlink_file(place: DevelPlace, path: str) -> None:
    """Remove the link of a file of a device package, and the folders that it leaves empty. Raises `OSError`."""
    link = place.root / path
    if not os.path.lexists(link) or (link.is_symlink() and str(link.readlink()) != _link_text(path)):
        return
    if is_folder(link) or link.parent.resolve() != place.root.resolve() / posixpath.dirname(path):
        return
    link.unlink()
    for folder in link.parents:
        if folder == place.root or any(folder.iterdir()):
            return
        folder.rmdir()


def _link_text(path: str) -> str:
    return f"{'../' * (path.count('/') + 1)}{_device_module()}/{path}"


def _device_module() -> str:
    device = describe_package("device")
    return device.platform_module if device else ""
