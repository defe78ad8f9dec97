"""Kernel files of libraries: Tensile's tables, databases of SQLite, images of AOTriton, checked by their names."""

from __future__ import annotations

import lzma
import sqlite3
import struct
import zlib
from functools import cache

import msgspec

from rocwheel.binary.kernel_databases import database_processors, image_processors, table_processors
from rocwheel.targets.kernel_files import check_kernel_file, classify_path, targets_in_path
from tests.support.code_objects import code_object_header
from trials.fuzz.harness import Harness, require
from trials.fuzz.seeds.files import on_disk

_TABLE = msgspec.msgpack.encode({"a": [{"type": "Processor", "value": "gfx942"}, {"Processor": 1, "value": "gfx90a"}]})
_PATHS = [b"lib/rocblas/library/TensileLibrary_gfx942.dat", b"lib/hipblaslt/library/Kernels.so-000-gfx90a-xnack+.hsaco"]


def _tables(data: bytes) -> None:
    """Take an input as a table, plain and packed; and as what a packed one holds, which is what the plain one says."""
    view = memoryview(data)
    plain, packed = table_processors(view, "t.dat"), memoryview(zlib.compress(data))
    require(table_processors(packed, "t.dat.zlib") == plain, f"another answer than {plain} of the same table, packed")
    table_processors(view, "t.dat.zlib")


def _database(data: bytes) -> None:
    database_processors(memoryview(data), name="input")


def _image(data: bytes) -> None:
    """Take an input as an image or, where it doesn't begin as one, as what is packed in one."""
    if data.startswith(b"AKS2"):
        image_processors(memoryview(data), name="input")
        return
    size = len(data)
    head = struct.pack("<4sIII", b"AKS2", size, min(2, size // 66), min(size, 22 * min(2, size // 66)))
    image_processors(memoryview(head + lzma.compress(data, preset=0)), name="input")


def _by_path(data: bytes) -> None:
    """Take the first line as a path, and the rest as what the file holds."""
    path, _, content = data.partition(b"\n")
    text = path.decode(errors="replace")
    classify_path(text)
    targets_in_path(text)
    check_kernel_file(memoryview(content), text)


@cache
def _databases() -> list[bytes]:
    found = []
    for table in (
        "cache_v1 (arch TEXT)",
        "cache_v1 (x TEXT, arch TEXT AS (hex(zeroblob(1000))))",
        "kern_db (kernel_args TEXT, kernel_blob BLOB, uncompressed_size INT)",
    ):
        path = on_disk(b"", "database")
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA page_size = 512")
            database.execute(f"CREATE TABLE {table}")
            values = ("gfx942:xnack-",) if "arch" in table else ("-mcpu=gfx90a", code_object_header("gfx942"), 0)
            database.execute(f"INSERT INTO {table.partition(' ')[0]} VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608 (names of above)
        database.close()
        found.append(path.read_bytes())
    return found


def _images() -> list[bytes]:
    entry = struct.pack("<IIIII", 0, 0, 0, 64, 2) + b"k\0"
    image = entry + code_object_header("gfx942")
    return [image, b"AKS2" + struct.pack("<III", len(image), 1, len(entry)) + lzma.compress(image)]


HARNESSES = (
    Harness(
        "kernel_files.tables",
        _tables,
        lambda: [_TABLE, zlib.compress(_TABLE)],
        tokens=(b"\xa9Processor\xa5value\xa6gfx942",),
    ),
    Harness("kernel_files.database", _database, _databases, tokens=(b"SQLite format 3\0", b"kern_db", b"CREATE VIEW")),
    Harness("kernel_files.image", _image, _images, tokens=(b"AKS2", code_object_header("gfx90a"))),
    Harness(
        "kernel_files.by_path",
        _by_path,
        lambda: [path + b"\n" + _TABLE for path in _PATHS],
        tokens=(b"gfx942", b".hsaco\n", b".co\n"),
    ),
)
"""See `trials.fuzz.harness.Harness`."""
