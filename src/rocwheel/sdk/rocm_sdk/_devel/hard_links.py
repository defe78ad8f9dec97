"""Makes what symlinks stand for elsewhere: hard links to files, or copies, and folders of them."""

from __future__ import annotations

import os
import shutil

from .._walk import is_file, is_folder, list_below
from .modes import make_folder
from .place import DISK_FAULTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .modes import Modes

    Link = tuple[Path, str]

__all__ = ["give_name", "link_hard", "make_links"]


def give_name(source: Path, path: Path) -> None:
    """Give a file a second name. Raises `OSError`.

    What is refused once may be allowed at once after: a server that looks at renewed credentials, a file that a virus
    scanner had open. What would stand in for the hard link stays.
    """
    try:
        os.link(source, path)
    except PermissionError:
        os.link(source, path)


def link_hard(source: Path, path: Path) -> None:
    """Give a file a second name; where the file system can't, copy it. Raises `OSError`."""
    try:
        give_name(source.resolve(), path)
    except OSError as e:  # another file system, or one without hard links
        if e.errno in DISK_FAULTS:
            raise
        shutil.copy2(source, path)


def make_links(links: list[Link], locate: Callable[[str], Path], modes: Modes) -> list[str]:
    """Make each link, a path and its target, of the file or folder that ``locate`` has for the target.

    A link may lead to another, or through one to a folder. Return the targets that are not there.
    """
    waiting = links
    while waiting:
        left = [link for link in waiting if not _link_file(locate(link[1]), link[0])]
        if len(left) == len(waiting):  # then all files are there that folders may hold
            left = [link for link in waiting if not _link_folder(locate(link[1]), link[0], modes)]
        if len(left) == len(waiting):
            break
        waiting = left
    return [target for _, target in waiting]


def _link_file(source: Path, path: Path) -> bool:
    if not is_file(source):
        return False
    link_hard(source, path)
    return True


def _link_folder(source: Path, path: Path, modes: Modes) -> bool:
    if not is_folder(source) or source == path or source in path.parents:
        return False
    make_folder(path, modes)
    for file in list_below(source):
        place = path / file.relative_to(source)
        if is_folder(file):
            make_folder(place, modes)
        else:
            link_hard(file, place)
    return True
