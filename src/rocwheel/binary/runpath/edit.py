"""Setting the run path of an ELF file (``DT_RPATH``, ``DT_RUNPATH``; gABI, "Shared Object Dependencies")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.bytes import Buffer, ElfBytes, ElfError, viewing
from rocwheel.binary.elf.dynamic import RUN_PATH_TAGS, RunpathTag, is_program_only
from rocwheel.binary.elf.mapping import realigned
from rocwheel.binary.elf.patch import PatchWriter
from rocwheel.binary.runpath.image import Image, read_image
from rocwheel.binary.runpath.strings import place_string
from rocwheel.binary.runpath.tables import choose_tables, write_string, write_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.core.patch import FilePatch

__all__ = ["plan_runpath"]


def plan_runpath(data: Buffer, value: str, tag: RunpathTag, *, name: str) -> FilePatch:
    """Plan the change after which the file's run path is ``value``, under ``tag`` alone; empty removes it.

    The string is changed in place where it fits and no other string uses those bytes. Otherwise the string table moves
    to a segment at the file's end, which a later change finds again and extends. No other section moves, and a run
    path that is right already gives the identity. Segments of a library that glibc before 2.35 refuses, such as those
    of patchelf 0.18, get an alignment that it takes.

    Raises `ElfError` for a static program (from a static PIE a run path can be removed), for a code object, and for a
    damaged file; ``name`` is what it calls the file.
    """
    text = _encode(value, name)
    with viewing(data) as view:
        source = ElfBytes(view, name)
        image = _realigned(read_image(source))
        if text and image.is_static:
            raise _static(name)
        if _is_set(source, image, value, tag):
            return _with_entries(PatchWriter(source), source, image, image.dynamic.entries)
        return _plan(source, image, text, tag)


def _realigned(image: Image) -> Image:
    """Return the image with segments that every glibc maps, as far as that is possible and glibc maps them."""
    is_program = is_program_only(image.header.type, image.segments, image.dynamic)
    return msgspec.structs.replace(image, segments=realigned(image.segments, is_program=is_program))


def _encode(value: str, name: str) -> bytes:
    try:
        text = value.encode(errors="surrogateescape")
    except UnicodeEncodeError as e:
        raise ElfError(name, f"the run path {value!r} was asked for", expected="text or the bytes of a path") from e
    if b"\0" in text:
        raise ElfError(name, f"the run path {value!r} was asked for", expected="one without zero bytes")
    return text


def _static(name: str) -> ElfError:
    return ElfError(
        name,
        "a static program, which searches for no libraries, and which glibc ends at once if it has a run path",
        expected="a shared library or a dynamically linked program",
        remedy="Leave it as it is; an empty value removes the run path that it may have.",
    )


def _is_set(source: ElfBytes, image: Image, value: str, tag: RunpathTag) -> bool:
    present = [(other, offset) for other, offset in image.dynamic.entries if other in RUN_PATH_TAGS.values()]
    if not value or len(present) != 1:
        return not value and not present
    other, offset = present[0]
    return other == RUN_PATH_TAGS[tag] and image.strings.path(source, offset, "the run path") == value


def _plan(source: ElfBytes, image: Image, text: bytes, tag: RunpathTag) -> FilePatch:
    writer = PatchWriter(source)
    if not text:
        return _with_entries(writer, source, image, _without_run_path(image.dynamic.entries))
    placement = place_string(source, image, text)
    entries = _with_run_path(image.dynamic.entries, (RUN_PATH_TAGS[tag], placement.offset))
    tables = choose_tables(source, image, placement.table_size, len(entries))
    write_string(writer, source, image, tables, placement)
    write_tables(writer, source, image, tables, entries)
    return writer.patch()


def _with_entries(writer: PatchWriter, source: ElfBytes, image: Image, entries: Sequence[tuple[int, int]]) -> FilePatch:
    """Return the patch for a dynamic section with ``entries``, no more than it has."""
    write_tables(writer, source, image, choose_tables(source, image, 0, len(entries)), entries)
    return writer.patch()


def _without_run_path(entries: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return [entry for entry in entries if entry[0] not in RUN_PATH_TAGS.values()]


def _with_run_path(entries: Sequence[tuple[int, int]], wanted: tuple[int, int]) -> list[tuple[int, int]]:
    """Put the wanted entry where the first run path entry stands, else at the end."""
    position = next((index for index, (tag, _) in enumerate(entries) if tag in RUN_PATH_TAGS.values()), len(entries))
    return [*entries[:position], wanted, *_without_run_path(entries[position:])]
