"""What the run that wrote an index found and did."""

from __future__ import annotations

import msgspec

__all__ = ["IndexReport"]


class IndexReport(msgspec.Struct, frozen=True):
    """What an index holds."""

    output: str
    projects: dict[str, list[str]]
    """File names by project."""
    ignored: tuple[str, ...]
    """Names in the folders that are neither wheels nor sdists."""
    subfolders: tuple[str, ...]
    """Names of folders in them that hold distributions; these are not in the index."""
    yanked: dict[str, str] = {}
    """Reasons of the files that are yanked (:pep:`592`), by name; empty for none."""
    future: tuple[str, ...] = ()
    """Names of new files that are dated in the future; the index has the present instead."""
    edited: tuple[str, ...] = ()
    """Paths of pages that somebody had edited; but for marks of yanked files, they are again as they were."""
    variants: dict[str, dict[str, tuple[str, ...]]] = {}
    """The properties of wheel variants (a draft), by the name of the file that lists them and by label."""
    families: dict[str, IndexReport] = {}
    """Indexes of what is in the folders and in one of the ``subfolders``, by the name of that."""
