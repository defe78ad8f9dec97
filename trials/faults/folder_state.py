"""What is in a folder: to tell whether two runs have made the same."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.core.part_file import is_part
from rocwheel.core.scratch import is_scratch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["State", "differences", "leftovers", "read_state", "read_through", "without_hidden", "wrong_files"]

State = dict[str, str]
"""By path in the folder: the mode of each file, folder and link, and the hash of its bytes or where it leads."""

_DIGITS = 64
"""Of a hash."""


def read_state(folder: Path, varies: Iterable[str] = ()) -> State:
    """Return what is below a folder; nothing where it isn't there. The bytes of what ``varies`` don't count."""
    state = {path.relative_to(folder).as_posix(): _describe(path) for path in sorted(folder.rglob("*"))}
    return {path: text[:-_DIGITS] if path in varies else text for path, text in state.items()}


def read_through(folder: Path, varies: Iterable[str] = ()) -> State:
    """Return what is below a folder by name and bytes, links for what they lead to: a disk may lack them, and modes."""
    state = {}
    for place, folders, files in os.walk(folder, followlinks=True):
        for name in sorted(folders + files):
            path = Path(place, name)
            state[path.relative_to(folder).as_posix()] = _content(path)
    return {path: "file" if path in varies else text for path, text in state.items()}


def _content(path: Path) -> str:
    if path.is_dir():
        return "folder"
    return f"file {hashlib.sha256(path.read_bytes()).hexdigest()}" if path.exists() else "broken link"


def _describe(path: Path) -> str:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return f"link to {path.readlink()}"
    if stat.S_ISDIR(status.st_mode):
        return f"folder {stat.S_IMODE(status.st_mode):o}"
    return f"file {stat.S_IMODE(status.st_mode):o} {hashlib.sha256(path.read_bytes()).hexdigest()}"


def differences(state: Mapping[str, str], wanted: Mapping[str, str]) -> list[str]:
    """Return what is missing, too much or different, each as a line."""
    lines = [f"{path} is missing" for path in wanted if path not in state]
    lines += [f"{path} is there" for path in state if path not in wanted]
    lines += [f"{path} differs" for path in state if path in wanted and state[path] != wanted[path]]
    return sorted(lines)


def wrong_files(state: Mapping[str, str], *right: Mapping[str, str]) -> list[str]:
    """Return the files and links under final names that are in none of the states that are right, each as a line."""
    names = [path for path in state if not _is_hidden(path) and not state[path].startswith("folder")]
    return [f"{path} is wrong" for path in names if all(state[path] != one.get(path) for one in right)]


def without_hidden(state: Mapping[str, str]) -> State:
    """Return a state without scratch files and folders, which a command may leave to the next."""
    return {path: text for path, text in state.items() if not _is_hidden(path)}


def leftovers(state: Mapping[str, str]) -> list[str]:
    """Return the scratch files and folders, each as a line."""
    return [f"{path} is left" for path in state if _is_hidden(path)]


def _is_hidden(path: str) -> bool:
    return any(is_scratch(part) or is_part(part) for part in path.split("/"))
