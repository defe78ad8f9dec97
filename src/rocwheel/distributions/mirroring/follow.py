"""The requirements of a mirror's files, followed through the same indexes as an installer would."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from rocwheel.core.errors import InputError
from rocwheel.core.workers import raise_all
from rocwheel.distributions.formats.requirements.markers import marker_holds_at
from rocwheel.distributions.formats.requirements.requirements import is_refusing
from rocwheel.distributions.index_reading.trust import ListedFile
from rocwheel.distributions.mirroring.choose import is_devel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from packaging.requirements import Requirement

    from rocwheel.distributions.mirroring.choose import Choice
    from rocwheel.distributions.mirroring.machines import Machines
    from rocwheel.distributions.mirroring.needs import Needs

__all__ = ["Followed", "follow"]

_DEVICE = "device"
"""The extra of the selector that stands for one of ``device-gfx...``, by the GPUs of the machine."""


class Followed(msgspec.Struct, frozen=True):
    """What the wanted files require."""

    files: tuple[ListedFile, ...]
    required: tuple[str, ...]
    """Normalised names of all that is required, that for other GPUs included."""
    absent: tuple[str, ...]
    """Requirements that no file of the indexes meets."""
    unusable: dict[str, tuple[str, ...]]
    """Names of files that require, without an extra, packages for other GPUs, and the names of these."""


def follow(
    roots: Sequence[ListedFile],
    choice: Choice,
    serves: Callable[[str], bool],
    offered: Callable[[str], Sequence[ListedFile]],
    read: Callable[[ListedFile], Needs],
) -> Followed:
    """Return what ``roots`` require, directly or through others, for the machines of ``choice``.

    ``offered`` returns the files of a project that these can install, and ``read`` what a file requires. ``serves`` is
    as for `choose_projects`. Raises `InputError` for an extra that is asked for and that a project lacks;
    `ProblemsError` for several.
    """
    following = _Following(choice, serves, offered, read)
    for file in roots:
        following.take_root(file)
    following.finish()
    raise_all("--project", list(following.missing_extras(roots)))
    return Followed(
        tuple(following.files.values()),
        tuple(following.required),
        tuple(sorted(following.absent)),
        {name: tuple(sorted(needed)) for name, needed in sorted(following.unusable.items())},
    )


class _Following:
    """What has been found so far, and what is still to be looked at."""

    def __init__(
        self,
        choice: Choice,
        serves: Callable[[str], bool],
        offered: Callable[[str], Sequence[ListedFile]],
        read: Callable[[ListedFile], Needs],
    ) -> None:
        self._choice = choice
        self._serves = serves
        self._offered = offered
        self._read = read
        self._places = choice.machines.places
        self._waiting: list[tuple[ListedFile, str]] = []
        self._done: set[tuple[str, str]] = set()
        self._specifiers: defaultdict[str, dict[str, SpecifierSet]] = defaultdict(dict)
        self.files: dict[str, ListedFile] = {}
        self.required: dict[str, None] = {}
        self.absent: set[str] = set()
        self.unusable: defaultdict[str, set[str]] = defaultdict(set)

    def take_root(self, file: ListedFile) -> None:
        """Have the requirements of a wanted file looked at, with the extras that are asked for, or all."""
        self._waiting += [(file, extra) for extra in ("", *self._root_extras(file))]

    def _root_extras(self, file: ListedFile) -> Iterator[str]:
        provided = self._read(file).extras
        asked = self._choice.extras.get(file.project)
        for extra in provided:
            is_for_gpu = extra.startswith(f"{_DEVICE}-gfx") and self._serves(extra)
            if asked is None:
                if self._serves(extra) and (self._choice.devel or not is_devel(extra)):
                    yield extra
            elif extra in asked or (_DEVICE in asked and is_for_gpu):
                yield extra

    def missing_extras(self, roots: Sequence[ListedFile]) -> Iterator[InputError]:
        """Yield an error for each extra that is asked for and that no file of its project has."""
        for project, asked in self._choice.extras.items():
            files = [file for file in roots if file.project == project]
            provided = {extra for file in files for extra in self._read(file).extras}
            for extra in asked if files else ():
                if extra not in provided and not (extra == _DEVICE and _has_device(provided)):
                    expected = f"one of {', '.join(sorted(provided))}" if provided else "none"
                    yield InputError("--project", f"{project} has no extra {extra}", expected=expected)

    def finish(self) -> None:
        """Look at all that is waiting, and at what that requires."""
        while self._waiting:
            file, extra = self._waiting.pop()
            if (file.filename, extra) not in self._done:
                self._done.add((file.filename, extra))
                for requirement in self._read(file).requires:
                    if self._holds(requirement, extra):
                        self._take(requirement, file, extra)

    def _holds(self, requirement: Requirement, extra: str) -> bool:
        if is_refusing(requirement):
            return False
        return requirement.marker is None or marker_holds_at(str(requirement.marker), extra, self._places)

    def _take(self, requirement: Requirement, by: ListedFile, extra: str) -> None:
        name = canonicalize_name(requirement.name)
        self.required[name] = None
        if not self._serves(name):
            if not extra:
                self.unusable[by.filename].add(name)
            return
        files = self._pick(name, requirement.specifier) if requirement.url is None else []
        if not files:
            self.absent.add(f"{name}{requirement.specifier}")
        for file in files:
            self.files[file.filename] = file
            extras = map(canonicalize_name, requirement.extras)
            self._waiting += [(file, each) for each in ("", *extras)]

    def _pick(self, name: str, specifier: SpecifierSet) -> list[ListedFile]:
        """Return the newest files that meet a requirement, and those that meet all of the project's so far."""
        known = self._specifiers[name]
        known[str(specifier)] = specifier
        joined = SpecifierSet(",".join(filter(None, known)))
        offered = self._offered(name)
        picked = [*_newest(offered, specifier, self._choice.machines), *_newest(offered, joined, self._choice.machines)]
        return list({file.filename: file for file in picked}.values())


def _has_device(extras: Iterable[str]) -> bool:
    return any(extra.startswith(f"{_DEVICE}-gfx") for extra in extras)


def _newest(files: Sequence[ListedFile], specifier: SpecifierSet, machines: Machines) -> Iterator[ListedFile]:
    """Yield, for each machine, the files of the version that an installer takes: the newest, a yanked one if pinned."""
    for machine in machines.each():
        suiting = [file for file in files if machine.fits(file)]
        versions: Mapping[Version, list[ListedFile]] = _by_version(suiting)
        good = [version for version, group in versions.items() if any(file.yanked is None for file in group)]
        found = list(specifier.filter(good))
        if not found and any(one.operator in {"==", "==="} for one in specifier):
            found = list(specifier.filter(versions, prereleases=True))
        yield from versions[max(found)] if found else ()


def _by_version(files: Iterable[ListedFile]) -> Mapping[Version, list[ListedFile]]:
    found: defaultdict[Version, list[ListedFile]] = defaultdict(list)
    for file in files:
        found[Version(file.version)].append(file)
    return found
