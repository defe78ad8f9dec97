"""Forwarding libraries: shared libraries without code that load another one, where a wheel can't hold a symlink.

``dlopen("libx.so")`` finds nothing where a library ships as ``libx.so.1`` alone. A second copy under the plain name
would be loaded next to the first. A forwarding library is a few hundred bytes that name ``libx.so.1`` as NEEDED, with
the run path ``$ORIGIN``: opening it loads the one real library, and ``dlsym`` finds the symbols of its dependencies
(gABI, chapter 5).
"""

from __future__ import annotations

import re
import struct

from rocwheel.binary.elf.dynamic import RunpathTag

__all__ = ["forwarding_name", "make_forwarding_library"]

_EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
_PHDR = struct.Struct("<IIQQQQQQ")
_DYN = struct.Struct("<QQ")
_SYM_SIZE = 24
_PAGE = 0x1000
_ET_DYN = 3
_PT_LOAD, _PT_DYNAMIC, _PT_GNU_STACK = 1, 2, 0x6474E551
_PF_R, _PF_W = 4, 2
_DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = (
    1,
    4,
    5,
    6,
    10,
    11,
    14,
    15,
    29,
)
# One bucket, one symbol, which is the undefined one: nothing to find here.
_HASH = struct.pack("<4I", 1, 1, 0, 0)


def forwarding_name(soname: str) -> str:
    """Return the name of a SONAME without its version: ``libx.so`` for ``libx.so.1``."""
    return re.sub(r"\.so\.[0-9.]+$", ".so", soname)


def make_forwarding_library(soname: str, machine: int, tag: RunpathTag) -> bytes:
    """Return an ELF shared library for ``machine`` whose only content is that it needs ``soname``.

    Its run path, under ``tag``, is its own folder.

    Layout: ELF header, three program headers (a readable and writable segment over the whole file, the dynamic section,
    a stack that is not executable), hash table, symbol table, strings, dynamic section. No section headers.
    """
    strings = b"\0" + b"\0".join(text.encode() for text in (soname, forwarding_name(soname), "$ORIGIN")) + b"\0"
    needed, own = 1, 2 + len(soname.encode())
    run_path = own + len(forwarding_name(soname).encode()) + 1
    hash_at = _EHDR.size + 3 * _PHDR.size
    symbols_at = hash_at + len(_HASH)
    strings_at = symbols_at + _SYM_SIZE
    dynamic_at = -(-(strings_at + len(strings)) // 8) * 8
    run_path_tag = _DT_RPATH if tag is RunpathTag.RPATH else _DT_RUNPATH
    rows = [
        (_DT_NEEDED, needed), (_DT_SONAME, own), (run_path_tag, run_path), (_DT_HASH, hash_at),
        (_DT_STRTAB, strings_at), (_DT_SYMTAB, symbols_at), (_DT_STRSZ, len(strings)), (_DT_SYMENT, _SYM_SIZE), (0, 0),
    ]  # fmt: skip
    dynamic = b"".join(_DYN.pack(tag, value) for tag, value in rows)
    size = dynamic_at + len(dynamic)
    identity = b"\x7fELF\2\1\1" + bytes(9)
    header = _EHDR.pack(identity, _ET_DYN, machine, 1, 0, _EHDR.size, 0, 0, _EHDR.size, _PHDR.size, 3, 0, 0, 0)
    segments = (
        _PHDR.pack(_PT_LOAD, _PF_R | _PF_W, 0, 0, 0, size, size, _PAGE)
        + _PHDR.pack(_PT_DYNAMIC, _PF_R | _PF_W, dynamic_at, dynamic_at, dynamic_at, len(dynamic), len(dynamic), 8)
        + _PHDR.pack(_PT_GNU_STACK, _PF_R | _PF_W, 0, 0, 0, 0, 0, 16)
    )
    return (header + segments + _HASH + bytes(_SYM_SIZE) + strings).ljust(dynamic_at, b"\0") + dynamic
