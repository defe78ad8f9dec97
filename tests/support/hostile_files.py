"""Sdists, Debian packages, artifacts, ELF files and bundles that no tool writes, by kind and by what is wrong."""

from __future__ import annotations

import gzip
import io
import lzma
import random
import tarfile
from typing import TYPE_CHECKING

from rocwheel.core.compression import zstd
from tests.support.bombs import tar_block, xz_of_gigabytes
from tests.support.kpack_files import by_hand, frames, make_kpack, toc
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["HOSTILE_FILES", "NAMES", "deb_of"]

NAMES = {
    "sdist": "a-1.0.tar.gz",
    "deb": "a_1.0_amd64.deb",
    "artifact": "blas_lib_generic.tar.xz",
    "binary": "a.so",
    "kpack": "a.kpack",
    "kpack frames": "a.kpack",
}
"""What the file of each kind is called."""

_NOISE = random.Random(7).randbytes(5000)
_END = bytes(1024)
_LIBRARY = (FIXTURES / "v22/libtwo.plain.so").read_bytes()
_TARS = {
    "noise": _NOISE,
    "no end": tar_block(tarfile.REGTYPE, b"x", name="a-1.0/x"),
    "a negative size": tar_block(tarfile.REGTYPE, name="a-1.0/x", size=-512) + _END,
    "a name of a terabyte": tar_block(tarfile.GNUTYPE_LONGNAME, size=1 << 40) + _END,
    "records of a terabyte": tar_block(tarfile.XHDTYPE, size=1 << 40) + _END,
    "headers without end": tar_block(tarfile.XHDTYPE, b"9 path=a\n") * 3000 + _END,
    "a sparse file": tar_block(tarfile.GNUTYPE_SPARSE, name="a-1.0/x") + _END,
    "an absolute name": tar_block(tarfile.REGTYPE, b"x", name="/etc/x") + _END,
    "a name that climbs": tar_block(tarfile.REGTYPE, b"x", name="../../x") + _END,
    "a device": tar_block(tarfile.CHRTYPE, name="a-1.0/x") + _END,
}
_PLAIN = {"empty": b"", "noise as it is": _NOISE, "text": b"no such file\n" * 99}


def deb_of(data: bytes, package: str = "a") -> bytes:
    """Return a package of a name, with a right control file and ``data`` as its ``data.tar.xz``."""
    control = io.BytesIO()
    with tarfile.open(fileobj=control, mode="w") as tar:
        text = f"Package: {package}\nVersion: 1.0\nArchitecture: amd64\n".encode()
        info = tarfile.TarInfo("control")
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    parts = {"debian-binary": b"2.0\n", "control.tar": control.getvalue(), "data.tar.xz": data}
    return b"!<arch>\n" + b"".join(_part(name, part) for name, part in parts.items())


def _part(name: str, data: bytes) -> bytes:
    return f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)


def _tars_by(pack: Callable[[bytes], bytes]) -> dict[str, bytes]:
    return {name: pack(data) for name, data in _TARS.items()}


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


_FINE = tar_block(tarfile.REGTYPE, b"lib", name="artifact_manifest.txt") + _END

_ARCHIVE = make_kpack({("a", 0, "gfx906"): _NOISE})


def _framed(blob: bytes, size: int = 8) -> bytes:
    """Return an archive with these zstd frames, the first of them of a code object that is said to have ``size``."""
    places = {"zstd_offset": 16, "zstd_size": len(blob), "blobs": None, "compression_scheme": "zstd-per-kernel"}
    entry = {"ordinal": 0, "original_size": size}
    return by_hand(toc(**places, toc={"a#0": {"gfx906": entry}}), blob)


HOSTILE_FILES: dict[str, dict[str, bytes]] = {
    "sdist": _PLAIN | _tars_by(gzip.compress) | {"cut off": _cut(gzip.compress(_NOISE))},
    "deb": _PLAIN
    | _tars_by(lambda data: deb_of(lzma.compress(data)))
    | {"cut off": _cut(deb_of(lzma.compress(_NOISE))), "a dictionary of gigabytes": deb_of(xz_of_gigabytes())},
    "artifact": _PLAIN
    | _tars_by(lzma.compress)
    | {
        "cut off": _cut(lzma.compress(_FINE + _NOISE)),
        "a dictionary of gigabytes": xz_of_gigabytes(),
        "zstd under the name of xz": zstd.compress(_FINE),
        "a bomb": lzma.compress(bytes(64 << 20)) * 17,
    },
    "binary": {
        "empty": b"",
        "half a header": b"\x7fELF\2\1\1" + bytes(20),
        "a header of ones": b"\x7fELF\2\1\1" + b"\xff" * 200,
        "cut off": _cut(_LIBRARY),
        "sections beyond the end": _LIBRARY[:40] + b"\xff" * 8 + _LIBRARY[48:],
        "a bundle of ones": b"__CLANG_OFFLOAD_BUNDLE__" + b"\xff" * 60,
        "a bundle of 2^60 entries": b"__CLANG_OFFLOAD_BUNDLE__" + (1 << 60).to_bytes(8, "little"),
        "a compressed bundle of ones": b"CCOB" + b"\xff" * 60,
        "a compressed bundle of nothing": b"CCOB" + bytes(60),
        "an archive of ones": b"!<arch>\n" + b"\xff" * 120,
    },
    "kpack": {
        "empty": b"",
        "the magic number alone": b"KPAK",
        "ones": b"KPAK\1\0\0\0" + b"\xff" * 100,
        "another version": by_hand(toc(), version=2),
        "cut off": _cut(_ARCHIVE),
        "a table without end": by_hand(b"\xdf\xff\xff\xff\xff" + b"\xa0" * 100),
        "a table of a million arrays": by_hand(b"\x81\xa1a" + b"\x91" * (1 << 20)),
        "a text of 4 GiB": by_hand(b"\x81\xdb\xff\xff\xff\xffx"),
        "another scheme": by_hand(toc(compression_scheme="lz4")),
        "an ordinal of 2^63": by_hand(toc(toc={"a#0": {"gfx906": {"ordinal": 1 << 63, "original_size": 8}}})),
        "an ordinal below zero": by_hand(toc(toc={"a#0": {"gfx906": {"ordinal": -1, "original_size": 8}}})),
        "overlapping code": by_hand(toc(blobs=[{"offset": 16, "size": 8}, {"offset": 20, "size": 4}])),
        "code of 2^63 bytes": by_hand(toc(blobs=[{"offset": 16, "size": 1 << 63}])),
        "4 billion frames": _framed(b"\xff\xff\xff\xff"),
        "a frame of 4 GiB": _framed(b"\1\0\0\0\xff\xff\xff\xff"),
    },
    "kpack frames": {
        "larger than declared": _framed(frames(zstd.compress(bytes(64 << 20)))),
        "smaller than declared": _framed(frames(zstd.compress(b"x")), 1 << 30),
        "noise": _framed(frames(_NOISE)),
        "cut off": _framed(frames(_cut(zstd.compress(_NOISE))), len(_NOISE)),
        "a window of gigabytes": _framed(frames(b"\x28\xb5\x2f\xfd\x00\xb8" + bytes(20))),
        "two frames in one": _framed(frames(zstd.compress(b"1234") * 2)),
    },
}
"""The bytes of each file."""
