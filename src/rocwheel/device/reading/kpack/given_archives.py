"""The kpack archives among given files, folders and wheels: where these are laid over each other, markers lead there.

A host wheel and its device wheels are installed into one folder, and so are the folders of a split tree.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rocwheel.binary.kpack.archive import KpackArchive, read_archive
from rocwheel.device.reading.kpack.lookup import SearchedArchive
from rocwheel.device.reading.kpack.search import target_at
from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from rocwheel.distributions.binaries import Binary

__all__ = ["GivenArchives"]

_SUFFIX = ".kpack"
_INSTALLED = re.compile(r"[^/]+\.data/(?:purelib|platlib)/")
"""The folder of a wheel whose files are installed beside all others."""


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
    """The archives among ``found``; each is read when a marker names it, once."""

    def __init__(self, found: Iterable[Binary | InputError]) -> None:
        self._binaries = [b for b in found if not isinstance(b, InputError) and b.name.endswith(_SUFFIX)]
        self._read: dict[str, KpackArchive | None] = {}

    def find(self, library: Binary, search_paths: Iterable[str], known: Collection[str]) -> Iterator[SearchedArchive]:
        """Yield the archives that ``search_paths`` of a marker of ``library`` lead to; ``known`` files are left out.

        Damaged ones don't come: whoever is given them reports them.
        """
        for number, path in enumerate(search_paths):
            wanted = _wanted(library, path)
            for binary in self._binaries:
                is_known = binary.member is None and str(Path(binary.name).resolve()) in known
                target = None if is_known else wanted.target_of(binary)
                if target is not None and (archive := self._open(binary)) is not None:
                    yield SearchedArchive(archive, number, target)

    def _open(self, binary: Binary) -> KpackArchive | None:
        if binary.name not in self._read:
            try:
                with binary.view() as data:
                    self._read[binary.name] = read_archive(data, name=binary.name)
            except InputError:
                self._read[binary.name] = None
        return self._read[binary.name]


def _wanted(library: Binary, search_path: str) -> _Wanted:
    folder = posixpath.dirname(_place(library))
    place = posixpath.normpath(posixpath.join(folder, search_path))
    parts = place.split("/")
    kept = [part for part in parts if part != ".."]
    return _Wanted("/".join(kept), is_whole=bool(library.place) and len(kept) == len(parts))


def _place(binary: Binary) -> str:
    return binary.place if binary.member is None else _INSTALLED.sub("", binary.place, count=1)
