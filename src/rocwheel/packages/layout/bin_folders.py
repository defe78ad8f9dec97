"""One spelling for the folders that Windows loads from: there, ``Bin`` and ``bin`` are one folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.artifacts.artifact import FileKind
from rocwheel.binary.platform import Platform
from rocwheel.packages.layout.tree_platform import glance_platform

if TYPE_CHECKING:
    from rocwheel.artifacts.catalog import Catalog, Entry

__all__ = ["with_plain_bin"]

_BIN: Final = re.compile(r"(?<![^/])(?!bin(?:/|$))(?i:bin)(?=/|$)")
"""A whole name in a path that is ``bin`` in another case."""


def with_plain_bin(catalog: Catalog, given: Platform | None = None) -> Catalog:
    """Return a catalogue for Windows with all folders called ``bin``, in whatever case, spelled so; others as they are.

    Recipes, packages and linkers name that folder in lower case. ``given`` is the system that somebody says the tree is
    for. Raises `InputError` for a file that can't be read.
    """
    spelled = tuple(_spell(entry) for entry in catalog.entries)
    if spelled == catalog.entries or glance_platform(catalog.entries, given) is not Platform.WINDOWS:
        return catalog
    entries = sorted(spelled, key=lambda entry: (entry.path, entry.artifact))
    return msgspec.structs.replace(catalog, entries=tuple(entries))


def _spell(entry: Entry) -> Entry:
    folder, slash, name = entry.path.rpartition("/")
    path = _plain(entry.path) if entry.kind is FileKind.DIRECTORY else f"{_plain(folder)}{slash}{name}"
    link = entry.link and _plain(entry.link)
    if (path, link) == (entry.path, entry.link):
        return entry
    return msgspec.structs.replace(entry, path=path, link=link)


def _plain(path: str) -> str:
    return _BIN.sub("bin", path)
