"""Further files of an index, such as its front page, made from the list of its distributions."""

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
    """What an index lists."""

    projects: dict[str, list[IndexEntry]]
    """By normalized name; the files by version and name."""
    yanked: dict[str, str]
    """Reasons of what is yanked, by file name, empty for none."""
    bases: dict[str, str]
    """What leads from a project's folder to each file, by file name: empty, or ending in a slash."""
    family: str = ""
    """Whose index it is, in a folder of that name below the index of all; empty for that one."""
    standing: Collection[str] = ()
    """Projects of which nothing has changed since ``made`` was."""
    made: Mapping[str, bytes] = {}
    """What an earlier run has made with the same makers, by name; nothing if any of it has changed since."""
    families: Mapping[str, IndexContent] = {}
    """The indexes of families below it, by the names of their folders."""


Extras = Callable[[IndexContent], Mapping[str, bytes]]
"""Returns the bytes of files by their names: ``NAME`` in the output, or ``PROJECT/NAME`` beside a project's pages.

Those of a project are written before its page, which may link to them, those of the output after all pages. Names of
pages and of distributions are not theirs to give. Makers are asked again only when the content has changed, or when
they make something else of nothing; see `VersionedExtras`.
"""


@runtime_checkable
class VersionedExtras(Protocol):
    """A maker that tells which code it is, as other code may make the same of nothing."""

    version: bytes
    """What differs wherever it may make something else of the same content."""

    def __call__(self, content: IndexContent, /) -> Mapping[str, bytes]:
        """Return the files."""
        ...


NextExtras = Callable[[bytes], Extras]
"""Returns what makes such a file, given the one that is there; empty for none."""


def no_extras(_: IndexContent) -> Mapping[str, bytes]:
    """Return no files."""
    return {}


def check_extras(output: Path, names: Iterable[str], known: Collection[str]) -> None:
    """Raise `InputError` for a file that no run has written where one of the ``names`` has to go; all of them."""
    remedy = "Give another --output, or remove it."
    raise_all(
        str(output),
        [
            InputError(output / name, "a file that this command has not written", remedy=remedy)
            for name in sorted(names)
            if name not in known and os.path.lexists(output / name) and not _is_page(output / name)
        ],
    )


def _is_page(path: Path) -> bool:
    """Return whether a file is a page of an index whose notes are gone."""
    with suppress(OSError):
        return GENERATOR.encode() in read_regular(path)
    return False


def changed_extras(output: Path, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return those of the files that don't stand there already."""
    changed = {}
    for name, data in files.items():
        with suppress(OSError):
            if read_regular(output / name) == data:
                continue
        changed[name] = data
    return changed


def note_extras(maker: str, made: Mapping[str, bytes], families: Mapping[str, IndexContent]) -> KnownExtras:
    """Return what to know of files that were ``made`` by makers of this digest."""
    digests = {name: make_digest(data) for name, data in made.items()}
    return KnownExtras(maker, digests, digest_families(families))


def digest_families(families: Mapping[str, IndexContent]) -> str:
    """Return a digest that is equal while the indexes of families list the same; empty for none."""
    listed = [(name, one.projects, one.yanked) for name, one in families.items()]
    return make_digest(msgspec.msgpack.encode(listed)) if listed else ""


def read_made(output: Path, noted: KnownExtras, maker: str) -> dict[str, bytes] | None:
    """Return the files that makers of this digest have made, if all of them stand as they were written."""
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
    """Return the digest of what makers make of nothing, and of which code they are."""
    nothing = sorted(extras(IndexContent({}, {}, {}, family)).items())
    version = extras.version if isinstance(extras, VersionedExtras) else b""
    return make_digest(msgspec.msgpack.encode([version, *nothing]))


def write_extras(output: Path, files: Mapping[str, bytes], noted: Mapping[str, str] | None = None) -> list[str]:
    """Write files, each as a whole, and return the paths of those that had other bytes than the ``noted`` digests say.

    Somebody has edited these. Raises `WorkError` when the output can't be written.
    """
    replaced = {name: write_changed(output / name, data) for name, data in files.items()}
    known = noted or {}
    return [
        str(output / name)
        for name, data in replaced.items()
        if data is not None and make_digest(data) != known.get(name, make_digest(data))
    ]


def remove_stale_extras(output: Path, known: Iterable[str], wanted: Collection[str]) -> None:
    """Remove what an earlier run has written and this one has not. Raises `WorkError` when that can't be done."""
    for name in known:
        path = output / name
        # A folder of that name is none that an earlier run has written as a file.
        if name in wanted or not _is_extra(name) or path.parent.is_symlink() or path.is_dir():
            continue
        try:
            path.unlink(missing_ok=True)
        except OSError as e:
            raise WorkError(path, f"can't be removed ({e.strerror})", remedy="Check its permissions.") from e
        if "/" in name:
            with suppress(OSError):  # a project that stands
                path.parent.rmdir()


def _is_extra(name: str) -> bool:
    """Return whether a noted name is one that such a file can have: somebody may have edited the notes."""
    parts = name.split("/")
    return len(parts) <= 2 and set(PAGES).isdisjoint(parts) and all(map(is_file_name, parts))
