"""The floor under a build: the same bytes read, hashed, deflated and written by plain worker processes, no more.

Run as a program, so that what it takes is measured as a build's is:
``python -m trials.benchmarks.floor MEMBERS DEST CODEC [ARTIFACTS]``. Files of artifacts are read and hashed, too, as
bills of materials need it.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import zlib
from dataclasses import dataclass
from multiprocessing import Process, SimpleQueue
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from zipfile import ZIP_STORED, ZipFile

import deflate
from zlib_ng import zlib_ng

from rocwheel.core.compression import WHEEL_LEVEL
from rocwheel.wheels.member_compression import BLOCK, WHOLE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["CODECS", "unpack_members"]

_PIECE = 32 << 20
_HASHED = 256 << 10
_WORKERS = 2
_STORED_SUFFIX = ".stored"


def unpack_members(wheels: Iterable[Path], folder: Path) -> None:
    """Unpack the members of wheels into flat files, so that the floor reads just what a build has to put out."""
    folder.mkdir(parents=True)
    for wheel in wheels:
        with ZipFile(wheel) as archive:
            for number, info in enumerate(archive.infolist()):
                suffix = _STORED_SUFFIX if info.compress_type == ZIP_STORED else ".deflated"
                target = folder / f"{wheel.name}.{number}{suffix}"
                with archive.open(info) as source, target.open("wb") as copy:
                    shutil.copyfileobj(source, copy, 1 << 20)


def _pack_libdeflate(data: bytes) -> bytes:
    return bytes(deflate.deflate_compress(data, WHEEL_LEVEL))


def _pack_zlib(data: bytes) -> bytes:
    compressor = zlib.compressobj(6, zlib.DEFLATED, -15)
    return compressor.compress(data) + compressor.flush()


def _store(data: bytes) -> bytes:
    return data


@dataclass(frozen=True, slots=True)
class _Piece:
    path: str
    start: int
    size: int
    pack: Callable[[bytes], bytes] | None
    """None for a file of an artifact, which is hashed alone."""


def _same_pieces(path: Path, size: int) -> list[_Piece]:
    """Pack as rocwheel does, with libdeflate: whole up to a limit, in blocks above."""
    return _cut(path, size, _pack_libdeflate, max(size, 1) if size <= WHOLE_LIMIT else BLOCK)


def _zlib_pieces(path: Path, size: int) -> list[_Piece]:
    return _cut(path, size, _pack_zlib)


def _cut(path: Path, size: int, pack: Callable[[bytes], bytes], piece: int = _PIECE) -> list[_Piece]:
    return [_Piece(str(path), start, min(piece, size - start), pack) for start in range(0, size, piece)]


CODECS = {"same": _same_pieces, "zlib": _zlib_pieces}
"""How members are cut and packed, by name."""


def _pieces(folder: Path, codec: str) -> list[_Piece]:
    """Return the work, largest piece first, so that both workers are busy to the end."""
    pieces = []
    for path in sorted(folder.iterdir()):
        size = path.stat().st_size
        stored = path.name.endswith(_STORED_SUFFIX)
        pieces += _cut(path, size, _store) if stored else CODECS[codec](path, size)
    return sorted(pieces, key=lambda piece: -piece.size)


def _hash(file: BinaryIO) -> None:
    sha256, buffer = hashlib.sha256(), memoryview(bytearray(_HASHED))
    while count := file.readinto(buffer):  # type: ignore[attr-defined]  # opened files have it
        sha256.update(buffer[:count])


def _work(pieces: SimpleQueue[_Piece | None], dest: Path) -> None:
    with dest.open("wb") as out:
        while piece := pieces.get():
            with Path(piece.path).open("rb") as file:
                if piece.pack is None:
                    _hash(file)
                    continue
                file.seek(piece.start)
                data = file.read(piece.size)
            hashlib.sha256(data).digest()
            zlib_ng.crc32(data)
            out.write(piece.pack(data))


def _artifact_pieces(artifacts: Path) -> list[_Piece]:
    files = (path for path in artifacts.rglob("*") if path.is_file() and not path.is_symlink())
    return [_Piece(str(path), 0, path.stat().st_size, None) for path in files]


def _main(folder: Path, dest: Path, codec: str, artifacts: Path | None = None) -> int:
    pieces: SimpleQueue[_Piece | None] = SimpleQueue()
    workers = [Process(target=_work, args=(pieces, dest / f"worker-{number}")) for number in range(_WORKERS)]
    for worker in workers:
        worker.start()
    hashed = sorted(_artifact_pieces(artifacts), key=lambda piece: -piece.size) if artifacts else []
    for piece in [*hashed, *_pieces(folder, codec), *[None] * _WORKERS]:
        pieces.put(piece)
    for worker in workers:
        worker.join()
    return max(worker.exitcode or 0 for worker in workers)


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], *map(Path, sys.argv[4:])))
