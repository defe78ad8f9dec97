"""Computes a wheel's platform tag from the symbol versions that its files require (:pep:`600`)."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.mapping import ANY_ALIGNMENT
from rocwheel.core.decoding import read_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.binary.elf.facts import Elf

_ARCHITECTURES = {62: "x86_64", 183: "aarch64", 21: "ppc64le", 243: "riscv64"}
# PEP 600 defines no tags for glibc versions older than the first version that an architecture was ever tagged for.
_OLDEST = {"x86_64": (2, 5), "aarch64": (2, 17), "ppc64le": (2, 17), "riscv64": (2, 31)}
# The glibc versions that auditwheel has policies for. After the last one, every minor version is a policy.
_POLICIES = ((2, 5), (2, 12), (2, 17), (2, 24), (2, 26), (2, 27), (2, 28), (2, 31), (2, 34))
_GLIBC = "libc.so.6"
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)+")


class PlatformFloor(msgspec.Struct, frozen=True):
    """The oldest glibc on which a set of files runs, and the file and symbol version that require it."""

    machine: int
    glibc: tuple[int, int]
    reason: str
    needs_glibc: str = ""
    """The first file that needs glibc itself; empty if the files also run with another C library, such as musl."""
    is_by_alignment: bool = False
    """Whether only the alignment of a library's segments requires this glibc, which a repair can fix."""

    @property
    def architecture(self) -> str:
        """The architecture as written in platform tags, such as ``x86_64``."""
        return _ARCHITECTURES[self.machine]

    @property
    def tag(self) -> str:
        """The platform tag, such as ``manylinux_2_28_x86_64``."""
        major, minor = self.glibc
        return f"manylinux_{major}_{minor}_{self.architecture}"


def host_machines() -> dict[int, str]:
    """Return the platform tag names of machines, keyed by ELF machine number."""
    return dict(_ARCHITECTURES)


def oldest_tag(machine: int) -> str:
    """Return the tag that every glibc-based Linux system accepts on a machine, for files that don't need glibc."""
    return PlatformFloor(machine, _OLDEST[_ARCHITECTURES[machine]], "").tag


def next_policy(glibc: tuple[int, int]) -> tuple[int, int]:
    """Return the glibc version in the strictest tag that auditwheel assigns to files that require ``glibc``."""
    return min((policy for policy in _POLICIES if policy >= glibc), default=glibc)


def platform_floor(files: Iterable[tuple[str, Elf]]) -> PlatformFloor | None:
    """Return the highest floor of all files for a known host machine, or `None`. GPU code objects are ignored."""
    hosts = [(name, elf) for name, elf in files if elf.machine in _ARCHITECTURES]
    floors = [floor for name, elf in hosts for floor in _floors(name, elf)]
    if not floors:
        return None
    highest = max(floors, key=lambda floor: (floor.glibc, floor.reason))
    needs_glibc = next((name for name, elf in hosts if _needs_glibc(elf)), "")
    return msgspec.structs.replace(highest, needs_glibc=needs_glibc)


def _needs_glibc(elf: Elf) -> bool:
    # musl's libc.so has no symbol versions, and its loader doesn't open libc.so.6.
    return _GLIBC in elf.needed or any(need.version.startswith("GLIBC_") for need in elf.version_needs)


def _floors(name: str, elf: Elf) -> list[PlatformFloor]:
    oldest = _OLDEST[_ARCHITECTURES[elf.machine]]
    known = [(need.version, _glibc_of(need.version)) for need in elf.version_needs]
    return [
        PlatformFloor(elf.machine, oldest, f"{name}: oldest tag for its architecture"),
        *(PlatformFloor(elf.machine, max(glibc, oldest), f"{name}: {version}") for version, glibc in known if glibc),
        *_alignment_floor(name, elf, oldest),
    ]


def _alignment_floor(name: str, elf: Elf, oldest: tuple[int, int]) -> Iterator[PlatformFloor]:
    segment = elf.misaligned
    if segment is not None:
        reason = f"{name}: a segment at {segment.address:#x} that requires an alignment of {segment.alignment:#x}"
        can_be_mended = elf.realigned != elf.segments
        yield PlatformFloor(elf.machine, max(ANY_ALIGNMENT, oldest), reason, is_by_alignment=can_be_mended)


@functools.cache
def _glibc_of(symbol_version: str) -> tuple[int, int] | None:
    """Return the glibc of the oldest distributions whose libraries have a symbol version, or `None` if unknown."""
    library, _, version = symbol_version.rpartition("_")
    if library == "GLIBC" and _is_number(version):
        return _pair(version)
    rows = _table().get(library, {})
    if version in rows or not _is_number(version):
        return rows.get(version)
    later = (glibc for known, glibc in rows.items() if _is_number(known) and _numbers(version) <= _numbers(known))
    return min(later, default=max(rows.values(), default=None))


@functools.cache
def _table() -> dict[str, dict[str, tuple[int, int]]]:
    libraries = read_table(__package__, "platform_floor.toml", dict[str, dict[str, str]])
    return {name: {version: _pair(glibc) for version, glibc in rows.items()} for name, rows in libraries.items()}


def _is_number(version: str) -> bool:
    return _NUMBER.fullmatch(version) is not None


def _pair(text: str) -> tuple[int, int]:
    major, minor = _numbers(text)[:2]
    return major, minor


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
