"""Determines a wheel's platform tags from its files, and whether the wheel belongs in platlib.

A repair sets the tags and this location. An audit recommends a repair if it would change them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocwheel.binary.pe.header import AMD64, ARM64, X86
from rocwheel.wheels.file_names import wheel_platforms
from rocwheel.wheels.platform_floor import host_machines, platform_floor
from rocwheel.wheels.tags import is_known_platform, lowest_glibc, parse_platforms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.binary.elf.facts import Elf
    from rocwheel.environment.tree import Distribution, InstalledFile
    from rocwheel.wheels.platform_floor import PlatformFloor

WINDOWS_TAGS = {X86: "win32", AMD64: "win_amd64", ARM64: "win_arm64"}
"""The platform tags, keyed by the machine number in the COFF header of a DLL or program."""
# The names in Alpine's libraries and in files from musl-gcc.
_MUSL = re.compile(r"libc\.musl-.*|libc\.so")


def repaired_platforms(platforms: Sequence[str], files: Iterable[InstalledFile]) -> list[str]:
    """Return the platform tags that a wheel with ``files`` should have instead of the tags in its name.

    The machines of the files replace ``any``. Tags without a glibc version, or with an older version than the files
    need, become the tag for the glibc that the machine's files need. Tags that no installer accepts are omitted. Tags
    for musl, for other systems, and for machines without files stay. All tags of a wheel stay if its files need musl.
    """
    files = tuple(files)
    elves = {file.path: file.elf for file in files if file.elf is not None and file.elf.machine in host_machines()}
    # The macOS version that Mach-O files need is unknown, so these tags must stay.
    if any(map(_is_for_musl, elves.values())) or (any(file.is_mach_o for file in files) and "any" in platforms):
        return list(platforms)
    floors = _floors(elves)
    by_files = [floor.tag for floor in floors.values()]
    if list(platforms) == ["any"]:
        return [*by_files, *_windows_tags(files)] or ["any"]
    known = [platform for platform in platforms if is_known_platform(platform) or not by_files]
    wrong = {name: floor.tag for name, floor in floors.items() if not _is_kept(known, floor)}
    return list(dict.fromkeys(wrong.get(_machine(platform), platform) for platform in known)) or by_files


def misplaced_code(owner: Distribution, files: Iterable[InstalledFile]) -> InstalledFile | None:
    """Return a file with machine code that a wheel installs into purelib, if purelib differs from platlib."""
    # Windows and macOS use the same folder for purelib and platlib.
    if not owner.is_purelib or all(tag.system in ("windows", "macos") for tag in wheel_platforms(owner.label)):
        return None
    return next((file for file in files if file.is_machine_code and not file.has_scheme), None)


def _windows_tags(files: Iterable[InstalledFile]) -> list[str]:
    machines = {file.windows.machine for file in files if file.windows is not None and file.is_windows_code}
    return sorted({WINDOWS_TAGS[machine] for machine in machines if machine in WINDOWS_TAGS})


def _is_for_musl(elf: Elf) -> bool:
    return any(map(_MUSL.fullmatch, elf.needed))


def _floors(elves: dict[str, Elf]) -> dict[str, PlatformFloor]:
    """Return the minimum platform of each machine, keyed by the machine's name in tags."""
    machines = sorted({elf.machine for elf in elves.values()})
    found = (platform_floor(item for item in elves.items() if item[1].machine == machine) for machine in machines)
    return {floor.architecture: floor for floor in found if floor is not None}


def _is_kept(platforms: Sequence[str], floor: PlatformFloor) -> bool:
    """Return whether tags require at least the glibc that the files need.

    A newer glibc in the tags may be intended, so it isn't changed.
    """
    tags = parse_platforms(".".join(platforms))
    promised = lowest_glibc(tag for tag in tags if tag.machine == floor.architecture)
    return promised is not None and promised >= floor.glibc


def _machine(platform: str) -> str:
    """Return the machine in a tag for Linux with glibc, or an empty string for any other system."""
    (tag,) = parse_platforms(platform)
    return tag.machine if tag.system == "glibc" else ""
