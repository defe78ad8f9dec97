"""The targets of a database of kernels: MIOpen's ``.kdb`` and rocFFT's kernel cache, both of SQLite 3.

=============  ===================================================================================================
table          columns that matter
=============  ===================================================================================================
``kern_db``    ``kernel_args``, compiler options such as ``-mcpu=gfx90a``; ``kernel_blob``, a code object,
               compressed by bzip2 unless ``uncompressed_size`` is 0 (MIOpen, src/include/miopen/kern_db.hpp)
``cache_v1``   ``arch``, a processor (rocFFT, library/src/rtc_cache.cpp)
=============  ===================================================================================================
"""

from __future__ import annotations

import bz2
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.binary.code_objects.code_object import header_processor
from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.elf.header import HEADER_SIZE
from rocwheel.core.messages import quoted
from rocwheel.core.reading import iter_pieces
from rocwheel.core.scratch import no_room, require_room, scratch_folder, temporary_folder, write_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.core.reading import Data

__all__ = ["database_processors", "is_database"]

_MAGIC = b"SQLite format 3\0"
_STORED_HEAD = 1 << 20
"""Bytes of a kernel that are read: a block of bzip2 holds up to 900 kB."""
_MOST_KERNELS = 64
"""Kernels whose own header is read; the options of all are."""
_STEPS, _MOST_CALLS = 100_000, 2_000
"""Instructions of SQLite between two looks, and how many looks there are: a database may hold endless views."""
_LONGEST = 64 << 20
"""Bytes of a value that SQLite is to make at most."""
_ORDINARY = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE %'"
"""Neither views nor virtual tables. SQLite itself refuses rows that say another type or name than their text."""
_OPTION = re.compile(r"-mcpu=(gfx[0-9a-f]+(?:-[a-z0-9]+)*)")


def is_database(data: Data) -> bool:
    """Return whether ``data`` is a database of SQLite 3 by its first bytes."""
    return bytes(data[: len(_MAGIC)]) == _MAGIC


def database_processors(data: Data, *, name: str) -> tuple[str, ...]:
    """Return the processors that a database says it has kernels for, sorted; none for one of another kind.

    SQLite reads a copy of it, since it takes no file without a name. Raises `DeviceCodeError` for a damaged one, and
    `WorkError` where there is no room.
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
            found = set(_rocfft(database)) if "cache_v1" in tables else set()
            return found | set(_miopen(database, name)) if "kern_db" in tables else found
    except MemoryError:
        # Of a record whose size is a lie SQLite says so before it allocates anything; values that are read are stored
        # in the file, and so no larger than it.
        why = "a database that can't be read (SQLite asks for more memory than any such database needs)"
        raise DeviceCodeError(Place(name), why, expected="SQLite 3") from None
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as e:
        raise DeviceCodeError(Place(name), f"a database that can't be read ({e})", expected="SQLite 3") from e


def _require_stored(database: sqlite3.Connection, tables: Iterable[str], name: str) -> None:
    """Raise `DeviceCodeError` for a table with a column that is computed as it is read: its values may be of any size.

    ``PRAGMA hard_heap_limit`` is no substitute: it would hold for all that the process does with SQLite from then on.
    """
    for table in sorted(tables):
        hidden = [row[1] for row in database.execute(f"PRAGMA table_xinfo({table})") if row[6]]
        if hidden:
            why = f"a table {table} whose column {quoted(str(hidden[0]))} is generated or hidden"
            raise DeviceCodeError(Place(name), why, expected="columns that are stored")


def _rocfft(database: sqlite3.Connection) -> Iterator[str]:
    for (arch,) in database.execute("SELECT DISTINCT substr(arch, 1, 64) FROM cache_v1"):
        yield str(arch).partition(":")[0]


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
        raise DeviceCodeError(Place(name), f"a kernel that can't be decompressed ({e})", expected="bzip2") from e
