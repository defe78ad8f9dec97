"""Reads files in which libraries look up kernels: MIOpen and rocFFT databases, AOTriton images, and Tensile tables.

=============  ===================================================================================================
table          columns that matter
=============  ===================================================================================================
``kern_db``    ``kernel_args``, compiler options such as ``-mcpu=gfx90a``; ``kernel_blob``, a code object,
               compressed by bzip2 unless ``uncompressed_size`` is 0 (MIOpen, src/include/miopen/kern_db.hpp)
``cache_v1``   ``arch``, a processor (rocFFT, library/src/rtc_cache.cpp)
=============  ===================================================================================================

======  ==========================================================================================================
offset  what
======  ==========================================================================================================
0       ``AKS2``, u32 decompressed size of the data after the header, u32 number of kernels, u32 size of the
        directory
16      xz: for each kernel u32 shared memory, u32 threads, u32 offset of its code object from the directory's end,
        u32 its size (0: no kernel), u32 size of its name, the name with a NUL byte; then the code objects
======  ==========================================================================================================

A Tensile table that selects other tables may have the hardware predicate ``{"type": "Processor", "value": "gfx906"}``;
tables of solutions have no such predicate. In Debian's librocblas5 7.2.4, 11 of 515 tables have the predicate, and it
always agrees with the table's name. Kernel names include an instruction set (``_ISA906_``), which other processors may
also use.
"""

from __future__ import annotations

import bz2
import io
import lzma
import re
import sqlite3
import struct
import sys
import zlib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import CodePlace, DeviceCodeError, header_processor, known_processors, processor_of
from rocwheel.binary.elf.header import HEADER_SIZE
from rocwheel.core.compression import MOST_EXPANDED, open_xz
from rocwheel.core.messages import quoted
from rocwheel.core.reading import iter_pieces, load
from rocwheel.core.scratch import no_room, require_room, scratch_folder, temporary_folder, write_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import IO

    from rocwheel.core.reading import Data


_SQLITE_MAGIC = b"SQLite format 3\0"
_STORED_HEAD = 1 << 20
"""The number of bytes to read from a kernel; a bzip2 block contains up to 900 kB."""
_MOST_KERNELS = 64
"""The number of kernels whose own header is read. The options of all kernels are read."""
_STEPS, _MOST_CALLS = 100_000, 2_000
"""The number of SQLite instructions between checks, and the limit on checks: a database might contain endless views."""
_LONGEST = 64 << 20
"""The size in bytes of the largest value that SQLite may create."""
_ORDINARY = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE %'"
"""Excludes views and virtual tables. SQLite itself refuses rows whose type or name differs from their SQL text."""
_OPTION = re.compile(r"-mcpu=(gfx[0-9a-f]+(?:-[a-z0-9]+)*)")


def is_database(data: Data) -> bool:
    """Return whether ``data`` starts with the magic number of SQLite 3 databases."""
    return bytes(data[: len(_SQLITE_MAGIC)]) == _SQLITE_MAGIC


def database_processors(data: Data, *, name: str) -> tuple[str, ...]:
    """Return the sorted processors for which a database has kernels, or an empty tuple for other databases.

    SQLite reads a copy of the data, because it can't read a file without a name. Raises `DeviceCodeError` for a damaged
    database, and `WorkError` if there is no space for the copy.
    """
    try:
        with scratch_folder(Path(temporary_folder(), "database")) as folder:
            copy = folder / "copy"
            with copy.open("xb", buffering=0) as file:
                require_room(file, len(data))
                for piece in iter_pieces(data):
                    write_all(file, piece)
            return tuple(sorted(_read(copy, name)))
    except OSError as e:
        raise no_room(name, "the database", e) from e


def _read(path: Path, name: str) -> set[str]:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            looks = iter(range(_MOST_CALLS))
            database.set_progress_handler(lambda: next(looks, None) is None, _STEPS)
            database.execute("PRAGMA trusted_schema = OFF")
            if sys.version_info >= (3, 11):
                database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
            tables = {row[0] for row in database.execute(_ORDINARY)} & {"cache_v1", "kern_db"}
            _require_stored(database, tables, name)
            query = "SELECT DISTINCT substr(arch, 1, 64) FROM cache_v1"
            rows = database.execute(query) if "cache_v1" in tables else ()
            found = {processor_of(str(arch)) for (arch,) in rows}
            return found | set(_miopen(database, name)) if "kern_db" in tables else found
    except MemoryError:
        # For a record with a false size, SQLite raises this before it allocates memory. Values that are read are stored
        # in the file, so they can't be larger than the file.
        why = "a database that can't be read (SQLite requests more memory than any such database needs)"
        raise DeviceCodeError(CodePlace(name), why, expected="SQLite 3") from None
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as e:
        raise DeviceCodeError(CodePlace(name), f"a database that can't be read ({e})", expected="SQLite 3") from e


