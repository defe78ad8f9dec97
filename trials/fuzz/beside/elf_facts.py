"""What pyelftools reads of a linked ELF file, held against the facts that rocwheel reads.

Facts that loaders go by are read of the file without section headers: strings of damaged files may lie where these are
named. Where pyelftools can't read a part, or loaders read it otherwise by their rules, that part isn't compared.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from elftools.elf import enums
from elftools.elf.segments import InterpSegment, NoteSegment

from trials.fuzz.beside.other_elf import OtherElf, ask, number_of, open_other, without_sections
from trials.fuzz.harness import require

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocwheel.binary.elf.facts import Elf
    from rocwheel.binary.elf.header import ElfSection

__all__ = ["compare_facts", "compare_sections", "same"]

_SEGMENT_TYPES = {
    **enums.ENUM_P_TYPE_BASE,
    **enums.ENUM_P_TYPE_ARM,
    **enums.ENUM_P_TYPE_AARCH64,
    **enums.ENUM_P_TYPE_MIPS,
    **enums.ENUM_P_TYPE_RISCV,
}
_SECTION_TYPES = {
    **enums.ENUM_SH_TYPE_BASE,
    **enums.ENUM_SH_TYPE_AMD64,
    **enums.ENUM_SH_TYPE_ARM,
    **enums.ENUM_SH_TYPE_AARCH64,
    **enums.ENUM_SH_TYPE_RISCV,
    **enums.ENUM_SH_TYPE_MIPS,
}
_SEGMENT = ("p_flags", "p_offset", "p_vaddr", "p_paddr", "p_filesz", "p_memsz", "p_align")
_SECTION = ("sh_flags", "sh_addr", "sh_offset", "sh_size", "sh_link", "sh_info", "sh_addralign", "sh_entsize")
_MOST_NOTES, _LONGEST_BUILD_ID, _EIGHT = 1 << 10, 64, 8


def same(what: str, own: object, theirs: object) -> None:
    """Require that an answer is pyelftools' answer."""
    require(own == theirs, f"{what}: {own}, pyelftools has {theirs}")


def compare_facts(data: bytes, read: Callable[..., Elf]) -> None:
    """Require that pyelftools, where it can read the file, has the same facts."""
    bare = without_sections(data)
    elf, other = read(bare, name="input without section headers"), open_other(bare)
    if other is None:
        return
    _compare_headers(elf, other)
    _compare_part("interpreter", elf.interpreter, lambda: _interpreter(other))
    _compare_part("build id", elf.build_id, lambda: _build_id(other))
    same("a dynamic section", elf.is_dynamic, other.dynamic is not None)
    if other.dynamic is not None:
        _compare_dynamic(elf, other)


def _compare_part(what: str, own: object, question: Callable[[], tuple[object]]) -> None:
    answer = ask(question)
    if answer is not None:
        same(what, own, answer[0])


def _compare_headers(elf: Elf, other: OtherElf) -> None:
    header = other.file.header
    theirs = (
        number_of(enums.ENUM_E_TYPE, header["e_type"]),
        number_of(enums.ENUM_E_MACHINE, header["e_machine"]),
        number_of(enums.ENUM_EI_OSABI, header["e_ident"]["EI_OSABI"]),
    )
    same("type, machine and ABI", (elf.type, elf.machine, elf.osabi), theirs)
    own = [
        (one.type, one.flags, one.offset, one.address, one.physical_address, one.file_size, one.memory_size,
         one.alignment) for one in elf.segments
    ]  # fmt: skip
    segments = [
        (number_of(_SEGMENT_TYPES, one["p_type"]), *(one[field] for field in _SEGMENT)) for one in other.segments
    ]
    same("segments", own, segments)


def _interpreter(other: OtherElf) -> tuple[str | None]:
    found = next((one for one in other.segments if isinstance(one, InterpSegment)), None)
    return (found.get_interp_name() if found else None,)


