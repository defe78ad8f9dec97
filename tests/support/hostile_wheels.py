"""Wheels that no builder writes, and what is not a wheel at all, by what is wrong with them."""

from __future__ import annotations

import os
import random
import struct
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["HOSTILE_WHEELS", "WHEEL_NAME"]

WHEEL_NAME = "a-1.0-py3-none-any.whl"
_INFO = "a-1.0.dist-info"
_METADATA = "Metadata-Version: 2.1\nName: a\nVersion: 1.0\n"


def _wheel(path: Path, *, metadata: str = "", wheel: str = "", members: dict[str, bytes] | None = None) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (members or {}).items():
            archive.writestr(name, data)
        archive.writestr(f"{_INFO}/METADATA", _METADATA + metadata)
        archive.writestr(f"{_INFO}/WHEEL", wheel or "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{_INFO}/RECORD", "")


def _changed(change: Callable[[bytearray], None]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        _wheel(path, members={"x": b"data" * 100})
        content = bytearray(path.read_bytes())
        change(content)
        path.write_bytes(content)

    return make


def _empty_name(content: bytearray) -> None:
    # The name becomes the first byte of an extra field, in the local header and in the directory.
    for lengths in (content.find(b"PK\3\4") + 26, content.find(b"PK\1\2") + 28):
        content[lengths : lengths + 4] = b"\0\0\1\0"


def _far_offset(content: bytearray) -> None:
    central, end = content.find(b"PK\1\2"), content.find(b"PK\5\6")
    size = end - central + 12
    content[end + 12 : end + 16] = size.to_bytes(4, "little")
    content[central + 30 : central + 32] = (12).to_bytes(2, "little")
    content[central + 42 : central + 46] = b"\xff" * 4
    content[central + 47 : central + 47] = struct.pack("<2HQ", 1, 8, 1 << 63)


def _other_name(content: bytearray) -> None:
    content[content.find(b"PK\3\4") + 30] = ord("y")


def _damaged_member(content: bytearray) -> None:
    content[33] ^= 0xFF


def _cut_off(content: bytearray) -> None:
    del content[len(content) // 2 :]


def _large_size(content: bytearray) -> None:
    central = content.find(b"PK\1\2")
    content[central + 24 : central + 28] = b"\xf0\xff\xff\xff"


def _nested(count: int) -> str:
    return "".join(f'Content-Type: multipart/mixed; boundary="b{n}"\n\n--b{n}\n' for n in range(count))


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


HOSTILE_WHEELS: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "folder": lambda path: path.mkdir(),
    "pipe": os.mkfifo,
    "symlink loop": _loop,
    "link to nothing": lambda path: path.symlink_to("gone"),
    "noise": lambda path: path.write_bytes(random.Random(7).randbytes(5000)),
    "text": lambda path: path.write_text("no wheel\n" * 1000),
    "cut off": _changed(_cut_off),
    "a member without a name": _changed(_empty_name),
    "an offset of 2^63": _changed(_far_offset),
    "a member that calls itself otherwise": _changed(_other_name),
    "a damaged member": _changed(_damaged_member),
    "a size of 4 GiB": _changed(_large_size),
    "no dist-info": lambda path: zipfile.ZipFile(path, "w").close(),
    "an absolute name": lambda path: _wheel(path, members={"/etc/x": b""}),
    "a name that climbs": lambda path: _wheel(path, members={"../../x": b""}),
    "two dist-info": lambda path: _wheel(path, members={"b-1.0.dist-info/METADATA": b""}),
    "brackets": lambda path: _wheel(path, metadata=f"Requires-Dist: b; {'(' * 5000}python_version>'3'{')' * 5000}\n"),
    "digits in the version": lambda path: _wheel(path, metadata=f"Version: 1.{'1' * 5000}\n"),
    "digits in a requirement": lambda path: _wheel(path, metadata=f"Requires-Dist: a>={'1' * 5000}\n"),
    "digits in Requires-Python": lambda path: _wheel(path, metadata=f"Requires-Python: >={'1' * 5000}\n"),
    "messages in METADATA": lambda path: _wheel(path, metadata=_nested(3000)),
    "messages in WHEEL": lambda path: _wheel(path, wheel=_nested(3000)),
    "metadata that is no text": lambda path: _wheel(path, members={f"{_INFO}/rocm_targets.json": b"\xff" * 100}),
    "brackets in the targets": lambda path: _wheel(path, members={f"{_INFO}/rocm_targets.json": b"[" * 100_000}),
    "half an ELF file": lambda path: _wheel(path, members={"a.so": b"\x7fELF" + b"\xff" * 60}),
    "a bundle that is none": lambda path: _wheel(path, members={"a.co": b"__CLANG_OFFLOAD_BUNDLE__" + b"\xff" * 60}),
}
"""What makes each at a path."""
