"""Where a run path goes in the dynamic string table, whose strings may share their bytes (gABI, "String Table")."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.bytes import ElfError
from rocwheel.binary.elf.dynamic import DT_NEEDED, DT_SONAME
from rocwheel.binary.elf.sections import SHT_DYNAMIC, SHT_DYNSYM, SHT_GNU_VERDEF, SHT_GNU_VERNEED
from rocwheel.binary.elf.symbols import SymbolReader
from rocwheel.binary.elf.versions import VersionReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.elf.bytes import ElfBytes
    from rocwheel.binary.runpath.image import Image

__all__ = ["StringPlace", "place_string"]

# DT_SUNW_AUXILIARY, DT_SUNW_FILTER, DT_CONFIG, DT_DEPAUDIT, DT_AUDIT, DT_AUXILIARY, DT_USED, DT_FILTER
_RARE_STRINGS = {0x6000000D, 0x6000000F, 0x6FFFFEFA, 0x6FFFFEFB, 0x6FFFFEFC, 0x7FFFFFFD, 0x7FFFFFFE, 0x7FFFFFFF}
_STRING_TAGS = {DT_NEEDED, DT_SONAME} | _RARE_STRINGS
_KNOWN_USERS = {SHT_DYNSYM, SHT_DYNAMIC, SHT_GNU_VERDEF, SHT_GNU_VERNEED}


class StringPlace(msgspec.Struct, frozen=True):
    """The place of a run path in the string table, and the bytes to write for it (none where it stands already)."""

    offset: int
    text: bytes
    table_size: int
    """What the table's size has to be, at the least; more than it is when the text doesn't fit."""


def place_string(source: ElfBytes, image: Image, text: bytes) -> StringPlace:
    """Choose a place for ``text`` that changes no other string.

    1. Where it stands already, alone or as the end of another string.
    2. Over the present run path, when no other string uses those bytes and there is room for it, or when the table
       ends there and so can grow.
    3. In the zero bytes at the table's end, when no string begins there.
    4. At the table's end, which then has to grow.

    Raises `ElfError` for a table that doesn't end with a zero byte.
    """
    strings = image.strings
    table = source.read(strings.offset, strings.size, "the dynamic string table")
    if not table.endswith(b"\0"):
        raise ElfError(source.name, "a dynamic string table that doesn't end with a zero byte")
    wanted = text + b"\0"
    present = image.run_path_offset
    if present is not None and table.startswith(wanted, present):
        return StringPlace(present, b"", strings.size)
    found = table.find(wanted)
    if found >= 0:
        return StringPlace(found, b"", strings.size)
    return _place_new(source, image, table, wanted)


def _place_new(source: ElfBytes, image: Image, table: bytes, wanted: bytes) -> StringPlace:
    present = image.run_path_offset
    free = len(table.rstrip(b"\0")) + 1
    if present is not None:
        old_end = table.index(b"\0", present) + 1
        room_end = len(table) if old_end == free else old_end
        fits = present + len(wanted) <= room_end or room_end == len(table)
        if fits and not _is_shared(source, image, table, present, room_end):
            padded = wanted.ljust(old_end - present, b"\0")
            return StringPlace(present, padded, max(len(table), present + len(wanted)))
    start = len(table) if _is_shared(source, image, table, free, len(table)) else free
    return StringPlace(start, wanted, max(len(table), start + len(wanted)))


def _is_shared(source: ElfBytes, image: Image, table: bytes, start: int, end: int) -> bool:
    """Return whether anything but the run path uses the bytes of the table from ``start`` to ``end``."""
    if start >= end:
        return False
    if table[start - 1] != 0 or _has_unknown_users(image):
        return True
    return any(start <= offset < end for offset in _string_offsets(source, image))


def _has_unknown_users(image: Image) -> bool:
    index = image.strings_section
    if index is None:
        return False
    linked = (section.type for section in image.sections if section.link == index)
    return index == image.header.section_names_index or any(kind not in _KNOWN_USERS for kind in linked)


def _string_offsets(source: ElfBytes, image: Image) -> Iterator[int]:
    """Return where in the table every name of the file begins, except its run path."""
    file = image.dynamic_file(source)
    versions = VersionReader(file)
    return chain(
        (value for tag, value in image.dynamic.entries if tag in _STRING_TAGS),
        chain.from_iterable(versions.need_offsets()),
        versions.parent_offsets(),
        SymbolReader(file).name_offsets(),
    )
