"""Which archives of a store a build needs: those of the asked targets and components, each artifact once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.model.names import ARCHIVE_SUFFIXES, GENERIC, ArtifactName
from rocwheel.core.errors import InputError
from rocwheel.core.messages import first_of
from rocwheel.core.workers import raise_all
from rocwheel.stores.store import StoredFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = ["PACKAGED_COMPONENTS", "Archive", "Wanted", "choose_archives", "find_archives"]

PACKAGED_COMPONENTS = ("lib", "run", "dev", "dbg", "doc")
"""What packages are made of; tests of the SDK are in none."""
_NAMED = 12
"""What a message names of all targets or components of a store."""


class Archive(msgspec.Struct, frozen=True):
    """An artifact archive in a store."""

    name: ArtifactName
    stored: StoredFile


class Wanted(msgspec.Struct, frozen=True):
    """What to take of the archives of a store; an empty tuple means all of that kind."""

    targets: tuple[str, ...] = ()
    """GPU targets, in the words of messages."""
    components: tuple[str, ...] = PACKAGED_COMPONENTS
    names: tuple[str, ...] = ()
    """Names of artifacts, such as ``blas``."""


def find_archives(files: Iterable[StoredFile], place: str) -> tuple[Archive, ...]:
    """Return the artifact archives that lie in a store itself, not in folders below, in the order of their names.

    Of an artifact in several formats, that is taken which unpacks fastest. Raises `InputError` for a ``place`` that
    has none.
    """
    found: dict[ArtifactName, Archive] = {}
    for stored in files:
        for suffix in reversed(ARCHIVE_SUFFIXES):
            name = _artifact_name(stored.name, suffix)
            if name and (suffix == ARCHIVE_SUFFIXES[-1] or name not in found):
                found[name] = Archive(name, stored)
    if not found:
        expected = f"archives named {{name}}_{{component}}_{{target}}{' or '.join(ARCHIVE_SUFFIXES)}"
        raise InputError(place, "holds no artifact archives", expected=expected, remedy="Is it the right folder?")
    return tuple(found[name] for name in sorted(found))


def choose_archives(
    archives: Sequence[Archive], wanted: Wanted, serving: Mapping[str, Callable[[str], bool]], place: str
) -> tuple[Archive, ...]:
    """Return those archives that are wanted.

    ``serving`` has for each wanted target whether what is labelled with another one serves it. Raises `InputError`
    for each name, component and target that no archive at ``place`` has.
    """
    raise_all(place, list(_absences(archives, wanted, serving, place)))
    chosen = [archive for archive in archives if _is_wanted(archive.name, wanted, serving)]
    if not chosen:
        remedy = "Ask for other components or targets; `rocwheel artifacts fetch URL --dry-run` lists what there is."
        raise InputError(place, "no archive has all that is asked for", remedy=remedy)
    return tuple(chosen)


def _artifact_name(file_name: str, suffix: str) -> ArtifactName | None:
    if not file_name.endswith(suffix):
        return None
    try:
        return ArtifactName.parse(file_name.removesuffix(suffix))
    except InputError:
        return None


def _is_wanted(name: ArtifactName, wanted: Wanted, serving: Mapping[str, Callable[[str], bool]]) -> bool:
    is_for_target = not wanted.targets or any(serving[target](name.target) for target in wanted.targets)
    is_of_kind = not wanted.components or name.component in wanted.components
    return is_for_target and is_of_kind and (not wanted.names or name.name in wanted.names)


def _absences(
    archives: Sequence[Archive], wanted: Wanted, serving: Mapping[str, Callable[[str], bool]], place: str
) -> Iterator[InputError]:
    names = {archive.name.name for archive in archives}
    components = {archive.name.component for archive in archives}
    targets = {archive.name.target for archive in archives} - {GENERIC}
    for name in wanted.names:
        if name not in names:
            yield _absence(place, f"has no artifact {name!r}", names)
    if wanted.components != PACKAGED_COMPONENTS:
        for component in wanted.components:
            if component not in components:
                yield _absence(place, f"has no artifact of the component {component!r}", components)
    for target in wanted.targets if targets else ():
        if not any(serving[target](label) for label in targets):
            yield _absence(place, f"has no artifact that serves {target}", targets)


def _absence(place: str, found: str, known: Iterable[str]) -> InputError:
    return InputError(place, found, remedy=f"There are {first_of(sorted(known), _NAMED)}.")
