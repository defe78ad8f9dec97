"""Reading of tags: for which Pythons, systems and machines a wheel is (:pep:`425`, :pep:`600`, :pep:`656`)."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "PlatformTag",
    "expand_tags",
    "is_platform",
    "lowest_glibc",
    "parse_platforms",
    "split_tags",
]

_PLATFORM = re.compile(r"\w+(\.\w+)*", re.ASCII)
_Platform = Literal["any", "glibc", "musl", "macos", "windows", "other"]
_GLIBC_LINUX = re.compile(r"(?:linux|manylinux(?:(?P<old>\d+)|_(?P<major>\d+)_(?P<minor>\d+)))_(?P<machine>\w+)")
_OTHERS: tuple[tuple[_Platform, re.Pattern[str]], ...] = (
    ("musl", re.compile(r"musllinux_\d+_\d+_(\w+)")),
    ("macos", re.compile(r"macosx_\d+_\d+_(\w+)")),
    ("windows", re.compile(r"win_(\w+)")),
)
# The names that manylinux had before PEP 600, with the glibc of each.
_OLD_NAMES = {"1": (2, 5), "2010": (2, 12), "2014": (2, 17)}


class PlatformTag(msgspec.Struct, frozen=True):
    """One platform tag, such as ``manylinux_2_28_x86_64``."""

    text: str
    """The tag as the wheel spells it."""
    system: _Platform
    """The system that the tag is for; ``glibc`` and ``musl`` are Linux with that C library."""
    machine: str = ""
    """The machine as the tag spells it, such as ``x86_64`` or ``amd64``; empty for any."""
    glibc: tuple[int, int] | None = None
    """The oldest glibc that the tag promises to run on; none where it names none, as ``linux_x86_64``."""

    @property
    def is_linux(self) -> bool:
        """Whether the tag is for Linux, with whichever C library."""
        return self.system in ("glibc", "musl")


_FIXED = {"any": PlatformTag("any", "any"), "win32": PlatformTag("win32", "windows", "x86")}


def is_platform(text: str) -> bool:
    """Return whether a text can stand in a wheel's name as its platform: a tag, or several joined by dots."""
    return _PLATFORM.fullmatch(text) is not None


def parse_platforms(text: str) -> tuple[PlatformTag, ...]:
    """Return the platform tags that stand in a wheel's name, joined by dots."""
    return tuple(map(_parse, split_tags(text)))


def _parse(text: str) -> PlatformTag:
    if match := _GLIBC_LINUX.fullmatch(text):
        return PlatformTag(text, "glibc", match["machine"], _glibc(match))
    for system, pattern in _OTHERS:
        if match := pattern.fullmatch(text):
            return PlatformTag(text, system, match[1])
    return _FIXED.get(text) or PlatformTag(text, "other")


def _glibc(match: re.Match[str]) -> tuple[int, int] | None:
    if match["major"]:
        return int(match["major"]), int(match["minor"])
    return _OLD_NAMES.get(match["old"])


def split_tags(text: str) -> tuple[str, ...]:
    """Return the tags for Python, ABI or platform that are joined by dots in a wheel's name."""
    return tuple(text.split("."))


def expand_tags(python: str, abi: str, platform: str) -> tuple[str, ...]:
    """Return the tags that the three of a wheel's name stand for, one by one, as its WHEEL lists them."""
    return tuple(map("-".join, itertools.product(*map(split_tags, (python, abi, platform)))))


def lowest_glibc(platforms: Iterable[PlatformTag]) -> tuple[int, int] | None:
    """Return the oldest glibc that the tags promise to run on, none when they name none."""
    return min((tag.glibc for tag in platforms if tag.glibc is not None), default=None)