def _require_stored(database: sqlite3.Connection, tables: Iterable[str], name: str) -> None:
    """Raise `DeviceCodeError` for a table with a computed column, because the column's values can have any size.

    ``PRAGMA hard_heap_limit`` isn't an alternative, because it would apply to everything that the process does with
    SQLite later.
    """
    for table in sorted(tables):
        hidden = [row[1] for row in database.execute(f"PRAGMA table_xinfo({table})") if row[6]]
        if hidden:
            why = f"a table {table} whose column {quoted(str(hidden[0]))} is generated or hidden"
            raise DeviceCodeError(CodePlace(name), why, expected="stored columns")


def _miopen(database: sqlite3.Connection, name: str) -> Iterator[str]:
    columns = {row[1] for row in database.execute("PRAGMA table_info(kern_db)")}
    if "kernel_args" in columns:
        for (text,) in database.execute("SELECT DISTINCT substr(kernel_args, 1, 65536) FROM kern_db"):
            yield from _OPTION.findall(str(text))
    if {"kernel_blob", "uncompressed_size"} <= columns:
        query = "SELECT substr(kernel_blob, 1, ?), uncompressed_size FROM kern_db LIMIT ?"
        for blob, size in database.execute(query, (_STORED_HEAD, _MOST_KERNELS)):
            if isinstance(blob, bytes):
                head = blob if size == 0 else _decompressed_head(blob, name)
                yield from filter(None, (header_processor(head[:HEADER_SIZE]),))


def _decompressed_head(blob: bytes, name: str) -> bytes:
    try:
        return bz2.BZ2Decompressor().decompress(blob, HEADER_SIZE)
    except (OSError, EOFError, ValueError) as e:
        raise DeviceCodeError(CodePlace(name), f"a kernel that can't be decompressed ({e})", expected="bzip2") from e


_AKS2_MAGIC = b"AKS2"
_HEADER = struct.Struct("<4sIII")
_ENTRY = struct.Struct("<IIIII")
_LARGEST_DIRECTORY = 16 << 20
_LARGEST = 1 << 30
"""The largest decompressed size of an image, in bytes; real images are a few million bytes."""
_TRUSTED = 4 << 20
"""The decompressed size in bytes that is accepted for any image. A package contains thousands of images."""
_CHUNK = 1 << 20


class _Header(msgspec.Struct, frozen=True):
    size: int
    kernels: int
    directory_size: int


def is_image(data: Data) -> bool:
    """Return whether ``data`` starts with the magic number of AOTriton images."""
    return bytes(data[: len(_AKS2_MAGIC)]) == _AKS2_MAGIC


def image_processors(data: Data, *, name: str) -> tuple[str, ...]:
    """Return the known processors from an image's code objects, sorted.

    Raises `DeviceCodeError` for an image that AOTriton would reject.
    """
    place = CodePlace(name)
    header = _read_header(data, place)
    content = open_xz(io.BufferedReader(_Reader(data[_HEADER.size :]), _CHUNK))
    try:
        directory = content.read(header.directory_size)
        offsets = sorted(_offsets(directory, header, place))
        return tuple(sorted(_processors(content, offsets, place)))
    except (lzma.LZMAError, EOFError) as e:
        found = f"an image that can't be decompressed ({e})"
        raise DeviceCodeError(place, found, expected=f"{header.size} bytes of xz data") from e


