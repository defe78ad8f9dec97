"""The table of contents of a kpack archive: one MessagePack map at its end.

It maps ``binary#index`` and a target to an ordinal, which is the position of a code object in the archive. Several keys
may share an ordinal. Readers use ``compression_scheme``, ``gfx_arches``, ``toc`` and where the code objects are, and
pass over all other keys.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import msgspec

from rocwheel.binary.kpack.errors import KpackError
from rocwheel.binary.kpack.maps import decode_map, decode_value, value_end
from rocwheel.core.messages import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.code_objects.errors import Place

__all__ = ["Blob", "KernelKey", "Scheme", "Toc", "TocEntry", "read_toc", "split_key"]

_Number = Annotated[int, msgspec.Meta(ge=0)]
_MOST_INDEX_DIGITS = 10


class Scheme(str, Enum):
    """How the code objects of an archive are stored; there are no others, and readers know no others."""

    NONE = "none"
    """As they are."""
    ZSTD = "zstd-per-kernel"
    """Each in a zstd frame of its own."""


class KernelKey(msgspec.Struct, frozen=True, order=True):
    """What a runtime looks up: the host file's kernel name, the index in the wrapper, and a target as it is spelled."""

    binary: str
    index: int
    target: str

    def __str__(self) -> str:
        return f"{self.binary}#{self.index} for {self.target}"


class Blob(msgspec.Struct, frozen=True):
    """Where a code object is stored, counted from the beginning of the archive, and how many bytes it takes."""

    offset: _Number
    size: _Number


class TocEntry(msgspec.Struct, frozen=True):
    """A code object in the table: which one it is, and its size when decompressed."""

    ordinal: _Number
    original_size: _Number
    type: str = "hsaco"


class Toc(msgspec.Struct, frozen=True):
    """What the table says; ``fields`` are all its values as they are encoded."""

    fields: dict[str, msgspec.Raw]
    size: int
    """Bytes that the map takes; what follows is not part of it."""
    scheme: Scheme
    targets: tuple[str, ...]

    def text(self, key: str, place: Place) -> str:
        """Return a string of the table, empty if it isn't there."""
        return decode_value(_TEXT, self.fields[key], key, place) if key in self.fields else ""

    def number(self, key: str, place: Place) -> int:
        """Return a number that has to be in the table."""
        return decode_value(_NUMBER, self._require(key, place), key, place)

    def blobs(self, place: Place) -> tuple[Blob, ...]:
        """Return where the code objects of an archive of the scheme `Scheme.NONE` are, by their ordinals."""
        blobs: list[Blob] = decode_value(_BLOBS, self._require("blobs", place), "blobs", place)
        return tuple(blobs)

    def iter_entries(self, place: Place) -> Iterator[tuple[str, str, TocEntry]]:
        """Yield the key, the target and the entry of each code object that can be looked up, in the table's order."""
        for key, raw in decode_map(self._require("toc", place), "toc", place).items():
            for target, entry in decode_map(raw, f"toc entry {quoted(key)}", place).items():
                what = f"toc entry {quoted(key)} for {quoted(target)}"
                decode_map(entry, what, place)
                yield key, target, decode_value(_ENTRY, entry, what, place)

    def _require(self, key: str, place: Place) -> msgspec.Raw:
        if key not in self.fields:
            raise KpackError(place, f"a table of contents without {key}")
        return self.fields[key]


_TEXT = msgspec.msgpack.Decoder(str)
_TEXTS = msgspec.msgpack.Decoder(list[str])
_NUMBER: msgspec.msgpack.Decoder[int] = msgspec.msgpack.Decoder(_Number)
_BLOBS: msgspec.msgpack.Decoder[list[Blob]] = msgspec.msgpack.Decoder(list[Blob])
_ENTRY = msgspec.msgpack.Decoder(TocEntry)


def read_toc(data: bytes, place: Place) -> Toc:
    """Return the table at the start of ``data``; raise `KpackError` for one that no reader takes."""
    size = value_end(data, 0, place)
    fields = decode_map(data[:size], "the table of contents", place)
    toc = Toc(fields, size, Scheme.NONE, ())
    if "gfx_arches" not in fields:
        raise KpackError(place, "a table of contents without gfx_arches")
    targets = decode_value(_TEXTS, fields["gfx_arches"], "gfx_arches", place)
    return msgspec.structs.replace(
        toc, scheme=_scheme(toc.text("compression_scheme", place), place), targets=tuple(targets)
    )


def _scheme(name: str, place: Place) -> Scheme:
    try:
        return Scheme(name or Scheme.NONE.value)
    except ValueError:
        schemes = " or ".join(scheme.value for scheme in Scheme)
        raise KpackError(place, f"the unknown compression scheme {quoted(name)}", expected=schemes) from None


def split_key(key: str) -> tuple[str, int | None]:
    """Return the kernel name and the index of a key; the whole key and none for a key that other software made."""
    binary, mark, digits = key.rpartition("#")
    is_index = mark and digits.isascii() and digits.isdigit() and len(digits) <= _MOST_INDEX_DIGITS
    if not is_index or str(int(digits)) != digits or int(digits) >= 1 << 32:
        return key, None
    return binary, int(digits)
