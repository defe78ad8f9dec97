"""Additional files of an index, such as its front page, generated from the list of its distributions."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.names import is_file_name
from rocwheel.core.reading import read_regular
from rocwheel.core.workers import raise_all
from rocwheel.index.entry import IndexEntry
from rocwheel.index.folder_notes import KnownExtras, write_changed
from rocwheel.index.pages import GENERATOR, PAGES, make_digest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class IndexContent(msgspec.Struct, frozen=True):
    """The contents of an index."""

    projects: dict[str, list[IndexEntry]]
    """The files of each project, by normalized name, sorted by version and file name."""
    yanked: dict[str, str]
    """The reasons of yanked files, by file name. A reason may be empty."""
    bases: dict[str, str]
    """Maps each file name to the relative URL from its project's folder to its folder: empty, or ending in a slash."""
    family: str = ""
    """The family of an index that is below the main index; empty for the main index."""
    standing: Collection[str] = ()
    """Projects that have not changed since the files in ``made`` were generated."""
    made: Mapping[str, bytes] = {}
    """The files that an earlier run generated with the same makers, by name; empty if any of them has changed since."""
    families: Mapping[str, IndexContent] = {}
    """The family indexes below this index, by folder name."""


Extras = Callable[[IndexContent], Mapping[str, bytes]]
"""Returns the contents of files by name: ``NAME`` in the output, or ``PROJECT/NAME`` next to a project's pages.

Files of a project are written before its page, which may link to them. Files of the output are written after all pages.
Makers must not use the names of pages and distributions. They run again only if the content or their digest has
changed; see `VersionedExtras`.
"""


@runtime_checkable
class VersionedExtras(Protocol):
    """A maker with a version, because different code may generate the same files from empty content."""

    version: bytes
    """A value that changes whenever the maker may generate different files from the same content."""

    def __call__(self, content: IndexContent, /) -> Mapping[str, bytes]:
        """Return the files."""
        ...


NextExtras = Callable[[bytes], Extras]
"""Returns the maker of such a file, given the current contents of the file, which are empty if it doesn't exist."""


def no_extras(_: IndexContent) -> Mapping[str, bytes]:
    """Return no files."""
    return {}


def check_extras(output: Path, names: Iterable[str], known: Collection[str]) -> None:
    """Raise `InputError` for files at ``names`` that no earlier run has written, or `ProblemsError` for several."""
    remedy = "Choose another --output, or remove it."
    raise_all(
        str(output),
        [
            InputError(output / name, "is a file that this command did not write", remedy=remedy)
            for name in sorted(names)
            if name not in known and os.path.lexists(output / name) and not _is_page(output / name)
        ],
    )


def _is_page(path: Path) -> bool:
    """Return whether a file is a page of an index whose notes are missing."""
    with suppress(OSError):
        return GENERATOR.encode() in read_regular(path)
    return False


def changed_extras(output: Path, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that are not in the output already."""
    changed = {}
    for name, data in files.items():
        with suppress(OSError):
            if read_regular(output / name) == data:
                continue
        changed[name] = data
    return changed


def note_extras(maker: str, made: Mapping[str, bytes], families: Mapping[str, IndexContent]) -> KnownExtras:
    """Return the record of the files that makers with this digest have ``made``."""
    digests = {name: make_digest(data) for name, data in made.items()}
    return KnownExtras(maker, digests, digest_families(families))


def digest_families(families: Mapping[str, IndexContent]) -> str:
    """Return a digest that stays equal while the family indexes list the same files; empty without families."""
    listed = [(name, one.projects, one.yanked) for name, one in families.items()]
    return make_digest(msgspec.msgpack.encode(listed)) if listed else ""


def read_made(output: Path, noted: KnownExtras, maker: str) -> dict[str, bytes] | None:
    """Return the files that makers with this digest have made, if all of them are unchanged."""
    if maker != noted.maker:
        return None
    made = {}
    for name, digest in noted.digests.items():
        with suppress(OSError):
            made[name] = read_regular(output / name)
        if name not in made or make_digest(made[name]) != digest:
            return None
    return made


def digest_maker(extras: Extras, family: str) -> str:
    """Return the digest of the makers' code version and of their output for empty content."""
    nothing = sorted(extras(IndexContent({}, {}, {}, family)).items())
    version = extras.version if isinstance(extras, VersionedExtras) else b""
    return make_digest(msgspec.msgpack.encode([version, *nothing]))


def write_extras(output: Path, files: Mapping[str, bytes], noted: Mapping[str, str] | None = None) -> list[str]:
    """Write files atomically, and return the paths of files that didn't match their ``noted`` digests.

    Such files were edited by someone. Raises `WorkError` if the output can't be written.
    """
    replaced = {name: write_changed(output / name, data) for name, data in files.items()}
    known = noted or {}
    return [
        str(output / name)
        for name, data in replaced.items()
        if data is not None and make_digest(data) != known.get(name, make_digest(data))
    ]


def remove_stale_extras(output: Path, known: Iterable[str], wanted: Collection[str]) -> None:
    """Remove files that an earlier run has written and this run has not. Raises `WorkError` if that fails."""
    for name in known:
        path = output / name
        # An earlier run can't have written a folder with this name as a file.
        if name in wanted or not _is_extra(name) or path.parent.is_symlink() or path.is_dir():
            continue
        try:
            path.unlink(missing_ok=True)
        except OSError as e:
            raise WorkError(path, f"can't be removed ({e.strerror})", remedy="Check its permissions.") from e
        if "/" in name:
            with suppress(OSError):  # the project still exists
                path.parent.rmdir()


def _is_extra(name: str) -> bool:
    """Return whether a noted name is valid for such a file. The notes may have been edited."""
    parts = name.split("/")
    return len(parts) <= 2 and set(PAGES).isdisjoint(parts) and all(map(is_file_name, parts))
