"""Reads version 1 kpack archives: the table of contents and the code objects.

The table is MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md). Other data may follow a value. For
example, the rest of a section may follow a marker. So the reader finds the end of the value first, and msgspec decodes
the bytes before that end.

The table maps ``binary#index`` and a target to an ordinal, the number of a code object in the archive. Several keys can
have the same ordinal. Readers use ``compression_scheme``, ``gfx_arches``, ``toc``, and the positions of the code
objects, and ignore all other keys.

======  =============================================================================================
offset  what
======  =============================================================================================
0       ``KPAK``
4       u32 version, 1
8       u64 offset of the table of contents, which takes the rest of the file
...     with the scheme ``none``, the uncompressed code objects at the offsets in the table;
        with ``zstd-per-kernel``, in one range: u32 n, then n times u32 size and a zstd frame
======  =============================================================================================

Numbers are little-endian. The readers of the format are AMD's runtime (librocm_kpack), AMD's Python tool, and
hrx-system.
"""

from __future__ import annotations

import struct
from enum import Enum
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec

from rocwheel.binary.code_objects import CodePlace, DeviceCodeError, processor_of
from rocwheel.binary.kind import KPACK_MAGIC, is_kpack
from rocwheel.core.compression import zstd
from rocwheel.core.messages import count, quoted, shortened
from rocwheel.core.reading import iter_pieces, load
from rocwheel.core.workers import raise_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.core.reading import Data


class KpackError(DeviceCodeError):
    """An error for a kpack archive that can't be used or created, or for a marker that refers to such an archive."""


Value = TypeVar("Value")

CONTAINER_LIMIT = 1 << 20
"""The maximum number of entries in a map or array. AMD's runtime accepts no more code objects in an archive."""

_SIZES = dict(
    zip(
        (0xC0, 0xC2, 0xC3, 0xCA, 0xCB, 0xCC, 0xCD, 0xCE, 0xCF, 0xD0, 0xD1, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8),
        (0, 0, 0, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17),
        strict=True,
    )
)
"""The number of bytes that follow the first byte of values with a fixed size: nil, bool, float, uint, int, fixext."""
_LENGTHS = {lead + n: (1 << n, more) for lead, more in ((0xC4, 0), (0xC7, 1), (0xD9, 0)) for n in range(3)}
"""The size of the length field of bin, ext, and str, and the number of extra bytes for the type of an ext."""
_CONTAINERS = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}
"""The size of the count field of arrays and maps, and the number of values in each entry."""
_RAW_MAP = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])


def value_end(data: bytes, start: int, place: CodePlace) -> int:
    """Return the end of the value at ``start``; raise `KpackError` if the value's end isn't in ``data``."""
    position, missing = start, 1
    while missing:
        if position >= len(data):
            raise KpackError(place, f"MessagePack that ends early, after {count(len(data) - start, 'byte')}")
        position, values = _step(data, position, place)
        missing += values - 1
    if position > len(data):
        raise KpackError(place, f"MessagePack that ends early, after {count(len(data) - start, 'byte')}")
    return position


def _step(data: bytes, position: int, place: CodePlace) -> tuple[int, int]:
    """Return the position after a value's header, or after an entire simple value, and how many values it contains."""
    lead = data[position]
    position += 1
    if lead < 0x80 or lead >= 0xE0:
        return position, 0
    if lead < 0xA0:
        return position, (lead & 0xF) * (2 if lead < 0x90 else 1)
    if lead < 0xC0:
        return position + (lead & 0x1F), 0
    if lead in _SIZES:
        return position + _SIZES[lead], 0
    if lead in _LENGTHS:
        width, more = _LENGTHS[lead]
        return position + width + more + _number(data, position, width), 0
    if lead in _CONTAINERS:
        width, values = _CONTAINERS[lead]
        return position + width, values * _number(data, position, width)
    raise KpackError(
        place, f"the byte {lead:#x} after {count(position - 1, 'byte')}, which doesn't begin a MessagePack value"
    )


def _number(data: bytes, position: int, width: int) -> int:
    return int.from_bytes(data[position : position + width], "big")


