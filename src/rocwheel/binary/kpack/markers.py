"""Reads and writes markers, which specify the archives that contain a split host file's code, and finds those archives.

A marker is a MessagePack map with ``kernel_name``, which is the file's name in archives, and ``kpack_search_paths``.
Readers begin at the target of a wrapper, look at no more than 64 KiB, and stop at the end of the map. So several
markers can share one section. The first map contains the other maps, under a key that readers ignore. The entire
section is one value, because some readers reject any data after the value. Three more ignored keys contain data for
joining the host file and its archives again. Their values are the bundle's entry IDs, checksums of the code sizes, and
whether the bundle was compressed. The checksums reveal archives that are from a different build.

AMD's tool from mid-2026 numbers the units in each archive separately, and skips units that have no code for the
archive's target. Wrappers, in contrast, number all units.
"""

from __future__ import annotations

import glob
import re
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from rocwheel.binary.bundles.wrappers import (
    PE_MARKER_NAMES,
    as_code_section,
    find_pe_section,
    is_host_file,
    read_fat_binary,
)
from rocwheel.binary.code_objects import CodePlace, parse_target_id
from rocwheel.binary.elf.header import ElfBytes, read_header, read_section_table
from rocwheel.binary.kpack.archive import KpackError, decode_map, decode_value, value_end
from rocwheel.binary.pe.header import is_pe64
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, quoted
from rocwheel.core.reading import load
from rocwheel.core.workers import raise_all

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from rocwheel.binary.bundles.wrappers import CodeSection, Wrapper
    from rocwheel.core.reading import Data


MARKER_SECTION = ".rocm_kpack_ref"
PLACEHOLDER = "@GFXARCH@"
"""The placeholder for a target in a search path."""

_LARGEST = 64 << 10
_MOST_PATHS = 32
_LONGEST_PATH = 4096
_LONGEST_NAME = 1024 - len("#4294967295")
_NAME, _PATHS, _OTHERS = "kernel_name", "kpack_search_paths", "other_markers"
_ENTRIES, _CHECKS, _COMPRESSED = "bundle_entries", "code_checks", "bundle_compressed"
_TEXT = msgspec.msgpack.Decoder(str)
_TEXTS = msgspec.msgpack.Decoder(list[str])
_NUMBERS = msgspec.msgpack.Decoder(list[int])
_TRUTH = msgspec.msgpack.Decoder(bool)


class Marker(msgspec.Struct, frozen=True):
    """A host file's name in archives, and the search paths for these archives.

    Paths are absolute, or relative to the file's folder; `PLACEHOLDER` represents a target.
    """

    kernel_name: str
    search_paths: tuple[str, ...]
    entries: tuple[str, ...] = ()
    """The IDs of the bundle's entries before the code was removed, in order; empty if the IDs weren't stored."""
    checks: tuple[int, ...] = ()
    """The `check_sizes` value for the code of each entry; empty if the values weren't stored."""
    compressed: bool = False
    """Whether the bundle was compressed; false if the marker doesn't contain this information."""


def check_sizes(sizes: Iterable[tuple[int, int]]) -> int:
    """Return a checksum for one bundle entry, based on pairs of a unit's index and its code size."""
    return zlib.crc32(b"".join(struct.pack("<IQ", *pair) for pair in sorted(sizes)))


def encode_markers(markers: Sequence[Marker]) -> tuple[bytes, tuple[int, ...]]:
    """Return the content of a section with all ``markers`` (at least one), and each marker's offset in the section.

    Raises `KpackError` for markers that at least one reader rejects: without a search path, with more than 32 search
    paths, with long paths, or with a total of more than 64 KiB.
    """
    raise_all("markers", list(_find_problems(markers)))
    first, *others = markers
    parts = [msgspec.msgpack.encode(_fields(marker)) for marker in others]
    fields = _fields(first)
    if parts:
        fields[_OTHERS] = [msgspec.Raw(part) for part in parts]
    section = msgspec.msgpack.encode(fields)
    if len(section) > _LARGEST:
        found = f"{count(len(markers), 'marker')} of {len(section)} bytes in total"
        raise KpackError(
            CodePlace(first.kernel_name), found, expected=f"at most {_LARGEST}, because readers read no further"
        )
    starts, position = [0], len(section) - sum(map(len, parts))
    for part in parts:
        starts.append(position)
        position += len(part)
    return section, tuple(starts)


