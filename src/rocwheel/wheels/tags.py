"""Parses compatibility tags: a wheel's Python versions, systems, and machines (:pep:`425`, :pep:`600`, :pep:`656`)."""

from __future__ import annotations

import difflib
import itertools
import re
from typing import TYPE_CHECKING, Literal

import msgspec

from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.wheels.platform_floor import PlatformFloor


_PLATFORM = re.compile(r"\w+(\.\w+)*", re.ASCII)
_Platform = Literal["any", "glibc", "musl", "macos", "windows", "other"]
_GLIBC_LINUX = re.compile(r"(?:linux|manylinux(?:(?P<old>\d+)|_(?P<major>\d+)_(?P<minor>\d+)))_(?P<machine>\w+)")
_OTHERS: tuple[tuple[_Platform, re.Pattern[str]], ...] = (
    ("musl", re.compile(r"musllinux_\d+_\d+_(\w+)")),
    ("macos", re.compile(r"macosx_\d+_\d+_(\w+)")),
    ("windows", re.compile(r"win_(\w+)")),
)
_MACHINES = [
    "x86_64",
    "i686",
    "aarch64",
    "armv6l",
    "armv7l",
    "armv8l",
    "loongarch64",
    "ppc64",
    "ppc64le",
    "riscv64",
    "s390x",
]
_MACHINE = f"(?:{'|'.join(_MACHINES)})"
_MACOS_MACHINES = [
    "arm64",
    "x86_64",
    "universal2",
    "universal",
    "intel",
    "fat",
    "fat3",
    "fat32",
    "fat64",
    "i386",
    "ppc",
    "ppc64",
]
# Common machine names that are wrong in the tags for a system, with the correct names.
_OTHER_WORDS = {
    "linux": {"amd64": "x86_64", "arm64": "aarch64", "x64": "x86_64"},
    "win": {"win64": "win_amd64", "win_x86_64": "win_amd64", "win_x64": "win_amd64", "windows_": "win_"},
}
# Installers compare tags with their system's tags (packaging.tags), so the last alternative uses sysconfig's names.
_KNOWN = re.compile(
    "any|win32|win_(?:amd64|arm64|arm32|ia64)"
    f"|(?:linux|manylinux_2_\\d{{1,2}}|manylinux2014|musllinux_1_\\d{{1,2}})_{_MACHINE}"
    "|manylinux(?:1|2010)_(?:x86_64|i686)"
    f"|macosx_1\\d_\\d{{1,2}}_(?:{'|'.join(_MACOS_MACHINES)})|macosx_[2-9]\\d_\\d_(?:arm64|x86_64|universal2)"
    "|ios_\\d{2}_\\d_(?:arm64|x86_64)_iphone(?:os|simulator)"
    "|android_\\d{2}_(?:arm64_v8a|armeabi_v7a|x86_64|x86)"
    "|(?:aix|cygwin|dragonfly|emscripten|freebsd|haiku|mingw|netbsd|openbsd|pyodide|solaris|wasi)_\\w+",
    re.ASCII,
)
# The manylinux names from before PEP 600, each with its glibc version.
_OLD_NAMES = {"1": (2, 5), "2010": (2, 12), "2014": (2, 17)}


class PlatformTag(msgspec.Struct, frozen=True):
    """One platform tag, such as ``manylinux_2_28_x86_64``."""

    text: str
    """The tag as originally written."""
    system: _Platform
    """The tag's system; ``glibc`` and ``musl`` represent Linux with that C library."""
    machine: str = ""
    """The machine as written in the tag, such as ``x86_64`` or ``amd64``; an empty string represents any machine."""
    glibc: tuple[int, int] | None = None
    """The oldest glibc that the tag promises to support, or `None` if it has no version, as in ``linux_x86_64``."""

    @property
    def is_local(self) -> bool:
        """Whether the tag is for Linux, but doesn't specify the C library. Public indexes reject such wheels."""
        return self.system == "glibc" and self.glibc is None

    @property
    def is_linux(self) -> bool:
        """Whether the tag is for Linux, with any C library."""
        return self.system in ("glibc", "musl")


_FIXED = {"any": PlatformTag("any", "any"), "win32": PlatformTag("win32", "windows", "x86")}


def is_platform(text: str) -> bool:
    """Return whether text is valid as the platform in a wheel name: a tag, or several tags joined by dots."""
    return _PLATFORM.fullmatch(text) is not None