def decode_map(raw: msgspec.Raw | bytes, what: str, place: CodePlace) -> dict[str, msgspec.Raw]:
    """Return the values of a map, still encoded, keyed by name; ``what`` describes the map in messages.

    Raises `KpackError` for other values, keys that aren't strings, repeated keys, and too many keys.
    """
    size = _size(raw, what, place)
    values: dict[str, msgspec.Raw] = decode_value(_RAW_MAP, raw, what, place)
    if len(values) != size:
        found = f"{what} with {count(size, 'key')}, but only {count(len(values), 'distinct key')}"
        raise KpackError(place, found, expected="each key only once, because readers choose different values")
    return values


def decode_value(
    decoder: msgspec.msgpack.Decoder[Value], raw: msgspec.Raw | bytes, what: str, place: CodePlace
) -> Value:
    """Return the value that ``raw`` encodes; raise `KpackError` if it doesn't match the decoder."""
    _size(raw, what, place)
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise KpackError(place, f"{what} that can't be read ({shortened(str(e))})") from e


def _size(raw: msgspec.Raw | bytes, what: str, place: CodePlace) -> int:
    """Return the number of entries in a map or array, or 0 for other values.

    Raises `KpackError` if there are too many.
    """
    data = bytes(memoryview(raw)[:5])
    lead = data[0] if data else 0
    size = lead & 0xF if 0x80 <= lead < 0xA0 else 0
    if lead in _CONTAINERS:
        size = _number(data, 1, _CONTAINERS[lead][0])
    if size > CONTAINER_LIMIT:
        raise KpackError(place, f"{what} of {size} entries", expected=f"at most {CONTAINER_LIMIT}")
    return size


_Number = Annotated[int, msgspec.Meta(ge=0)]
_MOST_INDEX_DIGITS = 10


class Scheme(str, Enum):
    """The storage format of an archive's code objects; readers don't support any other schemes."""

    NONE = "none"
    """Uncompressed."""
    ZSTD = "zstd-per-kernel"
    """Each code object is in a separate zstd frame."""


class KernelKey(msgspec.Struct, frozen=True, order=True):
    """The key that a runtime looks up: the host file's kernel name, the index in the wrapper, and a target."""

    binary: str
    index: int
    target: str

    def __str__(self) -> str:
        return f"{self.binary}#{self.index} for {self.target}"


class Blob(msgspec.Struct, frozen=True):
    """The stored size of a code object, and its offset from the beginning of the archive."""

    offset: _Number
    size: _Number


class TocEntry(msgspec.Struct, frozen=True):
    """A code object's table entry: its ordinal and its decompressed size."""

    ordinal: _Number
    original_size: _Number
    type: str = "hsaco"


class Toc(msgspec.Struct, frozen=True):
    """The content of the table; ``fields`` contains all its values, still encoded."""

    fields: dict[str, msgspec.Raw]
    size: int
    """The size of the map in bytes, excluding any data after it."""
    scheme: Scheme
    targets: tuple[str, ...]

    def text(self, key: str, place: CodePlace) -> str:
        """Return a string from the table, or an empty string if the table doesn't have the key."""
        return decode_value(_TEXT, self.fields[key], key, place) if key in self.fields else ""

    def number(self, key: str, place: CodePlace) -> int:
        """Return a required number from the table."""
        return decode_value(_NUMBER, self._require(key, place), key, place)

    def blobs(self, place: CodePlace) -> tuple[Blob, ...]:
        """Return the positions of the code objects in an archive with the scheme `Scheme.NONE`, in ordinal order."""
        blobs: list[Blob] = decode_value(_BLOBS, self._require("blobs", place), "blobs", place)
        return tuple(blobs)

    def iter_entries(self, place: CodePlace) -> Iterator[tuple[str, str, TocEntry]]:
        """Yield the key, the target, and the entry of each code object with a lookup key, in table order."""
        for key, raw in decode_map(self._require("toc", place), "toc", place).items():
            for target, entry in decode_map(raw, f"toc entry {quoted(key)}", place).items():
                what = f"toc entry {quoted(key)} for {quoted(target)}"
                decode_map(entry, what, place)
                yield key, target, decode_value(_ENTRY, entry, what, place)

    def _require(self, key: str, place: CodePlace) -> msgspec.Raw:
        if key not in self.fields:
            raise KpackError(place, f"a table of contents without {key}")
        return self.fields[key]


