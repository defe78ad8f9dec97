"""ELF files: reading them beside pyelftools, and editing their run paths."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

from elftools.common.exceptions import ELFError as OtherError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from fuzz.fat_files import TOKENS, check_join, check_split, check_trim, host_of
from fuzz.harness import Harness, require
from fuzz.seeds import fixtures
from rocwheel.binary.elf.bytes import ElfError
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.elf.traits import read_compilers, read_elf_traits
from rocwheel.binary.runpath.edit import plan_runpath
from rocwheel.foundation.files.reading.file_view import join_data
from rocwheel.linking.obstacles import find_obstacle

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.binary.elf.facts import Elf

_VALUES = ("", "$ORIGIN", "$ORIGIN/../lib:$ORIGIN/../../_rocm_sdk_core/lib", "x" * 700)
_TAGS = (RunpathTag.RUNPATH, RunpathTag.RPATH)
_MOST_BYTES = 64 << 20
_REFUSALS = (
    OtherError,
    ValueError,
    KeyError,
    IndexError,
    AttributeError,
    AssertionError,
    TypeError,
    struct.error,
    OverflowError,
)
"""What pyelftools raises for damaged files, on purpose or not."""
_KEPT = ("soname", "needed", "filtees", "interpreter", "version_needs", "version_definitions", "build_id")
"""What no edit changes."""
_LARGEST = 1 << 16


def _facts(data: bytes) -> None:
    elf = read_elf(data, name="input")
    if elf.is_dynamic and elf.is_host_code:
        _compare(data)


def _compare(data: bytes) -> None:
    """Require that pyelftools, where it can read the file, has the same answer.

    Both read the file without section headers: strings of damaged files may lie where these are named.
    """
    bare = _without_sections(data)
    elf, other = read_elf(bare, name="input without section headers"), _ask_pyelftools(bare)
    if other is None:
        return
    own = {"DT_SONAME": [elf.soname] * (elf.soname is not None), "DT_NEEDED": list(elf.needed)}
    own |= {"DT_RPATH": [elf.rpath] * (elf.rpath is not None), "DT_RUNPATH": [elf.runpath] * (elf.runpath is not None)}
    for tag, values in own.items():
        theirs = other[tag][-1:] if tag != "DT_NEEDED" else other[tag]
        require(values == theirs, f"{tag}: {values}, pyelftools has {theirs}")


def _ask_pyelftools(data: bytes) -> dict[str, list[str]] | None:
    """Return the strings of the dynamic section by segments alone; none where pyelftools can't read them.

    Nor can it where a file has more than one string table: it takes the first, loaders the last.
    """
    found: dict[str, list[str]] = {"DT_SONAME": [], "DT_NEEDED": [], "DT_RPATH": [], "DT_RUNPATH": []}
    try:
        file = ELFFile(io.BytesIO(data))
        segment = next(segment for segment in file.iter_segments("PT_DYNAMIC"))
        assert isinstance(segment, DynamicSegment)
        if sum(1 for _ in segment.iter_tags("DT_STRTAB")) > 1:
            return None
        for tag in segment.iter_tags():
            if tag.entry.d_tag in found:
                text = getattr(tag, tag.entry.d_tag.removeprefix("DT_").lower())
                found[tag.entry.d_tag].append(text)
    except (*_REFUSALS, StopIteration):
        return None
    return found


def _without_sections(data: bytes) -> bytes:
    """Return the file without section headers: pyelftools would follow them, not the addresses that loaders take."""
    changed = bytearray(data)
    changed[0x28:0x30] = bytes(8)
    changed[0x3C:0x40] = bytes(4)
    return bytes(changed)


def _traits(data: bytes) -> None:
    """Read what the audit asks of a file; the loader's judgement and the compilers need less of it."""
    find_obstacle(data[:64])
    traits = read_elf_traits(data, name="input")
    require(read_compilers(data, name="input") == traits.compilers, "other compilers by themselves")


def _edit_run_path(data: bytes) -> None:
    """Set a run path, chosen by the first byte, and require that nothing else changed and that it is found again."""
    choice, file = data[:1] or b"\0", data[1:]
    value, tag = _VALUES[choice[0] % 4], _TAGS[choice[0] // 4 % 2]
    patch = plan_runpath(file, value, tag, name="input")
    if patch.size > _MOST_BYTES:  # programs get up to a gigabyte of zeros, which are a hole of the file
        return
    new = join_data(patch.apply(memoryview(file)))
    after = read_elf(new, name="edited")
    found = after.runpath if tag is RunpathTag.RUNPATH else after.rpath
    other = after.rpath if tag is RunpathTag.RUNPATH else after.runpath
    require((found or "", other) == (value, None), f"run paths {found!r} and {other!r} where {value!r} was set")
    _compare(new)
    again = plan_runpath(new, value, tag, name="edited")
    require(again.is_identity, "a run path that is set already is changed again")
    try:
        before = read_elf(file, name="input")
    except ElfError:
        return
    _require_same(before, after, _KEPT)


def _require_same(before: Elf, after: Elf, fields: Iterable[str]) -> None:
    for field in fields:
        old, now = getattr(before, field), getattr(after, field)
        require(old == now, f"{field} was {old!r} and is {now!r}")


def _require_library_kept(data: bytes, made: bytes) -> None:
    """Require that a file whose device code was changed asks the same of the loader."""
    before, after = read_elf(data, name="input"), read_elf(made, name="output")
    _require_same(before, after, (*_KEPT, "rpath", "runpath"))
    if after.is_dynamic:
        _compare(made)


def _split(data: bytes) -> None:
    check_split(data, _require_library_kept)


def _join(data: bytes) -> None:
    check_join(data, _require_library_kept)


def _trim(data: bytes) -> None:
    check_trim(data)


def _elf_seeds() -> list[bytes]:
    return fixtures("elf/*", "v18/libtwo.ccob.so")


def _fat_seeds() -> list[bytes]:
    """Return libraries with two bundles, compressed and not, and what is left of them without device code."""
    fat = fixtures("v18/libtwo.ccob.so", "v22/libtwo.ccob.so", "v23/libtwo.plain.so", largest=_LARGEST)
    return [*fat, *map(host_of, fat)]


def _edit_seeds() -> list[bytes]:
    return [bytes([number % 8]) + data for number, data in enumerate(_elf_seeds())]


HARNESSES = (
    Harness("elf.facts", _facts, _elf_seeds, (ElfError,)),
    Harness("elf.traits", _traits, _elf_seeds, (ElfError,)),
    Harness("elf.run_path", _edit_run_path, _edit_seeds, (ElfError,)),
    Harness("elf.join", _join, _fat_seeds, tokens=TOKENS, largest=_LARGEST),
    Harness("elf.split", _split, _fat_seeds, tokens=TOKENS, largest=_LARGEST),
    Harness("elf.trim", _trim, _fat_seeds, tokens=TOKENS, largest=_LARGEST),
)
"""See `fuzz.harness.Harness`."""
