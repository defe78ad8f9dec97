"""What each release of ROCm's HIP runtime reads of device code, from ``runtimes.toml``.

The kinds of bundle entries, the versions of compressed bundles and of code objects, generic targets, and kpack
archives; which runtime a library needs by name; which packages of a runtime have a fault.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

import msgspec
from packaging.version import Version

from rocwheel.core.decoding import read_table
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable


class Generics(str, Enum):
    """Which code for a generic target that covers a GPU a release finds."""

    NONE = "none"
    ANY = "any"
    SAME_FEATURES = "same-features"
    """That for a target which has each feature that the GPU has."""


class Archives(str, Enum):
    """Which code in kpack archives a release finds."""

    NONE = "none"
    FIRST = "first"
    """It looks into no further archive than the first that lists a target, and hands the code for one GPU to all."""
    ALL = "all"


class HipRelease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the releases of ROCm from ``since`` to ``last`` read; no last one yet if empty."""

    since: str
    kinds: tuple[str, ...]
    compressed: tuple[int, ...]
    code_objects: tuple[int, ...]
    generics: Generics
    archives: Archives
    evidence: str
    last: str = ""


class HipRuntime(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A HIP runtime that libraries need by SONAME, and its first and last ROCm release; no last one yet if empty."""

    soname: str
    first: str
    last: str = ""
    dll: str = ""
    """What it is called on Windows; empty where it was not released there."""

    def reads(self, version: int) -> bool:
        """Return whether some release of it reads compressed bundles of ``version``."""
        since = first_reader(version)
        return bool(since) and (not self.last or Version(since) <= Version(self.last))

    def is_of(self, release: HipRelease) -> bool:
        """Return whether some release of it is among those of ``release``."""
        return _overlap(self.first, self.last, release.since, release.last)


class RuntimeBuild(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Packages whose runtime reads compressed bundles that AMD's of the same release doesn't."""

    packages: str
    compressed: tuple[int, ...]
    evidence: str


class RuntimeFault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What packages of a runtime do wrong with sound files, and the releases of HIP that they come with."""

    packages: str
    first: str
    last: str
    text: str
    remedy: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.packages} {self.text}. {self.remedy}"


class _Table(msgspec.Struct, frozen=True):
    known: tuple[str, ...]
    release: tuple[HipRelease, ...]
    runtime: tuple[HipRuntime, ...]
    build: tuple[RuntimeBuild, ...]
    fault: tuple[RuntimeFault, ...]


@cache
def _table() -> _Table:
    return read_table("rocwheel.binary.bundles", "runtimes.toml", _Table)


def releases() -> tuple[HipRelease, ...]:
    """Return the rows of the table, the oldest first."""
    return _table().release


def release_of(rocm: str, *, source: str = "ROCm version") -> HipRelease:
    """Return the row for a ROCm release; raises `InputError`, led by ``source``, for none, or one before the table."""
    version, oldest = parse_rocm(rocm, source=source), releases()[0].since
    rows = [row for row in releases() if Version(row.since) <= version]
    if not rows:
        raise InputError(source, f"{rocm!r}", expected=f"{oldest} or later")
    return rows[-1]


def known_release(rocm: str) -> str:
    """Return the newest known release up to that of ``rocm``, as two numbers; empty where all are later."""
    asked = series_of(rocm)
    return ".".join(map(str, max((min(asked, last) for first, last in _known_spans() if first <= asked), default=())))


def next_release(rocm: str) -> str:
    """Return the first known release after that of ``rocm``, as two numbers; empty where there is none."""
    major, minor = asked = series_of(rocm)
    later = (max(first, (major, minor + 1)) for first, last in _known_spans() if last > asked)
    return ".".join(map(str, min(later, default=())))


def _known_spans() -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the first and the last release of each span of known ones."""
    spans = (span.split("-") for span in _table().known)
    return [(series_of(first), series_of(last)) for first, last in spans]


def series_of(rocm: str) -> tuple[int, int]:
    """Return the first two numbers of a release."""
    major, minor, *_ = (*parse_rocm(rocm).release, 0)
    return major, minor


def last_stopping_release() -> str:
    """Return the last release that looks into no further archive than the first that lists a target."""
    return next(row.last for row in reversed(releases()) if row.archives is Archives.FIRST)


def first_with_archives() -> str:
    """Return the first release that reads kpack archives."""
    return next(row.since for row in releases() if row.archives is not Archives.NONE)


def find_runtime(needed: Iterable[str]) -> HipRuntime | None:
    """Return the HIP runtime among the SONAMEs or DLLs that a library needs; none for none of them, or a later one."""
    names = {name.lower() for name in needed if name}
    return next((runtime for runtime in _table().runtime if {runtime.soname, runtime.dll} & names), None)


def find_faults(first: str = "", last: str = "") -> tuple[RuntimeFault, ...]:
    """Return the faults of packages that come with a release of HIP from ``first`` to ``last``; open ends are empty."""
    return tuple(fault for fault in _table().fault if _overlap(first or "0", last, fault.first, fault.last))


def _overlap(first: str, last: str, other_first: str, other_last: str) -> bool:
    """Return whether two spans of releases, each open at the end if its last one is empty, have one in common.

    A last release of two numbers, 6.4, includes all that begin with it.
    """
    return _starts_within(first, other_last) and _starts_within(other_first, last)


def _starts_within(first: str, last: str) -> bool:
    return not last or Version(first).release[:2] <= Version(last).release[:2]


def first_reader(version: int) -> str:
    """Return the first ROCm release that loads compressed bundles of header ``version``; empty where none does."""
    return next((row.since for row in releases() if version in row.compressed), "")


def other_readers(version: int) -> str:
    """Return which packages of earlier releases load bundles of header ``version``, too; empty if none do."""
    return ", ".join(build.packages for build in _table().build if version in build.compressed)


def is_read_by(version: int, rocm: str) -> bool:
    """Return whether ROCm ``rocm`` and later read header ``version``; any release at all, when it is empty."""
    since = first_reader(version)
    return bool(since) and (not rocm or parse_rocm(rocm) >= Version(since))


def parse_rocm(text: str, *, source: str = "ROCm version") -> Version:
    """Parse the version of a ROCm release; raises `InputError`, led by ``source``, for anything else."""
    try:
        return Version(text)
    except ValueError as e:
        raise InputError(source, f"{text!r}", expected="one such as 6.4") from e