_TEXT = msgspec.msgpack.Decoder(str)
_TEXTS = msgspec.msgpack.Decoder(list[str])
_NUMBER: msgspec.msgpack.Decoder[int] = msgspec.msgpack.Decoder(_Number)
_BLOBS: msgspec.msgpack.Decoder[list[Blob]] = msgspec.msgpack.Decoder(list[Blob])
_ENTRY = msgspec.msgpack.Decoder(TocEntry)


def read_toc(data: bytes, place: CodePlace) -> Toc:
    """Return the table at the start of ``data``; raise `KpackError` if every reader would reject the table."""
    size = value_end(data, 0, place)
    fields = decode_map(data[:size], "the table of contents", place)
    if "gfx_arches" not in fields:
        raise KpackError(place, "a table of contents without gfx_arches")
    targets = decode_value(_TEXTS, fields["gfx_arches"], "gfx_arches", place)
    toc = Toc(fields, size, Scheme.NONE, tuple(targets))
    name = toc.text("compression_scheme", place)
    try:
        return msgspec.structs.replace(toc, scheme=Scheme(name or Scheme.NONE.value))
    except ValueError:
        schemes = " or ".join(scheme.value for scheme in Scheme)
        raise KpackError(place, f"the unknown compression scheme {quoted(name)}", expected=schemes) from None


def split_key(key: str) -> tuple[str, int | None]:
    """Return the kernel name and the index from a key, or the entire key and `None` for a key from other software."""
    binary, mark, digits = key.rpartition("#")
    is_index = mark and digits.isascii() and digits.isdigit() and len(digits) <= _MOST_INDEX_DIGITS
    if not is_index or str(int(digits)) != digits or int(digits) >= 1 << 32:
        return key, None
    return binary, int(digits)


SIZE = struct.Struct("<I")
"""The layout of the frame count, and of the size before each frame."""
FRAME_LIMIT = CONTAINER_LIMIT
"""The maximum number of frames that AMD's runtime accepts."""
_FIRST = 64
"""The offset at which all known writers start the frames, after the number of frames and the first frame's size."""
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_WHOLE_LIMIT = 1 << 32
"""The limit in AMD's runtime on the total size of all frames, in bytes."""
_INPUT = 1 << 16
_OUTPUT = 4 << 20
_WINDOW_LOG = 27
"""The base-2 logarithm of the largest window, 128 MiB, which limits memory use. Writers of kernels need 8 MiB."""
_OPTIONS = {int(zstd.DecompressionParameter.window_log_max): _WINDOW_LOG}


def begins_with_frames(data: Data) -> bool:
    """Return whether a file is an archive that starts with zstd frames, without reading the rest of the file."""
    start = _FIRST + 2 * SIZE.size
    return is_kpack(data) and bytes(data[start : start + len(_ZSTD_MAGIC)]) == _ZSTD_MAGIC


def read_frames(data: Data, toc: Toc, name: str, toc_offset: int) -> tuple[Blob, ...]:
    """Return the positions of the frames, in ordinal order; raise `KpackError` if they don't match the table."""
    start, stop = _frames_place(toc, CodePlace(name, toc_offset), toc_offset)
    frames = _frame_size(data, start)
    if frames > FRAME_LIMIT:
        raise KpackError(CodePlace(name, start), f"{count(frames, 'zstd frame')}", expected=f"at most {FRAME_LIMIT}")
    blobs = []
    position = start + SIZE.size
    for ordinal in range(frames):
        frame_size = _frame_size(data, position) if position + SIZE.size <= stop else stop
        position += SIZE.size
        if position + frame_size > stop:
            found = f"zstd frame {ordinal} of {frames}, which extends past the end of all frames"
            raise KpackError(CodePlace(name, position), found, expected=f"an end at or before {stop:#x}")
        blobs.append(Blob(position, frame_size))
        position += frame_size
    if position != stop:
        found = f"{count(stop - position, 'byte')} after the last zstd frame"
        raise KpackError(CodePlace(name, position), found, expected=f"an end at {stop:#x}, as the table declares")
    return tuple(blobs)