def _build_id(other: OtherElf) -> tuple[str | None]:
    """Return the build id; raises `ValueError` for notes that pyelftools reads otherwise.

    It pads those of segments that are aligned to 8 bytes as if they were to 4, and reads on where a note runs past
    its segment, and more notes than rocwheel does.
    """
    segments = [one for one in other.segments if isinstance(one, NoteSegment)]
    if any(one["p_align"] == _EIGHT for one in segments):
        raise ValueError
    notes = [(one["p_offset"] + one["p_filesz"], note) for one in segments for note in one.iter_notes()]
    ends = [(note["n_offset"] + 12 + -(-note["n_namesz"] // 4) * 4 + note["n_descsz"], end) for end, note in notes]
    if len(notes) > _MOST_NOTES or any(mine > end for mine, end in ends):
        raise ValueError
    names = [
        note["n_desc"]
        for _, note in notes
        if (note["n_type"], note["n_name"], note["n_namesz"]) == ("NT_GNU_BUILD_ID", "GNU", 4)
        and note["n_descsz"] <= _LONGEST_BUILD_ID
    ]
    return (names[0] if names else None,)


def _compare_dynamic(elf: Elf, other: OtherElf) -> None:
    for tag, value in (("DT_SONAME", elf.soname), ("DT_RPATH", elf.rpath), ("DT_RUNPATH", elf.runpath)):
        _compare_part(tag, value, partial(_last_text, other, tag))
    _compare_part("DT_NEEDED", list(elf.needed), lambda: (other.texts("DT_NEEDED"),))
    _compare_part("filtees", [(one.name, one.is_optional) for one in elf.filtees], lambda: (_filtees(other),))
    needs = [(one.library, one.version) for one in elf.version_needs]
    _compare_part("version needs", needs, lambda: ([(library, name) for library, name, _ in other.needs()],))
    definitions = list(elf.version_definitions)
    _compare_part("version definitions", definitions, lambda: ([name for name, _ in other.definitions()],))
    _compare_dlopen(elf, other)


def _last_text(other: OtherElf, tag: str) -> tuple[str | None]:
    """Return the text of a tag: of several, loaders take the last."""
    texts = other.texts(tag)
    return (texts[-1] if texts else None,)


def _filtees(other: OtherElf) -> list[tuple[str, bool]]:
    kinds = {enums.ENUM_D_TAG["DT_FILTER"]: False, enums.ENUM_D_TAG["DT_AUXILIARY"]: True}
    return [(other.text(value), kinds[tag]) for tag, value in other.tags if tag in kinds]


def _compare_dlopen(elf: Elf, other: OtherElf) -> None:
    answer = ask(other.symbols)
    if answer is None:
        return
    symbols, is_whole = answer
    found = any(one.name in {"dlopen", "dlmopen"} and one["st_shndx"] == "SHN_UNDEF" for one in symbols)
    if is_whole or found:
        same("imports of dlopen", elf.imports_dlopen, found)


def compare_sections(own: Sequence[ElfSection], data: bytes) -> None:
    """Require that pyelftools, where it can read the section headers, has the same sections."""
    other = open_other(data)
    sections = ask(lambda: list(other.file.iter_sections())) if other else None
    if other is None or sections is None:
        return
    theirs = [(number_of(_SECTION_TYPES, one["sh_type"]), *(one[field] for field in _SECTION)) for one in sections]
    mine = [
        (one.type, one.flags, one.address, one.offset, one.size, one.link, one.info, one.alignment, one.entry_size)
        for one in own
    ]
    same("sections", mine, theirs)
    _compare_names(own, [one.name for one in sections], other)


def _compare_names(own: Sequence[ElfSection], theirs: Sequence[str], other: OtherElf) -> None:
    """Compare names that begin in their table: pyelftools reads on behind it, and at its start, too, for no name."""
    size = own[other.file.get_shstrndx()].size if own else 0
    names = [(one.name, name) for one, name in zip(own, theirs, strict=True) if 0 < one.name_offset < size]
    same("names of sections", [name for name, _ in names], [name for _, name in names])
