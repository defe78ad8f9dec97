"""Markers: what a split host file says of the archives with its code, in the section ``.rocm_kpack_ref``.

A marker is a MessagePack map with ``kernel_name``, the name of the file in archives, and ``kpack_search_paths``.
Readers begin where a wrapper points to, look at 64 KiB at most, and stop at the end of the map. So several markers
share one section: the first map holds the others, under a key that readers pass over, and the section is one value for
those who refuse anything behind it. Three more keys that readers pass over are for those who join host file and
archives again: the entry ids of the bundle, a checksum of the sizes of their code, by which archives of another build
show, and whether the bundle was a compressed one.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects.errors import Place
from rocwheel.binary.kpack.errors import KpackError
from rocwheel.binary.kpack.maps import decode_map, decode_value, value_end
from rocwheel.core.messages import count, quoted
from rocwheel.core.reading import load
from rocwheel.core.workers import raise_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.core.reading import Data

__all__ = ["MARKER_SECTION", "PLACEHOLDER", "Marker", "check_sizes", "encode_markers", "read_marker"]

MARKER_SECTION = ".rocm_kpack_ref"
PLACEHOLDER = "@GFXARCH@"
"""What stands for a target in a search path."""

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
    """The name of a host file in archives, and where these are.

    Paths are relative to the file's folder or absolute; `PLACEHOLDER` stands for a target.
    """

    kernel_name: str
    search_paths: tuple[str, ...]
    entries: tuple[str, ...] = ()
    """The ids of the bundle's entries before the code was split off, in their order; empty if nobody kept them."""
    checks: tuple[int, ...] = ()
    """What `check_sizes` says of the code of each of these entries; empty if nobody kept it."""
    compressed: bool = False
    """Whether the bundle was a compressed one; not so if nobody kept it."""


def check_sizes(sizes: Iterable[tuple[int, int]]) -> int:
    """Return a checksum of the indices of units, and of how many bytes of code each has for one entry of its bundle."""
    return zlib.crc32(b"".join(struct.pack("<IQ", *pair) for pair in sorted(sizes)))


def encode_markers(markers: Sequence[Marker]) -> tuple[bytes, tuple[int, ...]]:
    """Return the contents of a section with all ``markers``, at least one, and where in it each begins.

    Raises `KpackError` for what some reader refuses: no search path, more than 32 of them, long ones, and markers of
    more than 64 KiB together.
    """
    raise_all("markers", list(_find_problems(markers)))
    first, *others = markers
    parts = [msgspec.msgpack.encode(_fields(marker)) for marker in others]
    fields = _fields(first)
    if parts:
        fields[_OTHERS] = [msgspec.Raw(part) for part in parts]
    section = msgspec.msgpack.encode(fields)
    if len(section) > _LARGEST:
        found = f"{count(len(markers), 'marker')} of {len(section)} bytes"
        raise KpackError(Place(first.kernel_name), found, expected=f"at most {_LARGEST}: readers look no further")
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
        place, length = Place(marker.kernel_name), len(marker.kernel_name.encode("utf-8", "surrogateescape"))
        if any("\ud800" <= letter <= "\udfff" for letter in marker.kernel_name):
            yield KpackError(place, f"the kernel name {quoted(marker.kernel_name)}", expected="UTF-8: a marker is text")
        elif not 0 < length <= _LONGEST_NAME:
            found = f"a kernel name of {count(length, 'byte')}"
            yield KpackError(place, found, expected=f"1 to {_LONGEST_NAME}")
        if not 0 < len(marker.search_paths) <= _MOST_PATHS:
            found = f"a marker with {count(len(marker.search_paths), 'search path')}"
            yield KpackError(place, found, expected=f"1 to {_MOST_PATHS}")
        for path in marker.search_paths:
            if not 0 < len(path.encode()) <= _LONGEST_PATH:
                yield KpackError(place, f"the search path {quoted(path)}", expected=f"1 to {_LONGEST_PATH} bytes")


def read_marker(data: Data, *, place: Place) -> Marker:
    """Return the marker at the start of ``data``, which is what follows a wrapper's pointer up to its section's end.

    Raises `KpackError` for what is no such map, or goes on beyond 64 KiB.
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
