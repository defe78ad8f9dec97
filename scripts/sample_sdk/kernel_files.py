"""Files by which libraries find device code at run time: kernel indexes and kernel packs."""

from __future__ import annotations

import msgspec

__all__ = ["index_kernels", "pack_kernels"]


def index_kernels(target: str) -> bytes:
    """Return the MessagePack index by which a library finds its kernel file for a GPU."""
    predicate = {"type": "Processor", "value": target}
    rows = [{"predicate": predicate, "value": f"TensileLibrary_Type_SS_Contraction_{target}"}]
    return msgspec.msgpack.encode({"version": "4.33.0", "library": {"type": "Hardware", "rows": rows}})


def pack_kernels(member: str, target: str, code_object: bytes) -> bytes:
    """Return a kernel pack (.kpack, version 1, stored) of one code object."""
    table = {
        "format_version": 1,
        "group_name": "blas_lib",
        "gfx_arch_family": target,
        "gfx_arches": [target],
        "toc": {member: {target: {"type": "hsaco", "ordinal": 0, "original_size": len(code_object)}}},
        "compression_scheme": "none",
        "blobs": [{"offset": 64, "size": len(code_object)}],
    }
    header = b"KPAK" + (1).to_bytes(4, "little") + (64 + len(code_object)).to_bytes(8, "little")
    return header.ljust(64, b"\0") + code_object + msgspec.msgpack.encode(table)
