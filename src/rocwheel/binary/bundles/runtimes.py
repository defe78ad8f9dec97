"""Reads ``runtimes.toml``, which lists the device code that each release of ROCm's HIP runtime reads.

The table lists the kinds of bundle entries, the versions of compressed bundles and code objects, generic targets, and
kpack archives. It also lists the names of the runtimes that libraries need, and the packages with a faulty runtime.
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
    """The kinds of code for generic targets that a release uses, if the generic target covers the GPU."""

    NONE = "none"
    ANY = "any"
    FIRST = "first"
    """Any code. In a plain bundle, the first match is used, whether it is generic or for the GPU itself."""
    SAME_FEATURES = "same-features"
    """Only code for a generic target that has every feature of the GPU."""


class Archives(str, Enum):
    """The code in kpack archives that a release uses."""

    NONE = "none"
    FIRST = "first"
    """Only code in the first archive that lists one of the targets; all GPUs get the code for that target."""
    ALL = "all"


class Lacking(str, Enum):
    """The GPUs of a machine that get no code from a library's bundle because the bundle has no code for another GPU."""

    ALL = "all"
    LATER = "later"
    """The GPUs after the first GPU without code."""


class HipRelease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The device code that ROCm releases from ``since`` to ``last`` read; ``last`` is empty for the current range."""

    since: str
    kinds: tuple[str, ...]
    compressed: tuple[int, ...]
    code_objects: tuple[int, ...]
    generics: Generics
    archives: Archives
    lacking: Lacking
    evidence: str
    last: str = ""
    without_generics: tuple[str, ...] = ()
    """GPUs for which the release doesn't look up generic code."""


class HipRuntime(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A HIP runtime that libraries need by SONAME, with its first and last ROCm release.

    For the current runtime, ``last`` is empty.
    """

    soname: str
    first: str
    last: str = ""
    dll: str = ""
    """The name of the DLL on Windows, or an empty string if there was no Windows release."""

    def reads(self, version: int) -> bool:
        """Return whether any release of this runtime reads compressed bundles of ``version``."""
        since = first_reader(version)
        return bool(since) and (not self.last or Version(since) <= Version(self.last))

    def is_of(self, release: HipRelease) -> bool:
        """Return whether any release of this runtime is in the range of ``release``."""
        return _overlap(self.first, self.last, release.since, release.last)


class RuntimeBuild(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Packages whose runtime reads compressed bundles that AMD's own build of the same release doesn't read."""

    packages: str
    compressed: tuple[int, ...]
    evidence: str


class RuntimeFault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fault that packaged runtimes show when they load valid files, and the HIP releases of those packages."""

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
    """Return the rows of the table, oldest first."""
    return _table().release


def release_of(rocm: str, *, source: str = "ROCm version") -> HipRelease:
    """Return the row for a ROCm release.

    Raises `InputError` about ``source`` if the release is invalid or older than the table.
    """
    version, oldest = parse_rocm(rocm, source=source), releases()[0].since
    rows = [row for row in releases() if Version(row.since) <= version]
    if not rows:
        raise InputError(source, f"{rocm!r}", expected=f"{oldest} or later")
    return rows[-1]


def known_release(rocm: str) -> str:
    """Return the newest known release up to ``rocm``, as ``major.minor``, or an empty string if all are later."""
    asked = series_of(rocm)
    return ".".join(map(str, max((min(asked, last) for first, last in _known_spans() if first <= asked), default=())))


def next_release(rocm: str) -> str:
    """Return the first known release after ``rocm``, as ``major.minor``, or an empty string if no release is later."""
    major, minor = asked = series_of(rocm)
    later = (max(first, (major, minor + 1)) for first, last in _known_spans() if last > asked)
    return ".".join(map(str, min(later, default=())))


def _known_spans() -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the first and last release of each range of known releases."""
    spans = (span.split("-") for span in _table().known)
    return [(series_of(first), series_of(last)) for first, last in spans]


def series_of(rocm: str) -> tuple[int, int]:
    """Return the major and minor number of a release."""
    major, minor, *_ = (*parse_rocm(rocm).release, 0)
    return major, minor


def last_stopping_release() -> str:
    """Return the last release that stops searching at the first archive that lists one of the GPUs' targets."""
    return next(row.last for row in reversed(releases()) if row.archives is Archives.FIRST)


def first_with_archives() -> str:
    """Return the first release that reads kpack archives."""
    return next(row.since for row in releases() if row.archives is not Archives.NONE)


def find_runtime(needed: Iterable[str]) -> HipRuntime | None:
    """Return the HIP runtime among the SONAMEs or DLLs that a library needs, or `None` if it needs no known runtime."""
    names = {name.lower() for name in needed if name}
    return next((runtime for runtime in _table().runtime if {runtime.soname, runtime.dll} & names), None)


def find_faults(first: str = "", last: str = "") -> tuple[RuntimeFault, ...]:
    """Return the faults of packages with a HIP release from ``first`` to ``last``; an empty string means no limit."""
    return tuple(fault for fault in _table().fault if _overlap(first or "0", last, fault.first, fault.last))


def _overlap(first: str, last: str, other_first: str, other_last: str) -> bool:
    """Return whether two ranges of releases overlap; a range whose last release is empty has no end.

    A last release of two numbers, such as 6.4, includes every release that begins with these numbers.
    """
    return _starts_within(first, other_last) and _starts_within(other_first, last)


def _starts_within(first: str, last: str) -> bool:
    return not last or Version(first).release[:2] <= Version(last).release[:2]


def first_reader(version: int) -> str:
    """Return the first ROCm release that loads bundles with header ``version``, or an empty string."""
    return next((row.since for row in releases() if version in row.compressed), "")


def other_readers(version: int) -> str:
    """Return the packages of earlier releases that also load bundles with header ``version``, or an empty string."""
    return ", ".join(build.packages for build in _table().build if version in build.compressed)


def is_read_by(version: int, rocm: str) -> bool:
    """Return whether ROCm ``rocm`` and later read bundles with header ``version``.

    If ``rocm`` is empty, return whether any release reads such bundles.
    """
    since = first_reader(version)
    return bool(since) and (not rocm or parse_rocm(rocm) >= Version(since))


def parse_rocm(text: str, *, source: str = "ROCm version") -> Version:
    """Parse a ROCm release's version; raise `InputError` about ``source`` for any other text."""
    try:
        return Version(text)
    except ValueError as e:
        raise InputError(source, f"{text!r}", expected="a version such as 6.4") from e