def _frames_place(toc: Toc, place: CodePlace, toc_offset: int) -> tuple[int, int]:
    """Return the start of the frames, including their count, and their end, according to the table of contents."""
    start, size = toc.number("zstd_offset", place), toc.number("zstd_size", place)
    stop = start + size
    if start < 16 or size < SIZE.size or stop > toc_offset:
        found = f"zstd frames from {start:#x} to {stop:#x}"
        raise KpackError(
            place, found, expected=f"frames between the header and the table of contents at {toc_offset:#x}"
        )
    if size > _WHOLE_LIMIT:
        raise KpackError(place, f"zstd frames of {size} bytes", expected=f"at most {_WHOLE_LIMIT}")
    return start, stop


def _frame_size(data: Data, offset: int) -> int:
    return int(SIZE.unpack(bytes(data[offset : offset + SIZE.size]))[0])


def iter_frame(frame: Data, size: int, *, place: CodePlace, step: int = _OUTPUT) -> Iterator[bytes]:
    """Yield a zstd frame's content in pieces of at most ``step`` bytes, but never more than ``size`` bytes in total.

    Raises `KpackError` if the frame is damaged or its content has a different size.
    """
    try:
        yield from _iter_frame(frame, size, place, step)
    except zstd.ZstdError as e:
        raise KpackError(place, f"a damaged zstd frame ({e})") from e


def _iter_frame(frame: Data, size: int, place: CodePlace, step: int) -> Iterator[bytes]:
    decoder = zstd.ZstdDecompressor(options=_OPTIONS)
    position = produced = 0
    while not decoder.eof:
        chunk = bytes(frame[position : position + _INPUT]) if decoder.needs_input else b""
        if decoder.needs_input and not chunk:
            raise KpackError(place, f"a zstd frame that ends early, after {count(produced, 'byte')} of {size}")
        position += len(chunk)
        piece = decoder.decompress(chunk, max_length=step)
        produced += len(piece)
        if produced > size:
            raise KpackError(place, f"a zstd frame of more than {count(size, 'byte')}", expected="the declared size")
        if piece:
            yield piece
    if produced < size:
        raise KpackError(place, f"a zstd frame of {count(produced, 'byte')}", expected=f"{size}, as declared")
    rest = len(frame) - position + len(decoder.unused_data)
    if rest:
        raise KpackError(place, f"{count(rest, 'byte')} after the end of a zstd frame", expected="no bytes after it")


HEADER = struct.Struct("<4sIQ")
VERSION = 1
ARCHIVE_LIMIT = (1 << 31) - 1
"""The size in bytes of the largest archive that every reader accepts."""
TOC_LIMIT = 64 << 20
"""The size in bytes of the largest table of contents to read; tables in ROCm libraries are well below 1 MB."""


class KpackEntry(msgspec.Struct, frozen=True):
    """A code object with one of its lookup keys; sizes are in bytes, and ``size`` is the decompressed size.

    ``index`` is `None` if other software uses a different key format; in that case, ``binary`` is the entire key.
    """

    binary: str
    index: int | None
    target: str
    ordinal: int
    size: int
    offset: int
    """The offset of the stored code object from the beginning of the archive."""
    stored_size: int

    @property
    def key(self) -> str:
        """The key in the table."""
        return self.binary if self.index is None else f"{self.binary}#{self.index}"


