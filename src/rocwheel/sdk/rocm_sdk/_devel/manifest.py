"""Reads which files of other packages the development tree has, and which of device packages were linked before."""

from __future__ import annotations

import posixpath

from .._installing import reinstallation_hint
from .._json_file import DamagedFileError, read_field, read_json
from .._platform import this_platform
from .place import DevelError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from .place import DevelPlace

__all__ = ["read_links", "read_manifest", "read_note"]


def read_manifest(manifest: Path) -> tuple[str, list[str]]:
    """Return the version of a device package and the paths of its files, relative to the tree.

    Raises `DamagedFileError`, also for a path that leads out of the tree.
    """
    expected = "an object with 'version' and 'links'"
    try:
        document = read_json(manifest, dict, expected)
    except FileNotFoundError as e:
        raise DamagedFileError(manifest, "leads nowhere", expected) from e
    version = read_field(manifest, document, "version", str)
    links = read_field(manifest, document, "links", list)
    return version, [_read_path(manifest, read_field(manifest, link, "relpath", str)) for link in links]


def read_links(place: DevelPlace) -> dict[str, str]:
    """Return the paths in the tree of files that other packages have, with the paths of those in site-packages.

    There are none where the archive has symlinks for them. Raises `DevelError` for a damaged manifest.
    """
    expected = "an object with 'links', paths by paths"
    try:
        links = read_field(place.links, read_json(place.links, dict, expected), "links", dict)
        return {_read_path(place.links, path): _read_path(place.links, target) for path, target in links.items()}
    except FileNotFoundError:
        return {}
    except DamagedFileError as e:
        msg = f"{e}. Reinstall: {reinstallation_hint('devel')}"
        raise DevelError(msg) from e


def read_note(note: Path) -> list[str]:
    """Return the paths that were linked for a device package. Raises `DamagedFileError`."""
    return [_read_path(note, path) for path in read_json(note, list, "a list of paths")]


def _is_safe(path: str) -> bool:
    """Return whether a path stays inside, and whether a file can have it."""
    if not path or path.startswith("/") or ".." in path.split("/") or "\0" in path:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in path) and not this_platform().name_fault(path)


def _read_path(file: Path, path: Any) -> str:
    if not isinstance(path, str) or not _is_safe(path):
        raise DamagedFileError(file, f"has the path {path!a}", "paths relative to the tree, which stay inside it")
    return posixpath.normpath(path)
