"""Folders laid over one another: a host folder, and those of targets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.reading import have_same_bytes
from rocwheel.core.workers import raise_all
from rocwheel.device.splitting.files import NamedFile
from rocwheel.device.splitting.trees.listing import Listing, list_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Overlay", "lay_over"]


class Overlay(msgspec.Struct, frozen=True, kw_only=True):
    """Everything in some trees by paths below their roots; a path that several have comes from the first."""

    root_of: dict[str, Path]
    """The root that each folder, link, file and further name comes from."""
    folders: tuple[str, ...]
    links: tuple[str, ...]
    files: tuple[NamedFile, ...]
    aliases: dict[str, str]


def lay_over(host: Path, devices: Sequence[Path]) -> Overlay:
    """List ``host``, a tree or a file, and the trees ``devices`` as one tree.

    Raises `InputError`, or `ProblemsError` for several, for a path that two of them have with different contents.
    """
    listings = [list_source(source) for source in (host, *devices)]
    raise_all(str(host), list(_conflicts(listings)))
    root_of: dict[str, Path] = {}
    aliases: dict[str, str] = {}
    files: dict[str, NamedFile] = {}
    for listing in listings:
        aliases |= {alias: first for alias, first in listing.aliases.items() if alias not in root_of}
        files = {file.path: file for file in listing.files} | files
        for path in (*listing.folders, *listing.links, *files, *listing.aliases):
            root_of.setdefault(path, listing.root)
    return Overlay(
        root_of=root_of,
        folders=tuple(sorted({folder for listing in listings for folder in listing.folders})),
        links=tuple(sorted({link for listing in listings for link in listing.links})),
        files=tuple(files[path] for path in sorted(files) if path not in aliases),
        aliases=aliases,
    )


def _conflicts(listings: Sequence[Listing]) -> Iterator[InputError]:
    first: dict[str, tuple[Listing, NamedFile | str]] = {}
    for listing in listings:
        files = {file.path: file for file in listing.files}
        files |= {alias: files[first] for alias, first in listing.aliases.items()}
        things: dict[str, NamedFile | str] = {**files}
        things |= {link: str((listing.root / link).readlink()) for link in listing.links}
        things |= dict.fromkeys(listing.folders, "a folder")
        for path, thing in things.items():
            other, known = first.setdefault(path, (listing, thing))
            if other is not listing and not _is_same(known, thing):
                expected = f"what {other.root / path} is"
                remedy = "They are of different builds: join those of one."
                yield InputError(listing.root / path, "another content", expected=expected, remedy=remedy)


def _is_same(one: NamedFile | str, other: NamedFile | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    with one.content.view() as data, other.content.view() as more:
        return have_same_bytes(data, more)
