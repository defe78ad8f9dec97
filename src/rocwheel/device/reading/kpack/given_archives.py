"""The kpack archives among given files, folders and wheels, searched as if all were installed into one folder.

A host wheel and its device wheels are installed into one folder, and so are the folders of a split tree.
"""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rocwheel.binary.kpack.markers import target_at
from rocwheel.core.errors import InputError
from rocwheel.wheels.binaries import installed_place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from rocwheel.wheels.binaries import Binary

__all__ = ["Beside", "GivenArchives", "is_named_archive"]

_SUFFIX = ".kpack"


class _Wanted(NamedTuple):
    """Where archives have to be: in a place below what is laid over each other, or, if that is unknown, at its end."""

    place: str
    is_whole: bool

    def target_of(self, binary: Binary) -> str | None:
        """Return the target for which ``binary`` is looked for, as `target_at` does; none for another file."""
        if not binary.place:
            return target_at(posixpath.basename(self.place), Path(binary.name).name)
        place = _place(binary)
        if not self.is_whole:
            place = "/".join(place.split("/")[-self.place.count("/") - 1 :])
        return target_at(self.place, place)


class GivenArchives:
    """The archives among ``found``, by their names; damaged ones are reported by whoever is given them."""

    def __init__(self, found: Iterable[Binary | InputError]) -> None:
        self._binaries = [b for b in found if not isinstance(b, InputError) and is_named_archive(b)]

    def holds(self, name: str) -> bool:
        """Return whether the archive ``name``, or that at a resolved path, is one of those that are given."""
        return any(
            binary.name == name or (binary.member is None and str(Path(binary.name).resolve()) == name)
            for binary in self._binaries
        )

    def beside(self, library: Binary) -> Beside:
        """Return the archives as the markers of ``library`` name them."""
        return Beside(self._binaries, library)


class Beside(NamedTuple):
    """Archives that are given together with a library."""

    archives: Sequence[Binary]
    library: Binary

    def find(self, search_path: str, known: Collection[Path]) -> Iterator[tuple[Binary, str]]:
        """Yield the archives that a search path of the library leads to, each with the target for which it does.

        Those that are ``known`` files are left out. The target is as `target_at` gives it.
        """
        wanted = _wanted(self.library, search_path)
        for binary in self.archives:
            is_known = binary.member is None and Path(binary.name).resolve() in known
            target = None if is_known else wanted.target_of(binary)
            if target is not None:
                yield binary, target


def is_named_archive(binary: Binary) -> bool:
    """Return whether a file is called as archives are."""
    return binary.name.endswith(_SUFFIX)


def _wanted(library: Binary, search_path: str) -> _Wanted:
    folder = posixpath.dirname(_place(library))
    place = posixpath.normpath(posixpath.join(folder, search_path))
    parts = place.split("/")
    kept = [part for part in parts if part != ".."]
    return _Wanted("/".join(kept), is_whole=bool(library.place) and len(kept) == len(parts))


def _place(binary: Binary) -> str:
    return binary.place if binary.member is None else installed_place(binary.place)