def _read_header(data: Data, place: CodePlace) -> _Header:
    head = bytes(data[: _HEADER.size])
    if len(head) < _HEADER.size or not head.startswith(_AKS2_MAGIC):
        raise DeviceCodeError(place, "no image header", expected="AKS2 and three numbers")
    header = _Header(*_HEADER.unpack(head)[1:])
    largest = min(_LARGEST, max(_TRUSTED, MOST_EXPANDED * len(data)))
    if not header.directory_size <= header.size <= largest or header.directory_size > _LARGEST_DIRECTORY:
        found = f"an image of {header.size} bytes with a directory of {header.directory_size}"
        raise DeviceCodeError(place, found, expected=f"at most {largest} and {_LARGEST_DIRECTORY}")
    if header.kernels > header.directory_size // (_ENTRY.size + 1):
        found = f"{header.kernels} kernels in a directory of {header.directory_size} bytes"
        raise DeviceCodeError(place, found, expected=f"at least {_ENTRY.size + 1} bytes for each kernel")
    return header


def _offsets(directory: bytes, header: _Header, place: CodePlace) -> Iterator[int]:
    """Yield the start of each code object, relative to the end of the directory."""
    room = header.size - header.directory_size
    at = 0
    for _ in range(header.kernels):
        if at + _ENTRY.size > len(directory):
            raise DeviceCodeError(place, "a directory that ends inside an entry", expected=f"{header.kernels} entries")
        _, _, offset, size, name_size = _ENTRY.unpack_from(directory, at)
        at += _ENTRY.size + name_size
        if at > len(directory) or offset + size > room:
            found = (
                f"a kernel of {size} bytes at offset {offset} in {room} bytes, in a directory of {len(directory)} bytes"
            )
            raise DeviceCodeError(place, found, expected="kernels inside the image")
        if size:
            yield offset


def _processors(content: IO[bytes], offsets: list[int], place: CodePlace) -> set[str]:
    found = set()
    head, end = b"", 0
    for offset in dict.fromkeys(offsets):
        _skip(content, offset - end, place)
        kept = head[len(head) - max(0, end - offset) :] if end > offset else b""
        head = kept + content.read(HEADER_SIZE - len(kept))
        end = offset + len(head)
        if processor := header_processor(head):
            found.add(processor)
    return found


def _skip(content: IO[bytes], size: int, place: CodePlace) -> None:
    while size > 0:
        piece = content.read(min(size, _CHUNK))
        if not piece:
            raise DeviceCodeError(place, "an image that ends before its last kernel", expected="all kernels")
        size -= len(piece)


class _Reader(io.RawIOBase):
    """A file object for reading the bytes of a view from start to end."""

    def __init__(self, data: Data) -> None:
        super().__init__()
        self._data = data
        self._position = 0

    def readable(self) -> bool:
        """Return true, as `io.BufferedReader` requires."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill the buffer with the next bytes; return 0 at the end."""
        view = memoryview(buffer)  # type: ignore[arg-type]  # a writable buffer of any type
        piece = load(self._data[self._position : self._position + len(view)])
        view[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)


_PACKED = ".dat.zlib"
TABLE_SUFFIXES = (".dat", _PACKED)
"""The suffixes of table names."""

# Strings shorter than 32 bytes, as Tensile's writer encodes them: a byte with the length, and then the text.
_PREDICATE = re.compile(rb"\xa9Processor\xa5value[\xa0-\xbf](gfx[0-9a-z]+(?:-[0-9a-z]+)*)")
_LONGEST_PREDICATE = 64
"""An upper limit for the size of a predicate in bytes."""
_BLOCK = 1 << 20


def table_processors(data: Data, path: str) -> tuple[str, ...]:
    """Return the known processors that the table at ``path`` requires, sorted.

    The function keeps only a few megabytes in memory. A file that is damaged or isn't a table yields no processors.
    """
    found: set[str] = set()
    end = b""
    for piece in _unpacked(iter_pieces(data)) if path.endswith(_PACKED) else iter_pieces(data):
        joined = end + piece
        found.update(match[1].decode() for match in _PREDICATE.finditer(joined))
        end = joined[-_LONGEST_PREDICATE:]
    return tuple(sorted(found.intersection(known_processors())))


def _unpacked(pieces: Iterable[memoryview]) -> Iterator[bytes]:
    stream = zlib.decompressobj()
    size = 0
    for piece in pieces:
        rest: bytes | memoryview = piece
        while rest and size < _LARGEST:
            try:
                block = stream.decompress(rest, _BLOCK)
            except zlib.error:
                return
            rest = stream.unconsumed_tail
            size += len(block)
            yield block
