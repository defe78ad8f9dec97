"""The links of a devel tree that no archive holds: on Windows, whose users may not make symlinks."""

from __future__ import annotations

import json
import posixpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rocwheel.packages.plan import TarEntry

__all__ = ["LINKS_NAME", "part_links", "render_links"]

LINKS_NAME = "_links.json"
"""Beside the archive: what the expanded tree has of files that stand elsewhere."""


def part_links(root: str, entries: Iterable[TarEntry]) -> tuple[list[TarEntry], dict[str, str]]:
    """Return the files of a devel tree, and what else it has: paths in it, each with that of the file in site-packages.

    ``root`` is the tree's folder in site-packages. Chains of links are followed, and a link to a folder becomes its
    files, so that hard links or copies can be made of the paths as they are.
    """
    listed = {entry.path: entry for entry in entries}
    texts = {path: entry.link for path, entry in listed.items() if entry.link is not None}
    files = [entry for entry in listed.values() if entry.link is None]
    links: dict[str, str] = {}
    for path in texts:
        target = _follow(path, texts)
        below = f"{target}/"
        found = {path: target} if not _is_folder(target, listed) else _below(path, below, texts, listed)
        links |= {posixpath.relpath(one, root): other for one, other in found.items()}
    return files, dict(sorted(links.items()))


def render_links(links: Mapping[str, str]) -> str:
    """Return the text of the manifest."""
    return json.dumps({"links": links}, indent=1) + "\n"


def _follow(path: str, texts: Mapping[str, str]) -> str:
    seen = set()
    while path in texts and path not in seen:
        seen.add(path)
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), texts[path]))
    return path


def _is_folder(path: str, listed: Mapping[str, TarEntry]) -> bool:
    return path not in listed and any(other.startswith(f"{path}/") for other in listed)


def _below(path: str, folder: str, texts: Mapping[str, str], listed: Iterable[str]) -> dict[str, str]:
    inside: Iterator[str] = (other for other in listed if other.startswith(folder))
    return {posixpath.join(path, other.removeprefix(folder)): _follow(other, texts) for other in inside}
