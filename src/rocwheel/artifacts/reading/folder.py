"""Reading an exploded artifact: a folder with ``artifact_manifest.txt`` and the stage folders it lists."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from rocwheel.artifacts.model.artifact import PERMISSIONS, Artifact, FileKind, Member, checked
from rocwheel.artifacts.model.manifest import MANIFEST_NAME, MAX_MANIFEST_SIZE, parse_manifest
from rocwheel.core.errors import InputError, RocwheelError, read_error
from rocwheel.core.reading import FileRange, FileStamp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocwheel.artifacts.model.names import ArtifactName

__all__ = ["read_folder", "walk_tree"]


def read_folder(folder: Path, name: ArtifactName) -> Artifact:
    """Read the manifest of an artifact folder and list its members in path order.

    Raises `InputError` or `ProblemsError` when the manifest is missing, unreadable or malformed, and for every member
    that can't be read, is a device, fifo or socket, or is unsafe (see `checked`).
    """
    stages = parse_manifest(_read_manifest(folder), str(folder / MANIFEST_NAME))
    problems: list[RocwheelError] = []
    return checked(Artifact(name, str(folder), stages, walk_tree(folder, problems)), problems)


def walk_tree(root: Path, problems: list[RocwheelError]) -> tuple[Member, ...]:
    """Return everything below ``root`` in path order, links as links; what can't be used is added to ``problems``."""
    folders = [""]
    found: list[Member] = []
    while folders:
        members = list(_scan(root, folders.pop(), problems))
        found += members
        folders += [member.path for member in members if member.kind is FileKind.DIRECTORY]
    return tuple(sorted(found, key=lambda member: member.path))


def _scan(root: Path, folder: str, problems: list[RocwheelError]) -> Iterator[Member]:
    place = root / folder
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                try:
                    yield _member(entry, path)
                except OSError as e:
                    problems.append(read_error(entry.path, e))
                except InputError as e:
                    problems.append(e)
    except OSError as e:
        problems.append(read_error(str(place), e))


def _member(entry: os.DirEntry[str], path: str) -> Member:
    status = entry.stat(follow_symlinks=False)
    mode = status.st_mode & PERMISSIONS
    if stat.S_ISDIR(status.st_mode):
        return Member(path, FileKind.DIRECTORY, mode)
    if stat.S_ISLNK(status.st_mode):
        link = os.readlink(entry.path)  # noqa: PTH115 (a Path would change the text: "./x/" to "x")
        return Member(path, FileKind.SYMLINK, PERMISSIONS, link=link)
    if stat.S_ISREG(status.st_mode):
        if not os.access(entry.path, os.R_OK):
            raise InputError(entry.path, "can't be read", remedy="Check its permissions.")
        return Member(path, FileKind.FILE, mode, source=FileRange(entry.path, 0, status.st_size, FileStamp.of(status)))
    raise InputError(entry.path, "is a device, fifo or socket", expected="files, symlinks and folders only")


def _read_manifest(folder: Path) -> bytes:
    path = folder / MANIFEST_NAME
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(path, "is not a regular file", expected="a list of stage folders")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_MANIFEST_SIZE + 1)
    except FileNotFoundError as e:
        remedy = "Is it an artifact whose copying broke off? Complete or remove the folder."
        raise InputError(folder, f"has no {MANIFEST_NAME}", remedy=remedy) from e
    except OSError as e:
        raise read_error(str(path), e) from e
    if len(data) > MAX_MANIFEST_SIZE:
        raise InputError(path, f"is larger than {MAX_MANIFEST_SIZE} bytes", expected="a few lines")
    return data
