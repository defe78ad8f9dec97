"""How an ELF file was made and how it behaves in a process: facts that loading it does not need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.bytes import Buffer, ElfBytes, viewing
from rocwheel.binary.elf.dynamic import read_dynamic_file
from rocwheel.binary.elf.header import (
    EM_X86_64,
    PF_W,
    PF_X,
    PT_DYNAMIC,
    PT_INTERP,
    PT_LOAD,
    Header,
    Segment,
    read_header,
    read_segments,
)
from rocwheel.binary.elf.linkage import Linkage, read_linkage
from rocwheel.binary.elf.relocations import find_copied
from rocwheel.binary.elf.sections import read_section_table
from rocwheel.binary.elf.symbols import SymbolReader

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ElfTraits", "is_linker", "read_compilers", "read_elf_traits"]

_PT_GNU_STACK = 0x6474E551
_DT_TEXTREL, _DT_FLAGS, _DF_TEXTREL = 22, 30, 4
_COMMENT_LIMIT = 1 << 16


class ElfTraits(msgspec.Struct, frozen=True):
    """Traits of one dynamically linked file."""

    exports: frozenset[bytes] = frozenset()
    """Strong symbols that other libraries of the process can bind to, without their versions.

    Objects of other libraries that the loader copies into a program are left out.
    """
    linkage: Linkage = Linkage()
    """Every symbol that it defines or leaves to others, with its version."""
    compilers: tuple[str, ...] = ()
    """What the ``.comment`` section names: the compilers and the linker."""
    has_text_relocations: bool = False
    has_executable_stack: bool = False
    """Whether its ``PT_GNU_STACK`` asks for one. A library for x86-64 without that asks for one, too."""
    has_writable_code: bool = False
    """Whether a loaded segment is both writable and executable."""


def read_elf_traits(data: Buffer, *, name: str) -> ElfTraits:
    """Read the traits of a 64-bit little-endian ELF file; raises `ElfError`, naming it ``name``, when it is damaged."""
    with viewing(data) as view:
        source = ElfBytes(view, name)
        header = read_header(source)
        segments = read_segments(source, header)
        traits = ElfTraits(
            compilers=_read_comment(source),
            has_executable_stack=_has_executable_stack(header.machine, segments),
            has_writable_code=any(s.type == PT_LOAD and s.flags & PF_W and s.flags & PF_X for s in segments),
        )
        return _with_dynamic_traits(source, header, segments, traits)


def _has_executable_stack(machine: int, segments: Sequence[Segment]) -> bool:
    flags = [segment.flags for segment in segments if segment.type == _PT_GNU_STACK]
    kinds = {segment.type for segment in segments}
    # What glibc assumes differs by machine: DEFAULT_STACK_PROT_PERMS in sysdeps/*/stackinfo.h. Kernels load programs.
    is_assumed = machine == EM_X86_64 and PT_DYNAMIC in kinds and PT_INTERP not in kinds
    return bool(flags[-1] & PF_X) if flags else is_assumed


def is_linker(text: str) -> bool:
    """Return whether a text of ``.comment`` names a linker: ``Linker: LLD 19.1.7``, ``mold 2.30.0``, ``GNU gold``."""
    return text.startswith(("Linker:", "mold ", "GNU gold"))


def read_compilers(data: Buffer, *, name: str) -> tuple[str, ...]:
    """Return what the ``.comment`` section of an ELF file for any machine names: its compilers, and its linker.

    None where it was stripped of that section. Raises `ElfError` when the section headers are damaged.
    """
    with viewing(data) as view:
        return _read_comment(ElfBytes(view, name))


def _with_dynamic_traits(
    source: ElfBytes, header: Header, segments: tuple[Segment, ...], traits: ElfTraits
) -> ElfTraits:
    file = read_dynamic_file(source, segments)
    if file is None:
        return traits
    is_program = any(segment.type == PT_INTERP for segment in segments)
    copied = find_copied(file, header.machine) if is_program else frozenset()
    flagged = (file.table.value(_DT_FLAGS) or 0) & _DF_TEXTREL
    return msgspec.structs.replace(
        traits,
        exports=SymbolReader(file).exports(copied),
        linkage=read_linkage(file),
        has_text_relocations=bool(flagged) or file.table.value(_DT_TEXTREL) is not None,
    )


def _read_comment(source: ElfBytes) -> tuple[str, ...]:
    """Return the NUL-terminated strings of ``.comment``, each once; none in a file without section headers."""
    for section in read_section_table(source, read_header(source)):
        if section.name == ".comment" and section.has_bytes:
            text = source.read(section.offset, min(section.size, _COMMENT_LIMIT), "the compilers' names")
            return tuple(dict.fromkeys(part.decode(errors="replace") for part in text.split(b"\0") if part))
    return ()