def _fields(marker: Marker) -> dict[str, object]:
    fields: dict[str, object] = {_NAME: marker.kernel_name, _PATHS: list(marker.search_paths)}
    kept = {_ENTRIES: list(marker.entries), _CHECKS: list(marker.checks), _COMPRESSED: marker.compressed}
    return {**fields, **{key: value for key, value in kept.items() if value}}


def _find_problems(markers: Sequence[Marker]) -> Iterator[KpackError]:
    for marker in markers:
        place, length = CodePlace(marker.kernel_name), len(marker.kernel_name.encode("utf-8", "surrogateescape"))
        if any("\ud800" <= letter <= "\udfff" for letter in marker.kernel_name):
            found, expected = f"the kernel name {quoted(marker.kernel_name)}", "UTF-8, because a marker is text"
            yield KpackError(place, found, expected=expected, remedy="Rename the library.")
        elif not 0 < length <= _LONGEST_NAME:
            found = f"a kernel name of {count(length, 'byte')}"
            yield KpackError(place, found, expected=f"1 to {_LONGEST_NAME}")
        if not 0 < len(marker.search_paths) <= _MOST_PATHS:
            found = f"a marker with {count(len(marker.search_paths), 'search path')}"
            yield KpackError(place, found, expected=f"1 to {_MOST_PATHS}")
        for path in marker.search_paths:
            if not 0 < len(path.encode()) <= _LONGEST_PATH:
                yield KpackError(place, f"the search path {quoted(path)}", expected=f"1 to {_LONGEST_PATH} bytes")


def read_marker(data: Data, *, place: CodePlace) -> Marker:
    """Return the marker at the start of ``data``, which extends from a wrapper's target to the end of the section.

    Raises `KpackError` if there is no such map, or the map extends beyond 64 KiB.
    """
    head = bytes(load(data[:_LARGEST]))
    fields = decode_map(head[: value_end(head, 0, place)], "a marker", place)
    missing = sorted({_NAME, _PATHS} - fields.keys())
    if missing:
        raise KpackError(place, f"a marker without {' and '.join(missing)}")
    name = decode_value(_TEXT, fields[_NAME], f"a marker's {_NAME}", place)
    paths = decode_value(_TEXTS, fields[_PATHS], f"a marker's {_PATHS}", place)
    if not paths:
        raise KpackError(place, "a marker without any search path", expected="at least one")
    entries = decode_value(_TEXTS, fields[_ENTRIES], f"a marker's {_ENTRIES}", place) if _ENTRIES in fields else ()
    checks = decode_value(_NUMBERS, fields[_CHECKS], f"a marker's {_CHECKS}", place) if _CHECKS in fields else ()
    compressed = _COMPRESSED in fields and decode_value(_TRUTH, fields[_COMPRESSED], f"a marker's {_COMPRESSED}", place)
    checks = checks if len(checks) == len(entries) else ()
    return Marker(name, tuple(paths), tuple(entries), tuple(checks), compressed)


class FoundFile(NamedTuple):
    """A file that a search path refers to, and the target that replaces the placeholder (can be empty)."""

    path: Path
    target: str


def find_archives(folder: Path, search_path: str) -> tuple[FoundFile, ...]:
    """Return the files that a search path of a library in ``folder`` refers to, in order, for all targets.

    A path is absolute, or relative to the library's real folder. The first `PLACEHOLDER` represents any target ID, with
    or without features. AMD's runtime treats a second placeholder as literal text.
    """
    place = str(folder.resolve() / search_path)
    if PLACEHOLDER not in search_path:
        return (FoundFile(Path(place).resolve(), ""),) if Path(place).is_file() else ()
    found = glob.iglob("*".join(glob.escape(part) for part in place.split(PLACEHOLDER, 1)))  # noqa: PTH207
    matches = sorted((target, path) for path in found if (target := target_at(place, path)))
    return tuple(FoundFile(Path(path).resolve(), target) for target, path in matches if Path(path).is_file())


def leads_to(place: str, path: str) -> bool:
    """Return whether the path ``place`` refers to ``path`` for any target in its `PLACEHOLDER`."""
    return target_at(place, path) is not None


def target_at(place: str, path: str) -> str | None:
    """Return the target with which ``place`` becomes ``path``, or `None` if ``path`` doesn't match.

    The target is empty if ``place`` contains no `PLACEHOLDER`.
    """
    before, placeholder, behind = place.partition(PLACEHOLDER)
    if not placeholder:
        return "" if place == path else None
    match = re.fullmatch(f"{re.escape(before)}([^/]+){re.escape(behind)}", path)
    return match[1] if match and _is_target(match[1]) else None


