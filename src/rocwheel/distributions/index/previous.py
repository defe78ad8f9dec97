"""What an earlier run has written into an index, read from its pages; nothing else is ever replaced or removed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

import msgspec
from packaging.utils import is_normalized_name

from rocwheel.distributions.index.simple_pages import is_project_page, is_root_page
from rocwheel.foundation.decoding import decode_json
from rocwheel.foundation.errors import InputError, WorkError, read_error

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["PAGES", "check_pages", "read_previous", "remove_stale"]

PAGES = ("index.html", "index.json")
"""The two forms of a page."""

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


def check_pages(output: Path, projects: Iterable[str] = ()) -> None:
    """Raise `InputError` when the place of the root's or a project's page holds a page of another origin."""
    pages = {output / "index.html": is_root_page}
    pages |= {output / project / "index.html": is_project_page for project in projects}
    for page, is_own in pages.items():
        if page.exists() and not is_own(_read(page)):
            remedy = "Give another --output, or remove the page."
            raise InputError(page, "a page that this command has not written for this place", remedy=remedy)


def _read(page: Path) -> bytes:
    try:
        return page.read_bytes() if page.is_file() else b""
    except OSError as e:
        raise read_error(page, e, remedy="Check its permissions.") from e


def read_previous(output: Path) -> dict[str, set[str]]:
    """Return the names of the files in each project folder that the last whole run over ``output`` has written."""
    root = _decode(output / "index.json", _Root) if is_root_page(_read(output / "index.html")) else None
    names = [project.name for project in root.projects if is_normalized_name(project.name)] if root else []
    return {name: _written(output / name) for name in names if is_project_page(_read(output / name / "index.html"))}


def _written(folder: Path) -> set[str]:
    project = _decode(folder / "index.json", _Project)
    files = project.files if project else ()
    held = [file.filename for file in files if file.url == quote(file.filename) and "/" not in file.filename]
    return {*PAGES, *held, *(f"{name}.metadata" for name in held)}


def _decode(path: Path, kind: type[_T]) -> _T | None:
    """Return the JSON of a page, none when it is damaged."""
    with suppress(OSError, msgspec.MsgspecError):
        return decode_json(path.read_bytes(), kind)
    return None


def remove_stale(dist_dir: Path, output: Path, previous: dict[str, set[str]], wanted: dict[str, set[str]]) -> None:
    """Remove the files of ``previous`` that are not ``wanted`` any more, but nothing from the folder of distributions.

    Raises `WorkError` when that can't be done.
    """
    try:
        for project, names in sorted(previous.items()):
            folder = output / project
            if folder.is_dir() and not folder.samefile(dist_dir):
                _remove(folder, names - wanted.get(project, set()))
    except OSError as e:
        raise WorkError(output, f"cannot be cleaned ({e.strerror})", remedy="Check its permissions.") from e


def _remove(folder: Path, names: set[str]) -> None:
    for name in sorted(names):
        (folder / name).unlink(missing_ok=True)
    if names.issuperset(PAGES):
        with suppress(OSError):  # a file of somebody else's
            folder.rmdir()
