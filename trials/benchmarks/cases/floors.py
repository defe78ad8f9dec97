"""The least that commands have to do, in plain programs: ``python -m trials.benchmarks.cases.floors NAME PATH...``.

Those that compress or inflate use as many threads as there are cores, and the libraries that rocwheel uses.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import deflate

from rocwheel.core.compression import WHEEL_LEVEL, zstd
from tests.support.reality import LOADER
from tests.support.sdists import unpack_tar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["FLOORS"]

_PIECE = 2 << 20
"""About the size of a code object of a library."""
_ZSTD_LEVEL = 3


def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(len(os.sched_getaffinity(0)))


def _files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent) / name for name in names)


def _read(folder: Path) -> None:
    """Read all files below a folder, or one file, in pieces."""
    for path in [folder] if folder.is_file() else _files(folder):
        with path.open("rb") as file:
            while file.read(_PIECE):
                pass


def _read_heads(folder: Path) -> None:
    """Read the first page of all files below a folder."""
    for path in _files(folder):
        with path.open("rb") as file:
            file.read(4096)


def _look(folder: Path) -> None:
    """Ask for the size of all files below a folder."""
    for path in _files(folder):
        path.lstat()


def _hash(folder: Path) -> None:
    """Read and hash all files below a folder."""
    with _threads() as threads:
        list(threads.map(_digest, (path for path in _files(folder) if not path.is_symlink())))


def _digest(path: Path) -> bytes:
    sha256 = hashlib.sha256()
    for piece in _pieces(path):
        sha256.update(piece)
    return sha256.digest()


def _copy(source: Path, dest: Path) -> None:
    """Read, hash and write all files below a folder."""
    shutil.copytree(source, dest, dirs_exist_ok=True, symlinks=True)
    _hash(source)


def _write(source: Path, dest: Path) -> None:
    """Read a file, or all below a folder, and write one."""
    with (dest / "whole").open("wb") as made:
        for path in [source] if source.is_file() else _files(source):
            made.writelines(_pieces(path))


def _replace(source: Path, dest: Path, *, is_synced: bool = False) -> None:
    """Read all files below a folder, and write each under another name before it gets its own."""
    for path in _files(source):
        with (dest / "unfinished").open("wb") as made:
            made.writelines(_pieces(path))
            made.flush()
            if is_synced:
                os.fsync(made.fileno())
        (dest / "unfinished").rename(dest / path.name)


def _replace_synced(source: Path, dest: Path) -> None:
    """Do so, and sync each to disk before it gets its name."""
    _replace(source, dest, is_synced=True)


def _inflate(*wheels: Path) -> None:
    """Inflate and hash all members of wheels."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive, _threads() as threads:
            for name in archive.namelist():
                threads.submit(lambda data: hashlib.sha256(data).digest(), archive.read(name))


def _unzip(wheel: Path, dest: Path) -> None:
    """Inflate, hash and write all members of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            hashlib.sha256(data).digest()
            (dest / name).parent.mkdir(parents=True, exist_ok=True)
            (dest / name).write_bytes(data)


def _untar(archive: Path, dest: Path) -> None:
    """Unpack a tar."""
    with tarfile.open(archive) as tar:
        unpack_tar(tar, dest)


def _pack_again(wheel: Path, dest: Path) -> None:
    """Inflate and hash all members of a wheel, deflate and write them."""
    with zipfile.ZipFile(wheel) as archive, (dest / "members").open("wb") as made, _threads() as threads:
        members = (archive.read(name) for name in archive.namelist())
        made.writelines(threads.map(_hash_and_deflate, members))


def _hash_and_deflate(data: bytes) -> bytes:
    hashlib.sha256(data).digest()
    return bytes(deflate.deflate_compress(data, WHEEL_LEVEL))


def _compress(source: Path, dest: Path) -> None:
    """Read a file, or all below a folder, compress pieces with zstd and write them."""
    with (dest / "compressed").open("wb") as made, _threads() as threads:
        for path in [source] if source.is_file() else _files(source):
            pieces = _pieces(path)
            made.writelines(threads.map(lambda piece: zstd.compress(piece, _ZSTD_LEVEL), pieces))


def _load(folder: Path) -> None:
    """Have glibc's loader look for what each file of a folder needs, in a process of its own."""
    traced = {"LD_TRACE_LOADED_OBJECTS": "1"}  # goes on where a library is missing, which --list does not
    for path in _files(folder):
        subprocess.run([LOADER, path], env=traced, capture_output=True, check=False)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _decompress(folder: Path, dest: Path) -> None:
    """Decompress all files below a folder and write one."""
    with (dest / "whole").open("wb") as made, _threads() as threads:
        made.writelines(threads.map(lambda path: zstd.decompress(path.read_bytes()), sorted(_files(folder))))


FLOORS: dict[str, Callable[..., None]] = {
    "read": _read,
    "heads": _read_heads,
    "look": _look,
    "hash": _hash,
    "copy": _copy,
    "write": _write,
    "replace": _replace,
    "replace-synced": _replace_synced,
    "inflate": _inflate,
    "unzip": _unzip,
    "untar": _untar,
    "pack": _pack_again,
    "compress": _compress,
    "decompress": _decompress,
    "load": _load,
}
"""The floors by name."""


if __name__ == "__main__":
    FLOORS[sys.argv[1]](*map(Path, sys.argv[2:]))
