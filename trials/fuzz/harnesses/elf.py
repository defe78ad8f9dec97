"""ELF files: reading them beside pyelftools, and editing their run paths."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING

from rocwheel.artifacts.artifact import ArtifactName, FileKind
from rocwheel.artifacts.catalog import Entry
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import read_compilers, read_elf, read_elf_traits
from rocwheel.binary.elf.header import SHF_ALLOC, SHT_NOBITS, ElfError, read_sections
from rocwheel.binary.platform import LINUX_HOSTS, Platform
from rocwheel.binary.runpath import plan_runpath
from rocwheel.build.file_facts import glance_platform
from rocwheel.core.reading import FileRange, join_data
from rocwheel.environment.loader import find_obstacle
from trials.fuzz.beside.elf_facts import compare_facts, compare_sections
from trials.fuzz.beside.elf_traits import compare_traits
from trials.fuzz.beside.moved import compare_moved
from trials.fuzz.beside.moved_words import MOVED_SEEDS, compare_moved_words
from trials.fuzz.fat_files import TOKENS, check_join, check_split, check_trim, host_of
from trials.fuzz.harness import Harness, require
from trials.fuzz.seeds.files import fixtures, on_disk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.binary.elf.facts import Elf

_VALUES = ("", "$ORIGIN", "$ORIGIN/../lib:$ORIGIN/../../_rocm_sdk_core/lib", "x" * 700)
_TAGS = (RunpathTag.RUNPATH, RunpathTag.RPATH)
_MOST_BYTES = 64 << 20
_KEPT = ("soname", "needed", "filtees", "interpreter", "version_needs", "version_definitions", "build_id")
"""What no edit changes."""
_LARGEST = 1 << 16


def _facts(data: bytes) -> None:
    compare_moved(data)
    elf = read_elf(data, name="input")
    if elf.is_host_code:
        compare_facts(data, read_elf)
    is_for_linux = _platform_of(data) is Platform.LINUX
    require(is_for_linux == (elf.machine in LINUX_HOSTS), f"machine {elf.machine} is for Linux: {is_for_linux}")
    with suppress(ElfError):
        compare_sections(read_sections(data, name="input"), data)


def _platform_of(data: bytes) -> Platform:
    """Return the system of a tree whose only file an input is; Windows where that doesn't tell."""
    source = FileRange.whole(on_disk(data, "input.so"))
    entry = Entry("lib/input.so", FileKind.FILE, ArtifactName("a", "lib", "generic"), 0o644, source)
    return glance_platform([entry], Platform.WINDOWS)


def _traits(data: bytes) -> None:
    """Read what the audit asks of a file; the loader's judgment and the compilers need less of it."""
    find_obstacle(data[:64])
    traits = read_elf_traits(data, name="input")
    require(read_compilers(data, name="input") == traits.compilers, "other compilers by themselves")
    compare_traits(traits, data, read_elf_traits)


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
    compare_facts(new, read_elf)
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
        compare_facts(made, read_elf)


def _split(data: bytes) -> None:
    check_split(data, _require_library_kept)


def _join(data: bytes) -> None:
    check_join(data, _require_library_kept)


def _trim(data: bytes) -> None:
    check_trim(data)


def _moved_words(data: bytes) -> None:
    compare_moved_words(data)


def _elf_seeds() -> list[bytes]:
    found = fixtures("elf/*", "v18/libtwo.ccob.so")
    return [*found, _like_detached(found[0])]


def _like_detached(data: bytes) -> bytes:
    """Return a file whose sections say that no byte of them is there, while what loaders look at is whole."""
    (sections,) = struct.unpack_from("<Q", data, 40)
    size, number = struct.unpack_from("<HH", data, 58)
    changed = bytearray(data)
    for at in range(sections, sections + size * number, size):
        if struct.unpack_from("<Q", data, at + 8)[0] & SHF_ALLOC:
            struct.pack_into("<I", changed, at + 4, SHT_NOBITS)
    return bytes(changed)


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
    Harness("elf.moved_words", _moved_words, lambda: MOVED_SEEDS, (), largest=512),
)
"""See `trials.fuzz.harness.Harness`."""