class KpackArchive(msgspec.Struct, frozen=True, dict=True):
    """An archive: its table fields, the positions of its code objects, and problems that some readers have with it."""

    name: str
    targets: tuple[str, ...]
    scheme: Scheme
    group: str
    family: str
    blobs: tuple[Blob, ...]
    entries: tuple[KpackEntry, ...]
    toc_offset: int
    problems: tuple[str, ...] = ()
    trailing: int = 0
    """The number of bytes after the table of contents; some readers reject an archive with such bytes."""

    def find(self, binary: str, index: int, target: str) -> KpackEntry | None:
        """Return the code object with exactly this key and target, as a runtime would look it up.

        Runtimes also require that the target is in the archive's list of targets.
        """
        return self._by_key.get((f"{binary}#{index}", target)) if target in self.targets else None

    @property
    def processors(self) -> frozenset[str]:
        """The processors that the archive lists, without features."""
        return frozenset(map(processor_of, self.targets))

    @cached_property
    def _by_key(self) -> dict[tuple[str, str], KpackEntry]:
        return {(entry.key, entry.target): entry for entry in self.entries}


def read_archive(data: Data, *, name: str) -> KpackArchive:
    """Read the table of the archive ``data``, without reading code.

    Also checks that the code objects are inside the file and don't overlap. Raises `KpackError` if the file is damaged
    or has a different kind or version, and `ProblemsError` for several faults.
    """
    toc_offset = _read_header(data, name)
    place = CodePlace(name, toc_offset)
    toc = read_toc(bytes(load(data[toc_offset:])), place)
    blobs = toc.blobs(place) if toc.scheme is Scheme.NONE else read_frames(data, toc, name, toc_offset)
    found = list(toc.iter_entries(place))
    problems = list(_misplaced(blobs, name, toc_offset))
    for key, target, entry in found:
        if entry.ordinal >= len(blobs):
            expected = f"less than {len(blobs)}" if blobs else "no entries, because there is no code object"
            problems.append(KpackError(place, f"{key} for {target} has the ordinal {entry.ordinal}", expected=expected))
    raise_all(name, problems)
    entries = tuple(
        KpackEntry(*split_key(key), target, entry.ordinal, entry.original_size, blob.offset, blob.size)
        for key, target, entry in found
        for blob in [blobs[entry.ordinal]]
    )
    return KpackArchive(
        name,
        toc.targets,
        toc.scheme,
        toc.text("group_name", place),
        toc.text("gfx_arch_family", place),
        blobs,
        entries,
        toc_offset,
        tuple(_find_inconsistencies(len(data), toc, entries, place)),
        len(data) - toc_offset - toc.size,
    )


def _read_header(data: Data, name: str) -> int:
    """Return the offset of the table of contents."""
    head = bytes(data[: HEADER.size])
    if head[: len(KPACK_MAGIC)] != KPACK_MAGIC:
        raise KpackError(
            CodePlace(name),
            f"a file that begins with {head[:4]!r}",
            expected="a kpack archive, which begins with 'KPAK'",
        )
    if len(head) < HEADER.size:
        raise KpackError(CodePlace(name), f"a kpack archive of {count(len(head), 'byte')}", expected="at least 16")
    _, version, toc_offset = HEADER.unpack(head)
    if version != VERSION:
        found = f"a kpack archive with version {version}"
        raise KpackError(CodePlace(name, 4), found, expected="version 1", remedy="Use a newer rocwheel.")
    if not HEADER.size <= toc_offset < len(data):
        found = f"a table of contents at {toc_offset:#x} in a file that ends at {len(data):#x}"
        remedy = "The file is truncated or damaged. Copy the file again, or rebuild it."
        raise KpackError(CodePlace(name, 8), found, expected="a table inside the file", remedy=remedy)
    if len(data) - toc_offset > TOC_LIMIT:
        found = f"a table of contents of {len(data) - toc_offset} bytes"
        raise KpackError(CodePlace(name, toc_offset), found, expected=f"at most {TOC_LIMIT}")
    return int(toc_offset)


