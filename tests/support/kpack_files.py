"""Kpack archives and split libraries: by our writer, and by hand with whatever is wrong in them."""

from __future__ import annotations

import io
import struct
import subprocess
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.binary.kpack.marker import Marker, encode_markers
from rocwheel.binary.kpack.toc import KernelKey, Scheme
from rocwheel.binary.kpack.write_archive import ArchiveFacts, KpackWriter, compress_kernel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["Memory", "build_split_library", "by_hand", "frames", "make_kpack", "toc"]

_HIPK = 0x4B504948


class Memory(io.BytesIO):
    """A file in memory, as `KpackWriter` wants it."""

    def overwrite(self, offset: int, data: bytes, /) -> None:
        """Replace bytes that were written before."""
        position = self.tell()
        self.seek(offset)
        self.write(data)
        self.seek(position)


def make_kpack(
    kernels: Mapping[tuple[str, int, str], bytes], *, scheme: Scheme = Scheme.ZSTD, level: int = 3, group: str = "group"
) -> bytes:
    """Return an archive by our writer; code under several targets is given with ``|`` between them."""
    file = Memory()
    writer = KpackWriter(file, ArchiveFacts(group, "gfx906", scheme), name="x.kpack")
    for (binary, index, targets), code in kernels.items():
        keys = [KernelKey(binary, index, target) for target in targets.split("|")]
        writer.add(keys, compress_kernel(memoryview(code), scheme, level), len(code))
    writer.finish()
    return file.getvalue()


def toc(**changes: Any) -> dict[str, Any]:
    """Return a table of contents of one code object of 8 bytes at 16, with ``changes``; those that are none go."""
    fields: dict[str, Any] = {
        "format_version": 1,
        "group_name": "group",
        "gfx_arch_family": "gfx906",
        "gfx_arches": ["gfx906"],
        "compression_scheme": "none",
        "blobs": [{"offset": 16, "size": 8}],
        "toc": {"lib/libx.so#0": {"gfx906": {"type": "hsaco", "ordinal": 0, "original_size": 8}}},
    }
    return {key: value for key, value in {**fields, **changes}.items() if value is not None}


def frames(*stored: bytes) -> bytes:
    """Return zstd frames as archives have them."""
    return struct.pack("<I", len(stored)) + b"".join(struct.pack("<I", len(frame)) + frame for frame in stored)


def by_hand(
    fields: object, blob: bytes = b"\x7fELFcode", *, version: int = 1, toc_offset: int | None = None, tail: bytes = b""
) -> bytes:
    """Return an archive with ``blob`` at 16 and the table of contents, encoded or not, behind it."""
    end = fields if isinstance(fields, bytes) else msgspec.msgpack.encode(fields)
    offset = 16 + len(blob) if toc_offset is None else toc_offset
    return struct.pack("<4sIQ", b"KPAK", version, offset) + blob + end + tail


def build_split_library(path: Path, markers: Sequence[Marker], units: Sequence[tuple[int, int]]) -> Path:
    """Link a library whose wrappers have an index and a marker, by its number, each; it has no code of its own."""
    section, starts = encode_markers(markers)
    source = [
        '.section .rocm_kpack_ref,"a"',
        "markers: .byte " + ",".join(map(str, section)),
        '.section .hipFatBinSegment,"aw"',
        *(f".long {_HIPK}, 1\n.quad markers + {starts[marker]}\n.long {index}, 0" for index, marker in units),
        '.section .hip_fatbin,"a",@nobits\n.balign 4096\n.skip 8192',
        '.section .note.GNU-stack,"",@progbits\n',
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-shared", "-nostdlib", "-x", "assembler", "-", "-o", str(path)]
    subprocess.run(command, input="\n".join(source).encode(), check=True)
    return path
