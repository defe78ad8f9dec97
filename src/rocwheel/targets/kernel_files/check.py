"""Whether a kernel file contains code for the GPU that its name says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.code_objects import processor_of
from rocwheel.binary.kernel_databases import (
    TABLE_SUFFIXES,
    database_processors,
    image_processors,
    is_database,
    is_image,
    table_processors,
)
from rocwheel.binary.kind import is_kpack
from rocwheel.binary.kpack.archive import read_archive
from rocwheel.core.errors import InputError
from rocwheel.targets.catalog.catalog import Generic, load_catalog
from rocwheel.targets.kernel_files.classify import classify_path, find_family

if TYPE_CHECKING:
    from rocwheel.core.reading import Data

__all__ = ["MismatchError", "check_kernel_file", "processors_in"]


class MismatchError(InputError):
    """A kernel file that is for one target by its name, and for others by its content."""

    def __init__(self, source: str, named: str, contained: tuple[str, ...]) -> None:
        self.named = named
        self.contained = contained
        super().__init__(
            source,
            f"is for {named} by its name, and contains code for {', '.join(contained)}",
            expected="code for what the name says",
            remedy="Rename it, or build it again.",
        )


def check_kernel_file(data: Data, path: str, *, name: str = "") -> tuple[InputError, ...]:
    """Return what is wrong with a kernel file at a relative ``path``, which messages call ``name``.

    A file of another kind, without code, or whose targets can't be known has no problems. Code for a generic processor
    suits the name of each of its members. A file that can't be read is a problem, too.
    """
    source = name or path
    found = classify_path(path)
    if found is None:
        return ()
    try:
        if found.rule == "kpack":
            read_archive(data, name=source)  # whatever it begins with
        contained = processors_in(data, name=source)
    except InputError as e:
        return (e,)
    suiting = _suiting(found.target)
    others = tuple(processor for processor in contained if processor not in suiting)
    if path.endswith(TABLE_SUFFIXES):
        asked = table_processors(data, path)
        # A table may have rows for other hardware, too.
        others = () if _is_served(asked, suiting, found.target) else asked
    return (MismatchError(source, found.target, others),) if suiting and others else ()


def _is_served(asked: tuple[str, ...], suiting: frozenset[str], target: str) -> bool:
    """Return whether a table that asks for these processors serves ``target``, or the hardware that it stands for."""
    row = load_catalog().processors.get(target)
    meant = {*suiting, target.removesuffix("-strict"), *(row.members if isinstance(row, Generic) else ())}
    return not asked or not meant.isdisjoint(asked)


def processors_in(data: Data, *, name: str) -> tuple[str, ...]:
    """Return the processors that a file has code for, sorted; none for text, tables, and processors not known.

    Of databases with many kernels, a part is looked at (see `database_processors`). Raises `InputError` for damaged
    files, and `WorkError` where a database has no room.
    """
    if is_database(data):
        return database_processors(data, name=name)
    if is_image(data):
        return image_processors(data, name=name)
    if is_kpack(data):
        return tuple(sorted({processor_of(target) for target in read_archive(data, name=name).targets}))
    return tuple(sorted({target.processor for target in device_targets(data, name=name)}))


def _suiting(target: str) -> frozenset[str]:
    """Return the processors whose code may be in a file for ``target``; none where that is not known."""
    family = find_family(target)
    if family is None and target.removesuffix("-strict") not in load_catalog().processors:
        return frozenset()
    names = frozenset(family.targets if family else (target,))
    generics = (row for row in load_catalog().processors.values() if isinstance(row, Generic))
    return names | {row.name for row in generics if names & frozenset(row.members)}
