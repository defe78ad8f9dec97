"""What pyelftools reads of the symbols, compilers and segments of an ELF file, held against traits that rocwheel reads.

The rules by which loaders bind symbols are written down here once more; the tables are read by pyelftools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from elftools.elf import enums

from trials.fuzz.beside.elf_facts import same
from trials.fuzz.beside.other_elf import OtherElf, ask, number_of, open_other, without_sections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rocwheel.binary.elf.facts import ElfTraits
    from rocwheel.binary.elf.symbols import Linkage

__all__ = ["compare_traits"]

_WRITABLE, _EXECUTABLE, _TEXT_RELOCATIONS = 2, 1, 4
_STRONG = {"STT_OBJECT", "STT_FUNC"}
_NAMED = {"STT_NOTYPE", "STT_OBJECT", "STT_FUNC", "STT_COMMON", "STT_TLS", "STT_LOOS"}
_DEFINING = {"STB_GLOBAL", "STB_WEAK", "STB_LOOS"}
_HIDDEN = 0x8000


def compare_traits(traits: ElfTraits, data: bytes, read: Callable[..., ElfTraits]) -> None:
    """Require that pyelftools, where it can read the file, has the same traits."""
    whole = open_other(data)
    compilers = ask(lambda: _compilers(whole)) if whole else None
    if compilers is not None:
        same("compilers", traits.compilers, compilers)
    bare = without_sections(data)
    other, traits = open_other(bare), read(bare, name="input without section headers")
    if other is None:
        return
    flags = [(one["p_type"], one["p_flags"]) for one in other.segments]
    stacks = _has_executable_stack(bare, flags)
    codes = any(kind == "PT_LOAD" and value & _EXECUTABLE and value & _WRITABLE for kind, value in flags)
    same("executable stack and writable code", (traits.has_executable_stack, traits.has_writable_code), (stacks, codes))
    if other.dynamic is not None:
        _compare_dynamic(traits, other)


def _has_executable_stack(data: bytes, flags: Sequence[tuple[object, int]]) -> bool:
    """Return what the last ``PT_GNU_STACK`` asks for; without one, glibc assumes it of libraries for x86-64."""
    asked = [value for kind, value in flags if kind == "PT_GNU_STACK"]
    kinds = {kind for kind, _ in flags}
    is_library = "PT_DYNAMIC" in kinds and "PT_INTERP" not in kinds
    return bool(asked[-1] & _EXECUTABLE) if asked else is_library and data[18:20] == b"\x3e\0"  # EM_X86_64


def _compilers(other: OtherElf) -> tuple[str, ...]:
    """Return the texts of ``.comment``; pyelftools decompresses it where it is marked so, which no linker does.

    It also reads names behind the end of their table, which readelf doesn't.
    """
    named = range(1, other.file.get_section(other.file.get_shstrndx())["sh_size"])
    for section in other.file.iter_sections():
        is_comment = section.name == ".comment" and section["sh_name"] in named
        if is_comment and section["sh_type"] not in {"SHT_NULL", "SHT_NOBITS"}:
            if section.compressed:
                raise ValueError
            texts = section.data().split(b"\0")
            return tuple(dict.fromkeys(text.decode(errors="replace") for text in texts if text))
    return ()


def _compare_dynamic(traits: ElfTraits, other: OtherElf) -> None:
    def relocated() -> bool:
        has_tag = any(number == enums.ENUM_D_TAG["DT_TEXTREL"] for number, _ in other.tags)
        return has_tag or bool((other.value("DT_FLAGS") or 0) & _TEXT_RELOCATIONS)

    answer = ask(relocated)
    if answer is not None:
        same("text relocations", traits.has_text_relocations, answer)
    symbols = ask(other.symbols)
    if symbols is not None:
        _compare_exports(traits, *symbols, other)
        _compare_linkage(traits.linkage, *symbols, other)


def _is_visible(symbol: Any) -> bool:
    return number_of(enums.ENUM_ST_VISIBILITY, symbol["st_other"]["visibility"]) & 3 in {0, 3}


def _name(symbol: Any) -> bytes:
    return bytes(symbol.name.encode(errors="surrogateescape"))


def _compare_set(what: str, own: frozenset[Any], theirs: frozenset[Any], *, is_whole: bool) -> None:
    """Compare sets; where pyelftools doesn't know of all symbols, those that it knows are to be there."""
    same(what, sorted(own) if is_whole else sorted(own & theirs), sorted(theirs))


def _compare_exports(traits: ElfTraits, symbols: list[Any], is_whole: bool, other: OtherElf) -> None:
    found = frozenset(
        _name(one)
        for one in symbols
        if one["st_shndx"] != "SHN_UNDEF"
        and one["st_info"]["bind"] == "STB_GLOBAL"
        and one["st_info"]["type"] in _STRONG
        and _is_visible(one)
        and one["st_name"] < len(other.strings)
    )
    _compare_set("exports", traits.exports, found, is_whole=is_whole)


def _compare_linkage(own: Linkage, symbols: list[Any], is_whole: bool, other: OtherElf) -> None:
    versions = ask(lambda: _versions(other))
    indices = ask(lambda: other.version_indices(len(symbols)))
    if versions is None or indices is None:
        return
    defined, wanted = set(), set()
    for name, symbol, version in _with_versions(symbols, indices, versions, other):
        library, text = version or ("", "")
        if symbol["st_shndx"] != "SHN_UNDEF":
            defined.add(name if version is None or library else name + b"@" + text.encode())
        else:
            wanted.add((name.decode(errors="replace"), text, library))
    # Which version of a symbol is the default one is a rule of glibc's, of which pyelftools knows nothing.
    definitions = frozenset(name.replace(b"@@", b"@") for name in own.definitions)
    theirs = frozenset(name.replace(b"@@", b"@") for name in defined)
    _compare_set("definitions", definitions, theirs, is_whole=is_whole)
    references = frozenset((one.name, one.version, one.library) for one in own.references)
    _compare_set("references", references, frozenset(wanted), is_whole=is_whole)


def _versions(other: OtherElf) -> dict[int, tuple[str, str]]:
    """Return library and name of each version by its index; raises `ValueError` where two have the same one."""
    found = [(index, ("", name)) for name, index in other.definitions()]
    found += [(index, (library, name)) for library, name, index in other.needs()]
    by_index = dict(found)
    if len(by_index) < len(found):
        raise ValueError
    return by_index


def _with_versions(
    symbols: list[Any], indices: list[int], versions: dict[int, tuple[str, str]], other: OtherElf
) -> Iterator[tuple[bytes, Any, tuple[str, str] | None]]:
    for number, one in enumerate(symbols):
        kind, bind, section = one["st_info"]["type"], one["st_info"]["bind"], one["st_shndx"]
        if kind not in _NAMED or not _is_visible(one) or not 0 < one["st_name"] < len(other.strings):
            continue
        has_place = one["st_value"] or section == "SHN_ABS" or kind == "STT_TLS"
        if bind == "STB_GLOBAL" if section == "SHN_UNDEF" else bind in _DEFINING and has_place:
            index = indices[number] & ~_HIDDEN if number < len(indices) else 0
            yield _name(one), one, versions.get(index)