def is_known_platform(text: str) -> bool:
    """Return whether any installer accepts a single platform tag (:pep:`425`, :pep:`600`, :pep:`656`, :pep:`738`)."""
    return _KNOWN.fullmatch(text) is not None


def nearest_platform(text: str) -> str:
    """Return the known tag that is most similar to the text, or an empty string if no tag is similar."""
    numbers = re.findall(r"_2_(\d{1,2})(?!\d)", text) or ["28"]
    names = ["linux", *(f"manylinux_2_{number}" for number in numbers)]
    glibc = [f"{name}_{machine}" for machine in _MACHINES for name in names]
    musl = [f"musllinux_1_2_{machine}" for machine in _MACHINES]
    macos = [f"macosx_11_0_{machine}" for machine in _MACOS_MACHINES]
    known = [*glibc, *musl, *macos, "manylinux2014_x86_64", "win_amd64", "win_arm64", "win32", "any"]
    wanted = text.lower().replace("-", "_")
    others = _OTHER_WORDS["linux" if "linux" in wanted else "win"]
    for word, usual in others.items():
        wanted = wanted.replace(word, usual)
    begun = [tag for tag in known if tag.startswith(f"{wanted}_")]
    return next(iter([*begun, *difflib.get_close_matches(wanted, known, n=1, cutoff=0.7)]), "")


def parse_platforms(text: str) -> tuple[PlatformTag, ...]:
    """Return the dot-separated platform tags in a wheel name."""
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
    """Return the dot-separated tags for Python, ABI, or platform in a wheel name."""
    return tuple(text.split("."))


def expand_tags(python: str, abi: str, platform: str) -> tuple[str, ...]:
    """Return the individual tags that a wheel name's three tags represent, as listed in the wheel's WHEEL file."""
    return tuple(map("-".join, itertools.product(*map(split_tags, (python, abi, platform)))))


def lowest_glibc(platforms: Iterable[PlatformTag]) -> tuple[int, int] | None:
    """Return the oldest glibc that the tags promise to support, or `None` if no tag has a version."""
    return min((tag.glibc for tag in platforms if tag.glibc is not None), default=None)


WINDOWS_TAG = "win_amd64"
"""The platform tag of wheels for Windows on x86-64."""

_OPTION = "--platform-tag"
_EXAMPLE = "manylinux_2_28_x86_64"


def check_platform(text: str, source: str = _OPTION) -> None:
    """Raise `InputError` for text that isn't a platform tag, and for a tag that installers don't accept.

    The text may contain several tags, joined by dots. Messages mention ``source`` as the origin of the text.
    """
    if not is_platform(text):
        raise InputError(source, f"is {text!r}", expected=f"a tag such as {_EXAMPLE}, or several joined by dots")
    for tag in split_tags(text):
        if not is_known_platform(tag):
            nearest = nearest_platform(tag)
            expected = f"a tag that installers accept, such as {nearest or _EXAMPLE}"
            remedy = f"Did you mean {nearest}?" if nearest else ""
            raise InputError(source, f"is {tag!r}, which installers don't accept", expected=expected, remedy=remedy)


def check_platform_of_files(text: str, floor: PlatformFloor | None, source: str = _OPTION) -> None:
    """Raise `InputError` if a tag doesn't match the system, machine, or C library of files with this ``floor``.

    Files without machine code have no floor and match any tag. A musl tag matches files that don't need glibc.
    """
    for tag in parse_platforms(text) if floor else ():
        if floor and (reason := _misfit(tag, floor)):
            raise InputError(source, f"is {tag.text!r}, but {reason}", expected=f"a tag such as {floor.tag}")


def check_platform_of_windows(text: str, source: str = _OPTION) -> None:
    """Raise `InputError` if a tag is for a system or machine other than Windows on x86-64."""
    for tag in split_tags(text):
        if tag != WINDOWS_TAG:
            raise InputError(
                source, f"is {tag!r}, but the files are for Windows on x86-64", expected=f"the tag {WINDOWS_TAG}"
            )


def _misfit(tag: PlatformTag, floor: PlatformFloor) -> str:
    """Return why a tag doesn't match the files, or an empty string if it matches."""
    if not tag.is_linux or tag.machine != floor.architecture:
        return f"the files are for Linux on {floor.architecture}"
    return f"{floor.needs_glibc} needs glibc" if tag.system == "musl" and floor.needs_glibc else ""
