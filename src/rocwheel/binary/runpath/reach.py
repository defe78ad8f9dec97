"""How far the dynamic relocations seem to reach (gABI, "Relocation")."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from rocwheel.binary.elf.mapping import find_offset
from rocwheel.binary.elf.symbols import SymbolReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.elf.bytes import ElfBytes
    from rocwheel.binary.runpath.image import Image

__all__ = ["find_relocation_reach"]

_RELOCATION: Final = Struct("<QQq")
_CHUNK_RELOCATIONS = 1 << 12
_SYMBOL_SHIFT = 32
_DT_PLTRELSZ, _DT_RELA, _DT_RELASZ, _DT_JMPREL, _DT_RELACOUNT = 2, 7, 8, 23, 0x6FFFFFF9


def find_relocation_reach(source: ElfBytes, image: Image) -> int:
    """Return the highest sum of a relocation's address and its symbol's size, or 0.

    eu-elflint takes those bytes for the ones that the relocation changes, though a slot of the GOT has only eight. A
    read-only segment that begins there would count as text that is relocated.
    """
    symbols = SymbolReader(image.dynamic_file(source))
    sizes = list(symbols.sizes())
    return max(
        (address + sizes[symbol] for address, symbol in _relocations(source, image) if symbol < len(sizes)), default=0
    )


def _relocations(source: ElfBytes, image: Image) -> Iterator[tuple[int, int]]:
    """Yield address and symbol of the relocations that have a symbol; relative ones, which come first, have none."""
    dynamic = image.dynamic
    relative = (dynamic.value(_DT_RELACOUNT) or 0) * _RELOCATION.size
    for table, length, skip in (_DT_RELA, _DT_RELASZ, relative), (_DT_JMPREL, _DT_PLTRELSZ, 0):
        address, size = dynamic.value(table), dynamic.value(length)
        if address is not None and size is not None and skip < size:
            offset, _ = find_offset(source, image.segments, address, "the relocation table")
            source.require(offset, size, "the relocation table")
            yield from _read(source, offset + skip, (size - skip) // _RELOCATION.size)


def _read(source: ElfBytes, offset: int, count: int) -> Iterator[tuple[int, int]]:
    for start in range(0, count, _CHUNK_RELOCATIONS):
        size = min(_CHUNK_RELOCATIONS, count - start) * _RELOCATION.size
        chunk = source.read(offset + start * _RELOCATION.size, size, "the relocation table")
        for address, info, _ in _RELOCATION.iter_unpack(chunk):
            if symbol := info >> _SYMBOL_SHIFT:
                yield address, symbol