def _misplaced(blobs: Sequence[Blob], name: str, toc_offset: int) -> Iterator[KpackError]:
    """Yield an error for each code object that is outside its part of the file or overlaps another code object."""
    for ordinal, blob in enumerate(blobs):
        if blob.offset < HEADER.size or blob.offset + blob.size > toc_offset:
            found = f"code object {ordinal}, of {count(blob.size, 'byte')}"
            expected = f"an offset between the header and the table of contents at {toc_offset:#x}"
            yield KpackError(CodePlace(name, blob.offset), found, expected=expected)
    by_offset = sorted((blob.offset, blob.size, ordinal) for ordinal, blob in enumerate(blobs) if blob.size)
    for (offset, size, ordinal), (later, _, other) in pairwise(by_offset):
        if offset + size > later:
            found = f"code object {other} begins inside code object {ordinal}, which ends at {offset + size:#x}"
            yield KpackError(CodePlace(name, later), found)


def _find_inconsistencies(size: int, toc: Toc, entries: Sequence[KpackEntry], place: CodePlace) -> Iterator[str]:
    """Yield problems that this reader accepts, but that make other readers reject the archive or overlook an entry."""
    if rest := size - place.offset - toc.size:
        yield f"{place}: {count(rest, 'byte')} after the table of contents, which some readers reject"
    if size > ARCHIVE_LIMIT:
        yield f"{place.name}: {size} bytes, but some readers accept at most {ARCHIVE_LIMIT}"
    if len(entries) > CONTAINER_LIMIT:
        yield f"{place}: {len(entries)} entries, but some readers accept at most {CONTAINER_LIMIT}"
    for entry in entries:
        if entry.target not in toc.targets:
            yield f"{place}: {entry.key} for {entry.target} is never found, because gfx_arches doesn't list the target"
        if not entry.size:
            yield f"{place}: {entry.key} for {entry.target} is empty, which some readers reject"


KERNEL_LIMIT = 1 << 30
"""The size in bytes of the largest code object that is read into memory; ROCm's largest is a tenth of that size."""


def iter_kernel(data: Data, archive: KpackArchive, entry: KpackEntry, *, limit: int | None = None) -> Iterator[Data]:
    """Yield a code object of ``archive``, whose bytes are ``data``, in pieces of a few megabytes.

    Raises `KpackError` if the code object is damaged or its size differs from that in the table, no later than after
    the last piece. In that case, discard the earlier pieces. The total size of the pieces never exceeds the size in the
    table. A code object of more than ``limit`` bytes is refused before the first piece.
    """
    place = CodePlace(archive.name, entry.offset)
    if limit is not None and entry.size > limit:
        found = f"{entry.key} for {entry.target} has a declared size of {entry.size} bytes"
        raise KpackError(place, found, expected=f"at most {limit}")
    stored = data[entry.offset : entry.offset + entry.stored_size]
    if archive.scheme is Scheme.ZSTD:
        for piece in iter_frame(stored, entry.size, place=place):
            yield memoryview(piece)
        return
    if entry.stored_size != entry.size:
        found = f"{entry.key} for {entry.target} takes {count(entry.stored_size, 'byte')}"
        raise KpackError(place, found, expected=f"{entry.size}, its declared size")
    yield from iter_pieces(stored)


def read_kernel_head(data: Data, archive: KpackArchive, entry: KpackEntry, size: int) -> bytes:
    """Return up to ``size`` bytes from the start of a code object; raise `KpackError` if the code object is damaged."""
    stored = data[entry.offset : entry.offset + entry.stored_size]
    if archive.scheme is not Scheme.ZSTD:
        return bytes(stored[:size])
    place, head = CodePlace(archive.name, entry.offset), b""
    for piece in iter_frame(stored, entry.size, place=place, step=size):
        head += piece
        if len(head) >= size:
            break
    return head[:size]


def read_kernel(data: Data, archive: KpackArchive, entry: KpackEntry, *, limit: int = KERNEL_LIMIT) -> memoryview:
    """Return a complete code object; raise the same errors as `iter_kernel`, including for more than ``limit`` bytes.

    Memory use grows only with the actual data, regardless of the size that the table declares.
    """
    code = bytearray()
    for piece in iter_kernel(data, archive, entry, limit=limit):
        code += piece if isinstance(piece, memoryview) else bytes(piece)
    return memoryview(code).toreadonly()
