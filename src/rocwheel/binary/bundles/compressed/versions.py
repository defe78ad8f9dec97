"""Which ROCm reads which version of compressed bundles, from ``versions.toml``."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec
from packaging.version import Version

from rocwheel.foundation.errors import InputError
from rocwheel.foundation.messages.counting import count
from rocwheel.foundation.parsing.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["BundleReader", "HipRuntime", "choose_version", "find_runtime", "is_read_by", "parse_rocm", "reader_of"]

_VERSION_2_LIMIT = 1 << 32


class BundleReader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From which ROCm release on a header version is read, and how that is known; empty when no release does."""

    version: int
    evidence: str
    since: str = ""


class HipRuntime(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A HIP runtime that libraries need by SONAME, and its first and last ROCm release; no last one yet if empty."""

    soname: str
    first: str
    last: str = ""
    dll: str = ""
    """What it is called on Windows; empty where it was not released there."""

    def reads(self, version: int) -> bool:
        """Return whether some release of it reads compressed bundles of ``version``."""
        since = reader_of(version).since
        return bool(since) and (not self.last or Version(since) <= Version(self.last))


class _Table(msgspec.Struct, frozen=True):
    reader: tuple[BundleReader, ...]
    runtime: tuple[HipRuntime, ...]


@cache
def _table() -> _Table:
    return read_table("rocwheel.binary.bundles.compressed", "versions.toml", _Table)


def _readers() -> dict[int, BundleReader]:
    return {row.version: row for row in _table().reader}


def find_runtime(needed: Iterable[str]) -> HipRuntime | None:
    """Return the HIP runtime among the SONAMEs or DLLs that a library needs; none for none of them, or a later one."""
    names = {name.lower() for name in needed if name}
    return next((runtime for runtime in _table().runtime if {runtime.soname, runtime.dll} & names), None)


def reader_of(version: int) -> BundleReader:
    """Return who reads compressed bundles of ``version`` 1, 2 or 3."""
    return _readers()[version]


def choose_version(raw_size: int, *, rocm: str = "", wanted: int | None = None, source: str) -> int:
    """Return the header version for a plain bundle of ``raw_size`` bytes: the one that the most releases read.

    ``rocm`` is the oldest ROCm that has to read it, ``wanted`` a version to insist on. Raises `InputError`, led by
    ``source``, when that ROCm doesn't read the version, or when the version can't hold the size.
    """
    least = 2 if raw_size < _VERSION_2_LIMIT else 3
    version = least if wanted is None else wanted
    if version not in {2, 3}:
        raise InputError(source, f"header version {version}", expected="2 or 3; ROCm doesn't read version 1")
    if version < least:
        raise InputError(
            source, f"a bundle of {count(raw_size, 'byte')}", expected="less than 4 GiB for header version 2"
        )
    if not is_read_by(version, rocm):
        since = reader_of(version).since
        raise InputError(
            source,
            f"compressed bundles of version {version}, which ROCm {rocm} doesn't read",
            expected=f"ROCm {since} or later",
            remedy="Leave the device code uncompressed for that release.",
        )
    return version


def is_read_by(version: int, rocm: str) -> bool:
    """Return whether ROCm ``rocm`` and later read header ``version``; any release at all, when it is empty."""
    since = reader_of(version).since
    return bool(since) and (not rocm or parse_rocm(rocm) >= Version(since))


def parse_rocm(text: str, *, source: str = "ROCm version") -> Version:
    """Parse the version of a ROCm release; raises `InputError`, led by ``source``, for anything else."""
    try:
        return Version(text)
    except ValueError as e:
        raise InputError(source, f"{text!r}", expected="one such as 6.4") from e