def _is_target(text: str) -> bool:
    try:
        return parse_target_id(text).processor.startswith("gfx")
    except InputError:
        return False


Unit = TypeVar("Unit", bound="Hashable")


def match_units(
    kernels: Mapping[Unit, frozenset[str]], reference: Mapping[Unit, frozenset[str]]
) -> dict[Unit, Unit] | None:
    """Return each code object's true unit, keyed by the unit under which it is stored, or `None` if ambiguous.

    ``kernels`` contains the kernel names of each code object. ``reference`` contains the kernel names of all units,
    based on a target that has code for all of them. The result is ambiguous if two units have the same kernels, or a
    code object's kernels match no unit.
    """
    units: dict[frozenset[str], Unit] = {}
    for unit, names in reference.items():
        if names in units:
            return None
        units[names] = unit
    if not kernels or any(names not in units for names in kernels.values()):
        return None
    return {unit: units[names] for unit, names in kernels.items()}


class SplitUnit(msgspec.Struct, frozen=True):
    """A wrapper in a split library: its offset in the file, and the values that a runtime looks up."""

    offset: int
    index: int
    marker: Marker


class SplitLibrary(msgspec.Struct, frozen=True):
    """A host file whose code is in archives. Each wrapper has a unit; wrappers that share a bundle have equal units."""

    name: str
    units: tuple[SplitUnit, ...]


def read_split_library(data: Data, *, name: str) -> SplitLibrary | None:
    """Return the references from ``data`` to archives, or `None` for a file that has no code or contains all its code.

    In a file with detached debug information, the sections for wrappers are empty, so the file has no references.
    Raises `KpackError` for mixed kinds of wrappers, and for pointers and markers that runtimes can't use. Raises
    `ElfError` for damaged files.
    """
    fat = read_fat_binary(data, name=name)
    if fat is None or not any(wrapper.is_kpack for wrapper in fat.wrappers):
        return None
    rest = [wrapper for wrapper in fat.wrappers if not wrapper.is_kpack]
    if rest:
        found = f"{count(len(rest), 'wrapper')} for bundles and {len(fat.wrappers) - len(rest)} for kpack archives"
        raise KpackError(CodePlace(name, rest[0].offset), found, expected="wrappers of only one kind")
    section = _find_section(data, name)
    markers: dict[int, Marker] = {}
    for wrapper in fat.wrappers:
        if wrapper.pointer.target not in markers:
            markers[wrapper.pointer.target] = _read_marker(data, wrapper, section, name)
    units = (SplitUnit(one.offset, one.index, markers[one.pointer.target]) for one in fat.wrappers)
    return SplitLibrary(name, tuple(units))


def find_split_library(data: Data, *, name: str) -> SplitLibrary | None:
    """Return the result of `read_split_library`, or `None` if a file can't contain both host code and device code."""
    return read_split_library(data, name=name) if is_host_file(data) else None


def _find_section(data: Data, name: str) -> CodeSection:
    section = find_pe_section(data, PE_MARKER_NAMES, name=name) if is_pe64(data) else _find_elf_section(data, name)
    if section is None:
        shown = ".kpackrf" if is_pe64(data) else MARKER_SECTION
        raise KpackError(CodePlace(name), f"wrappers for a kpack archive, but no {shown} section")
    return section


def _find_elf_section(data: Data, name: str) -> CodeSection | None:
    source = ElfBytes(data, name)
    for section in read_section_table(source, read_header(source)):
        if section.name == MARKER_SECTION and section.has_bytes:
            source.require(section.offset, section.size, MARKER_SECTION)
            return as_code_section(section)
    return None


def _read_marker(data: Data, wrapper: Wrapper, section: CodeSection, name: str) -> Marker:
    start = wrapper.pointer.target - section.address
    if not 0 <= start < section.size:
        found = f"a wrapper that points to {wrapper.leads_to}"
        expected = f"an address in {section.name}, which has {count(section.size, 'byte')} at {section.address:#x}"
        raise KpackError(CodePlace(name, wrapper.offset), found, expected=expected)
    place = CodePlace(name, section.offset + start)
    return read_marker(data[section.offset + start : section.offset + section.size], place=place)
