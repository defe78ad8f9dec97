"""The distributions of a package index that is a folder on this disk."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from rocwheel.core.errors import InputError
from rocwheel.distributions.index_reading.source import IndexSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.core.errors import RocwheelError

__all__ = ["files_of_local_index"]


def files_of_local_index(folder: Path, problems: list[RocwheelError]) -> list[Path]:
    """Return the files on this disk that the pages of an index list, each once; none for a folder that is no index.

    Pages and entries that may not be trusted are appended to ``problems``.
    """
    source = IndexSource(folder.absolute().as_uri())
    projects: tuple[str, ...] = ()
    with suppress(InputError):  # no page, or another one, such as that of documentation
        projects = source.projects()
    return list(dict.fromkeys(path for project in projects for path in _files_of(source, project, problems)))


def _files_of(source: IndexSource, project: str, problems: list[RocwheelError]) -> Iterator[Path]:
    try:
        listing = source.read_project(project)
    except InputError as e:
        problems.append(e)
        return
    if listing is None:
        return
    problems += listing.problems
    for file in listing.files:
        parts = urlsplit(file.url)
        if parts.scheme == "file":
            yield Path(unquote(parts.path))
