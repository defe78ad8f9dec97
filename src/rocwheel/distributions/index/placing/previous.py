"""What earlier runs have written into an index, read from its pages; nothing else is ever replaced or removed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

import msgspec
from packaging.utils import is_normalized_name

from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import WorkError
from rocwheel.core.names import is_file_name
from rocwheel.core.reading import read_if_readable
from rocwheel.distributions.index.pages.simple_pages import PAGES, is_project_page, is_root_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

__all__ = ["read_previous", "remove_stale"]

_T = TypeVar("_T")


class _Named(msgspec.Struct, frozen=True):
    name: str


class _Root(msgspec.Struct, frozen=True):
    projects: tuple[_Named, ...]


class _File(msgspec.Struct, frozen=True):
    filename: str
    url: str


class _Project(msgspec.Struct, frozen=True):
    files: tuple[_File, ...]


def read_previous(
    output: Path, noted: Mapping[str, Iterable[str]], wanted: Mapping[str, AbstractSet[str]]
) -> dict[str, set[str]]:
    """Return the names of the files that runs over ``output`` have written, by project.

    The pages tell it, and what the last run has ``noted``: it may have been killed before it wrote the root's page, or
    before it removed what the root no longer lists. Projects of which nothing but what is ``wanted`` was noted are left
    out.
    """
    root = _decode(output / "index.json", _Root) if is_root_page(read_if_readable(output / "index.html")) else None
    projects = {*(project.name for project in root.projects), *noted} if root else {*noted}
    kept = {name for name, names in noted.items() if name in wanted and wanted[name] >= set(names)}
    return {name: _written(output / name, noted.get(name, ())) for name in projects - kept if _is_own(output, name)}


def _is_own(output: Path, project: str) -> bool:
    folder = output / project
    if not (is_normalized_name(project) and is_file_name(project)) or folder.is_symlink():
        return False
    page = folder / "index.html"
    return is_project_page(read_if_readable(page)) if page.exists() else folder.is_dir()


def _written(folder: Path, noted: Iterable[str]) -> set[str]:
    project = _decode(folder / "index.json", _Project)
    files = project.files if project else ()
    held = [file.filename for file in files if file.url == quote(file.filename) and is_file_name(file.filename)]
    return {*PAGES, *held, *(f"{name}.metadata" for name in held), *filter(is_file_name, noted)}


def _decode(path: Path, kind: type[_T]) -> _T | None:
    """Return the JSON of a page, none when it is damaged."""
    with suppress(msgspec.DecodeError):
        return decode_json(read_if_readable(path), kind)
    return None


def remove_stale(
    dist_dirs: Sequence[Path], output: Path, previous: Mapping[str, set[str]], wanted: Mapping[str, AbstractSet[str]]
) -> None:
    """Remove the files of ``previous`` that are not ``wanted`` any more, but nothing from the folders of distributions.

    Raises `WorkError` when that can't be done.
    """
    try:
        for project, names in sorted(previous.items()):
            folder = output / project
            if names <= wanted.get(project, set()):
                continue
            if folder.is_dir() and not any(map(folder.samefile, dist_dirs)):
                _remove(folder, names - wanted.get(project, set()))
    except OSError as e:
        raise WorkError(output, f"can't be cleaned ({e.strerror})", remedy="Check its permissions.") from e


def _remove(folder: Path, names: set[str]) -> None:
    for name in sorted(names, key=lambda name: (name not in PAGES, name)):  # no page lists what is gone
        (folder / name).unlink(missing_ok=True)
    if names.issuperset(PAGES):
        with suppress(OSError):  # a file of somebody else's
            folder.rmdir()
