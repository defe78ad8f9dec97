"""Writes additional files of an index, such as its front page, which are generated from the list of distributions."""

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
    """The files of each project, sorted by version and file name. The key is the normalized name of the project."""
    yanked: dict[str, str]
    """The reasons for yanking files, keyed by file name. A reason may be empty."""
    bases: dict[str, str]
    """The relative URL from a project's folder to the folder of each file, which is empty or ends with a slash."""
    family: str = ""
    """The family of an index that is below the main index; empty for the main index."""
    standing: Collection[str] = ()
    """Projects that haven't changed since the files in ``made`` were generated."""
    made: Mapping[str, bytes] = {}
    """The files that an earlier run generated with the same makers, keyed by name; empty if any of them has changed."""
    families: Mapping[str, IndexContent] = {}
    """The family indexes below this index, keyed by folder name."""


Extras = Callable[[IndexContent], Mapping[str, bytes]]
"""A function that returns the contents of files, keyed by name.

A name is ``NAME`` for a file in the output, or ``PROJECT/NAME`` for a file next to a project's pages. Files of a
project are written before its page, which may link to them. Files in the output are written after all pages. Makers
must not use the names of pages and distributions. They run again only if the content or their digest has changed; see
`VersionedExtras`.
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
"""A function that returns a file's maker.

Its argument is the current content of the file, empty if there is no file.
"""


def no_extras(_: IndexContent) -> Mapping[str, bytes]:
    """Return no files."""
    return {}


def check_extras(output: Path, names: Iterable[str], known: Collection[str]) -> None:
    """Raise `InputError` for files at ``names`` that no earlier run wrote, or `ProblemsError` for several files."""
    remedy = "Choose a different --output, or remove the file."
    raise_all(
        str(output),
        [
            InputError(output / name, "is a file that this command did not write", remedy=remedy)
            for name in sorted(names)
            if name not in known and os.path.lexists(output / name) and not _is_page(output / name)
        ],
    )


def _is_page(path: Path) -> bool:
    """Return whether a file is a page of an index whose notes were lost."""
    with suppress(OSError):
        return GENERATOR.encode() in read_regular(path)
    return False


def changed_extras(output: Path, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that are missing from the output or that differ from the output's files."""
    changed = {}
    for name, data in files.items():
        with suppress(OSError):
            if read_regular(output / name) == data:
                continue
        changed[name] = data
    return changed


def note_extras(maker: str, made: Mapping[str, bytes], families: Mapping[str, IndexContent]) -> KnownExtras:
    """Return the record of the files in ``made``, which makers with this digest generated."""
    digests = {name: make_digest(data) for name, data in made.items()}
    return KnownExtras(maker, digests, digest_families(families))


def digest_families(families: Mapping[str, IndexContent]) -> str:
    """Return a digest that stays the same while the family indexes list the same files; empty without families."""
    listed = [(name, one.projects, one.yanked) for name, one in families.items()]
    return make_digest(msgspec.msgpack.encode(listed)) if listed else ""


def read_made(output: Path, noted: KnownExtras, maker: str) -> dict[str, bytes] | None:
    """Return the files that makers with this digest generated, or `None` if any of them has changed."""
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
    """Return the digest of the makers' code version and of the files that they generate for an empty index."""
    nothing = sorted(extras(IndexContent({}, {}, {}, family)).items())
    version = extras.version if isinstance(extras, VersionedExtras) else b""
    return make_digest(msgspec.msgpack.encode([version, *nothing]))


def write_extras(output: Path, files: Mapping[str, bytes], noted: Mapping[str, str] | None = None) -> list[str]:
    """Write files atomically, and return the paths of the old files that someone had edited.

    Edited files don't match their ``noted`` digests. Raises `WorkError` if the output can't be written to.
    """
    replaced = {name: write_changed(output / name, data) for name, data in files.items()}
    known = noted or {}
    return [
        str(output / name)
        for name, data in replaced.items()
        if data is not None and make_digest(data) != known.get(name, make_digest(data))
    ]


def remove_stale_extras(output: Path, known: Iterable[str], wanted: Collection[str]) -> None:
    """Remove files that an earlier run wrote but this run didn't. Raises `WorkError` if that fails."""
    for name in known:
        path = output / name
        # The path is a folder, so it isn't the file that an earlier run wrote.
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
    """Return whether a noted name is a valid name for an additional file. Someone may have edited the notes."""
    parts = name.split("/")
    return len(parts) <= 2 and set(PAGES).isdisjoint(parts) and all(map(is_file_name, parts))
