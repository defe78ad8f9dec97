"""Kpack archives and split libraries: by our writer, and by hand with whatever is wrong in them."""

from __future__ import annotations

import io
import struct
import subprocess
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.binary.bundles.device_code import iter_code_sources
from rocwheel.binary.kpack.archive import KernelKey, Scheme
from rocwheel.binary.kpack.markers import Marker, encode_markers
from rocwheel.binary.kpack.write import ArchiveSettings, KpackWriter, compress_kernel
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = [
    "KEYS",
    "SPLIT_NAME",
    "Discarding",
    "Memory",
    "build_split_library",
    "by_hand",
    "frames",
    "make_kpack",
    "split_two",
    "toc",
]

_HIPK = 0x4B504948
SPLIT_NAME = "lib/libtwo.so"
KEYS = {"gfx906": "gfx906|gfx906:xnack-|gfx906:xnack+", "gfx90a:xnack+": "gfx90a:xnack+", "gfx1030": "gfx1030"}
"""What each code object of `split_two` is listed under."""


class Memory(io.BytesIO):
    """A file in memory, as `KpackWriter` wants it."""

    def overwrite(self, offset: int, data: bytes, /) -> None:
        """Replace bytes that were written before."""
        position = self.tell()
        self.seek(offset)
        self.write(data)
        self.seek(position)


class Discarding:
    """A file of which nothing is kept but the number of its bytes."""

    size = 0

    def write(self, data: bytes | memoryview, /) -> None:
        """Count the bytes."""
        self.size += len(data)

    def overwrite(self, offset: int, data: bytes, /) -> None:
        """Require that the bytes were written before."""
        assert offset + len(data) <= self.size


def make_kpack(
    kernels: Mapping[tuple[str, int, str], bytes], *, scheme: Scheme = Scheme.ZSTD, level: int = 3, group: str = "group"
) -> bytes:
    """Return an archive by our writer; code under several targets is given with ``|`` between them."""
    file = Memory()
    writer = KpackWriter(file, ArchiveSettings(group, "gfx906", scheme), name="x.kpack")
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


def split_two(root: Path, *, lost: Sequence[tuple[int, str]] = (), renumber: bool = False) -> Path:
    """Make a split library of two units, with real code for three targets, in an archive for each, below ``root``.

    Code that is ``lost``, by unit and target, is in no archive; with ``renumber``, what is left for a target is
    numbered anew, as a fault of AMD's tool does.
    """
    codes: dict[str, dict[int, bytes]] = {}
    data = memoryview((FIXTURES / "v22/libtwo.plain.so").read_bytes())
    for unit, source in enumerate(iter_code_sources(data, name="libtwo.so")):
        for entry in source.bundle.plain.device_entries:
            if (unit, str(entry.target)) not in lost:
                code = bytes(source.view[source.bundle.start + entry.offset :][: entry.size])
                codes.setdefault(str(entry.target), {})[unit] = code
    (root / ".kpack").mkdir(parents=True)
    for target, units in codes.items():
        numbered = dict(enumerate(units.values())) if renumber else units
        keys = {(SPLIT_NAME, unit, KEYS[target]): code for unit, code in numbered.items()}
        (root / ".kpack" / f"two_{target.partition(':')[0]}.kpack").write_bytes(make_kpack(keys))
    marker = Marker(SPLIT_NAME, ("../.kpack/two_@GFXARCH@.kpack",))
    return build_split_library(root / "lib/libtwo.so", [marker], [(0, 0), (1, 0)])
