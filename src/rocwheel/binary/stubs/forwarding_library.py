"""Forwarding libraries: shared libraries without code that load another one, where a wheel can't hold a symlink.

``dlopen("libx.so")`` finds nothing where a library ships as ``libx.so.1`` alone. A second copy under the plain name
would be loaded next to the first. A forwarding library is a few hundred bytes that name ``libx.so.1`` as NEEDED, with
the run path ``$ORIGIN``: opening it loads the one real library, and ``dlsym`` finds the symbols of its dependencies
(gABI, chapter 5).
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from rocwheel.binary.elf.dynamic import (
    DT_HASH,
    DT_NEEDED,
    DT_NULL,
    DT_SONAME,
    DT_STRSZ,
    DT_STRTAB,
    DT_SYMTAB,
    ENTRY_LAYOUT,
    RUN_PATH_TAGS,
)
from rocwheel.binary.elf.header import (
    ET_DYN,
    HEADER_SIZE,
    PF_R,
    PF_W,
    PT_DYNAMIC,
    PT_LOAD,
    SEGMENT_LAYOUT,
    Segment,
    pack_header,
)
from rocwheel.binary.elf.symbols import SYMBOL_LAYOUT

if TYPE_CHECKING:
    from rocwheel.binary.elf.dynamic import RunpathTag

__all__ = ["forwarding_name", "make_forwarding_library"]

_DT_SYMENT = 11
_PT_GNU_STACK = 0x6474E551
_PAGE = 0x1000
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
    names = [soname.encode(), forwarding_name(soname).encode(), b"$ORIGIN"]
    strings = b"\0" + b"\0".join(names) + b"\0"
    needed, own = 1, 2 + len(names[0])
    run_path = own + len(names[1]) + 1
    hash_at = HEADER_SIZE + 3 * SEGMENT_LAYOUT.size
    symbols_at = hash_at + len(_HASH)
    strings_at = symbols_at + SYMBOL_LAYOUT.size
    dynamic_at = -(-(strings_at + len(strings)) // 8) * 8
    rows = [
        (DT_NEEDED, needed), (DT_SONAME, own), (RUN_PATH_TAGS[tag], run_path), (DT_HASH, hash_at),
        (DT_STRTAB, strings_at), (DT_SYMTAB, symbols_at), (DT_STRSZ, len(strings)), (_DT_SYMENT, SYMBOL_LAYOUT.size),
        (DT_NULL, 0),
    ]  # fmt: skip
    dynamic = b"".join(ENTRY_LAYOUT.pack(*row) for row in rows)
    size = dynamic_at + len(dynamic)
    segments = [
        Segment(PT_LOAD, PF_R | PF_W, 0, 0, 0, size, size, _PAGE),
        Segment(PT_DYNAMIC, PF_R | PF_W, dynamic_at, dynamic_at, dynamic_at, len(dynamic), len(dynamic), 8),
        Segment(_PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0, 0, 16),
    ]
    head = pack_header(ET_DYN, machine, segment_count=len(segments)) + b"".join(s.pack() for s in segments)
    return (head + _HASH + bytes(SYMBOL_LAYOUT.size) + strings).ljust(dynamic_at, b"\0") + dynamic
