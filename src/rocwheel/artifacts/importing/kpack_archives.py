"""Archives of device code in a prefix, and the libraries whose markers lead to them."""

from __future__ import annotations

import posixpath
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from rocwheel.artifacts.model.names import GENERIC
from rocwheel.binary.bundles.fat_binary import is_host_file
from rocwheel.binary.kind import is_kpack
from rocwheel.binary.kpack.archive import read_archive
from rocwheel.binary.kpack.search import leads_to
from rocwheel.binary.kpack.split_library import read_split_library
from rocwheel.core.errors import InputError
from rocwheel.core.reading import FileRange

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["OwnedArchive", "find_owned_archives"]

_SUFFIX = ".kpack"


class OwnedArchive(NamedTuple):
    """The library that an archive belongs to, by its path below the prefix, and the target of the code in it."""

    library: str
    target: str
    """`GENERIC` for an archive for several."""


def find_owned_archives(files: Mapping[str, Path]) -> dict[str, OwnedArchive]:
    """Return the archives among ``files`` that markers of libraries among them lead to; paths are below the prefix.

    Of several libraries, the first by its path counts. Damaged files are passed over.
    """
    archives = [path for path in sorted(files) if path.endswith(_SUFFIX)]
    places = list(_iter_places(files)) if archives else []
    owners = {path: next((lib for lib, place in places if leads_to(place, path)), None) for path in archives}
    targets = {path: _target(files[path]) for path, library in owners.items() if library}
    return {path: OwnedArchive(library, targets[path]) for path, library in owners.items() if library and targets[path]}


def _iter_places(files: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Yield each library that was split, with each place below the prefix that its markers name."""
    for path, file in sorted(files.items()):
        with suppress(InputError), FileRange.whole(file).view() as data:
            library = read_split_library(data, name=path) if is_host_file(data) else None
            for search in dict.fromkeys(
                p for unit in (library.units if library else ()) for p in unit.marker.search_paths
            ):
                yield path, posixpath.normpath(posixpath.join(posixpath.dirname(path), search))


def _target(file: Path) -> str:
    """Return the target of an archive; empty for a file that is none."""
    with suppress(InputError), FileRange.whole(file).view() as data:
        if is_kpack(data):
            processors = read_archive(data, name=str(file)).processors
            return min(processors) if len(processors) == 1 else GENERIC
    return ""
