"""For which machines a mirror is: platforms and Pythons, and which files of an index these can install."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING

import msgspec
from packaging.specifiers import InvalidSpecifier
from packaging.utils import parse_wheel_filename

from rocwheel.core.errors import InputError
from rocwheel.core.workers import raise_all
from rocwheel.distributions.formats.platforms.tags import is_known_platform
from rocwheel.distributions.formats.requirements.markers import ALL_PLACES, Place, platforms_of_tag, tag_minors
from rocwheel.distributions.formats.requirements.requirements import read_specifier
from rocwheel.distributions.variants.label import without_label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.specifiers import SpecifierSet
    from packaging.tags import Tag

    from rocwheel.distributions.index_reading.trust import ListedFile

__all__ = ["Machines"]

_PYTHON = re.compile(r"3\.(\d{1,3})", re.ASCII)
_PATCH = re.compile(r"v?\d+\.\d+\.(\d{1,9})", re.ASCII)


class Machines(msgspec.Struct, frozen=True):
    """The machines that will install from a mirror."""

    platforms: tuple[str, ...] = ()
    """Platform tags such as ``linux_x86_64`` or ``win_amd64``, for any C library and version; empty for all."""
    pythons: tuple[str, ...] = ()
    """Versions such as ``3.12``; empty for all."""

    def check(self) -> None:
        """Raise `InputError` for a word that is no platform or no Python; `ProblemsError` for several."""
        problems = [
            InputError("--platform", f"is {word!r}", expected="a platform such as linux_x86_64 or win_amd64")
            for word in self.platforms
            if word == "any" or not is_known_platform(word)
        ]
        problems += [
            InputError("--python-version", f"is {word!r}", expected="a version of Python 3 such as 3.12")
            for word in self.pythons
            if not _PYTHON.fullmatch(word)
        ]
        raise_all("the machines", problems)

    @property
    def places(self) -> tuple[Place, ...]:
        """Where markers of requirements are judged."""
        systems = self._systems or tuple(dict.fromkeys(platform for _, platform in ALL_PLACES))
        return tuple(product(self._minors or tuple(dict.fromkeys(minor for minor, _ in ALL_PLACES)), systems))

    @property
    def shown(self) -> str:
        """The words for messages, with a blank before them; empty where there are none."""
        return f" for {', '.join((*self.platforms, *self.pythons))}" if self.platforms or self.pythons else ""

    def each(self) -> Iterator[Machines]:
        """Yield the machines of each platform and Python apart: an installer chooses for one at a time."""
        for platform, python in product(self.platforms or ("",), self.pythons or ("",)):
            yield Machines((platform,) if platform else (), (python,) if python else ())

    def fits(self, file: ListedFile) -> bool:
        """Return whether one of the machines can install a file, by its name and the Pythons that it says it is for."""
        if self._minors and not any(_allows(file.requires_python, minor) for minor in self._minors):
            return False
        if not file.filename.endswith(".whl"):
            return True
        return any(self._fits_tag(tag) for tag in parse_wheel_filename(without_label(file.filename))[3])

    @property
    def _minors(self) -> tuple[int, ...]:
        return tuple(int(word.partition(".")[2]) for word in self.pythons)

    @property
    def _systems(self) -> tuple[tuple[str, str], ...]:
        return tuple(dict.fromkeys(system for word in self.platforms for system in platforms_of_tag(word)))

    def _fits_tag(self, tag: Tag) -> bool:
        is_python = not self._minors or (tag.interpreter[2:3] != "2" and set(self._minors) & {*tag_minors(tag)})
        is_system = not self._systems or tag.platform == "any" or set(self._systems) & {*platforms_of_tag(tag.platform)}
        return bool(is_python and is_system)


def _allows(requires_python: str | None, minor: int) -> bool:
    """Return whether any release of a version of Python is allowed; what is malformed forbids none."""
    try:
        specifier = read_specifier(requires_python or "")
    except InvalidSpecifier:
        return True
    return any(specifier.contains(f"3.{minor}.{patch}") for patch in _patches(specifier))


def _patches(specifiers: SpecifierSet) -> set[int]:
    """Return third numbers of versions, of which one is allowed if any is.

    What a specifier allows begins and ends at those it names: these and those next to them are enough, with the first
    of all and one behind all.
    """
    texts = (specifier.version.removesuffix(".*") for specifier in specifiers)
    named = {int(match[1]) for text in texts if (match := _PATCH.match(text))}
    near = {patch + step for patch in named for step in (-1, 0, 1) if patch + step >= 0}
    return {0, *near, max(named, default=0) + 2}
