"""Reads facts from an ELF file's header (System V ABI, gABI), its notes, and traits of its build.

The readers access only the bytes that they need. A note is u32 name size, u32 content size, u32 kind, then the name and
the content, each padded to 4 or 8 bytes.
"""

from __future__ import annotations

import enum
from contextlib import suppress
from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.bounded_bytes import Buffer, viewing
from rocwheel.binary.elf.dynamic import (
    DT_AUXILIARY,
    DT_FILTER,
    DT_NEEDED,
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    DynamicFile,
    DynamicTable,
    RunpathTag,
    counting_tag,
    is_program_only,
    names_tables,
    read_dynamic,
    read_dynamic_file,
    read_string_table,
)
from rocwheel.binary.elf.header import (
    EM_AMDGPU,
    EM_X86_64,
    ET_DYN,
    ET_EXEC,
    ET_REL,
    PF_W,
    PF_X,
    PT_DYNAMIC,
    PT_INTERP,
    PT_LOAD,
    PT_NOTE,
    ElfBytes,
    ElfError,
    Header,
    Segment,
    is_detached_debug,
    read_header,
    read_section_table,
    read_segments,
)
from rocwheel.binary.elf.mapping import find_misaligned, realigned, require_loadable
from rocwheel.binary.elf.relocations import find_copied
from rocwheel.binary.elf.symbols import Linkage, SymbolReader, VersionNeed, VersionReader, read_linkage
from rocwheel.binary.kind import is_elf64

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.core.reading import Data


_NOTE: Final = Struct("<III")
_BUILD_ID = 3
_MOST_NOTES = 1 << 10
"""The maximum number of notes in a file: in a damaged file, thousands of segments may share the same notes."""
_LONGEST_NAME = 64
_LONGEST_BUILD_ID = 64


class ElfNote(msgspec.Struct, frozen=True):
    """A note: its name including the NUL byte, truncated to 64 bytes, its kind, and its content's range in the file."""

    name: bytes
    kind: int
    offset: int
    size: int


def iter_notes(source: ElfBytes, start: int, stop: int, *, alignment: int = 4) -> Iterator[ElfNote]:
    """Yield each note between two file offsets; raise `ElfError` for a note that extends past the end."""
    source.require(start, stop - start, "the notes")
    offset = start
    while offset + _NOTE.size <= stop:
        name_size, size, kind = source.unpack(_NOTE, offset, "a note")
        content = offset + _align(_NOTE.size + name_size, alignment)
        if content + size > stop:
            raise ElfError(source.name, f"a note at byte {offset} that extends past its segment")
        name = source.read(offset + _NOTE.size, min(name_size, _LONGEST_NAME), "a note's name")
        yield ElfNote(name, kind, content, size)
        offset = content + _align(size, alignment)


def read_build_id(source: ElfBytes, segments: Iterable[Segment]) -> str | None:
    """Return the build ID (``NT_GNU_BUILD_ID``) in hexadecimal, or `None` if it isn't among the first 1024 notes.

    If a note is damaged, the rest of its segment is skipped.
    """
    number = 0
    for segment in segments:
        if segment.type == PT_NOTE:
            source.require(segment.offset, segment.file_size, "the notes")
            with suppress(ElfError):
                for note in islice(_notes(source, segment), _MOST_NOTES - number):
                    number += 1
                    if note.kind == _BUILD_ID and note.name == b"GNU\0" and note.size <= _LONGEST_BUILD_ID:
                        return source.read(note.offset, note.size, "the build id").hex()
    return None


def _notes(source: ElfBytes, segment: Segment) -> Iterator[ElfNote]:
    alignment = 8 if segment.alignment == 8 else 4
    return iter_notes(source, segment.offset, segment.end, alignment=alignment)


def _align(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


_PT_GNU_STACK = 0x6474E551
_DT_TEXTREL, _DT_FLAGS, _DF_TEXTREL = 22, 30, 4
_COMMENT_LIMIT = 1 << 16


class ElfTraits(msgspec.Struct, frozen=True):
    """Traits of a dynamically linked file."""

    exports: frozenset[bytes] = frozenset()
    """The strong symbols, without versions, that other libraries in the process can be bound to.

    Objects of other libraries that the loader copies into a program are excluded.
    """
    linkage: Linkage = Linkage()
    """Every symbol that the file defines or references, with its version."""
    compilers: tuple[str, ...] = ()
    """The compilers and the linker, as named in the ``.comment`` section."""
    has_text_relocations: bool = False
    has_executable_stack: bool = False
    """Whether the file's ``PT_GNU_STACK`` header requests an executable stack.

    An x86-64 library without that header also requests one.
    """
    has_writable_code: bool = False
    """Whether a loaded segment is both writable and executable."""


def read_elf_traits(data: Buffer, *, name: str) -> ElfTraits:
    """Read the traits of a 64-bit little-endian ELF file; ``name`` identifies the file in errors.

    Raises `ElfError` if the file is damaged.
    """
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
    # glibc's default depends on the machine (DEFAULT_STACK_PROT_PERMS in sysdeps/*/stackinfo.h). For programs, the
    # kernel decides.
    is_assumed = machine == EM_X86_64 and PT_DYNAMIC in kinds and PT_INTERP not in kinds
    return bool(flags[-1] & PF_X) if flags else is_assumed


def is_linker(text: str) -> bool:
    """Return whether a ``.comment`` string is from a linker: ``Linker: LLD 19.1.7``, ``mold 2.30.0``, ``GNU gold``."""
    return text.startswith(("Linker:", "mold ", "GNU gold"))


def read_compilers(data: Buffer, *, name: str) -> tuple[str, ...]:
    """Return the compilers and the linker named in the ``.comment`` section of an ELF file for any machine.

    The result is empty if the section was stripped. Raises `ElfError` if the section headers are damaged.
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
    """Return the distinct strings in ``.comment``, or an empty tuple if the file has no section headers."""
    for section in read_section_table(source, read_header(source)):
        if section.name == ".comment" and section.has_bytes:
            text = source.read(section.offset, min(section.size, _COMMENT_LIMIT), "the compilers' names")
            return tuple(dict.fromkeys(part.decode(errors="replace") for part in text.split(b"\0") if part))
    return ()


class ElfKind(enum.Enum):
    """The purpose of an ELF file."""

    EXECUTABLE = "executable"
    """A program, including position-independent and statically linked programs."""
    SHARED_OBJECT = "shared object"
    RELOCATABLE = "relocatable"
    """An object file for the linker."""
    CODE_OBJECT = "code object"
    """Code for an AMD GPU."""
    OTHER = "other"
    """Any other file, such as a core dump or detached debug information."""


class Filtee(msgspec.Struct, frozen=True):
    """A library that a file loads so that its symbols take precedence over the file's own (``ld -F``, ``ld -f``)."""

    name: str
    is_optional: bool
    """Whether the file works without the library (``DT_AUXILIARY`` instead of ``DT_FILTER``)."""


class Elf(msgspec.Struct, frozen=True):
    """Facts about one ELF file, as a plain value that can be pickled and compared."""

    machine: int
    """``e_machine``: 62 for x86-64, 183 for AArch64, 224 for AMD GPUs."""
    kind: ElfKind
    type: int
    """``e_type``."""
    osabi: int
    segments: tuple[Segment, ...]
    is_dynamic: bool = False
    """Whether the file has a dynamic section, the source of all later fields except the interpreter and build ID.
    """
    interpreter: str | None = None
    soname: str | None = None
    needed: tuple[str, ...] = ()
    filtees: tuple[Filtee, ...] = ()
    rpath: str | None = None
    runpath: str | None = None
    """The RUNPATH. Bytes that aren't UTF-8 become surrogates, as in Python's file names (``surrogateescape``)."""
    version_needs: tuple[VersionNeed, ...] = ()
    version_definitions: tuple[str, ...] = ()
    imports_dlopen: bool = False
    """Whether the file calls ``dlopen`` or ``dlmopen``, so that it may load libraries that aren't NEEDED entries."""
    build_id: str | None = None
    """The build ID, in hexadecimal."""

    @property
    def run_path(self) -> str | None:
        """The effective run path, or `None` if there is no run path."""
        return self.rpath if self.run_path_tag is RunpathTag.RPATH else self.runpath

    @property
    def run_path_tag(self) -> RunpathTag | None:
        """The tag of the effective run path. Loaders ignore an RPATH if there is a RUNPATH."""
        return counting_tag(self.rpath, self.runpath)

    @property
    def is_shared_library(self) -> bool:
        """Whether the file is a shared library for the host."""
        return self.kind is ElfKind.SHARED_OBJECT

    @property
    def is_host_code(self) -> bool:
        """Whether the file is linked code for the host: a shared library or a program."""
        return self.kind in {ElfKind.SHARED_OBJECT, ElfKind.EXECUTABLE}

    @property
    def is_loadable(self) -> bool:
        """Whether the dynamic loader loads the file: a shared library or a dynamically linked program."""
        return self.is_dynamic and self.is_host_code

    @property
    def misaligned(self) -> Segment | None:
        """The segment of a shared library that glibc before `mapping.ANY_ALIGNMENT` refuses to map, or `None`."""
        return find_misaligned(self.segments, is_program=not self.is_shared_library) if self.is_dynamic else None

    @property
    def realigned(self) -> tuple[Segment, ...]:
        """The segments. Any segment that glibc versions before 2.35 refuse to map is corrected, if possible."""
        return self.segments if self.misaligned is None else realigned(self.segments, is_program=False)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The libraries that the file loads or tries to load: its NEEDED entries and its filtees."""
        return (*self.needed, *(filtee.name for filtee in self.filtees))


def read_elf(data: Buffer, *, name: str) -> Elf:
    """Read the facts of a 64-bit little-endian ELF file; ``name`` identifies the file in errors.

    Section headers are read only to recognize detached debug information. Therefore, the facts are the same if the file
    is stripped or has no section headers.

    Raises `ElfError` if the file isn't 64-bit little-endian ELF, or is truncated or damaged. All code that uses the
    SONAME converts it to a file name. So `ElfError` is also raised if the SONAME is empty, is ``.`` or ``..``, or
    contains a slash.
    """
    with viewing(data) as view:
        source = ElfBytes(view, name)
        return _read(source)


def read_soname(data: Data, *, name: str) -> str:
    """Return a file's SONAME, or an empty string if there is no SONAME or the file is damaged or isn't 64-bit ELF."""
    if not is_elf64(data):
        return ""
    try:
        return read_elf(data, name=name).soname or ""
    except ElfError:
        return ""


def _read(source: ElfBytes) -> Elf:
    header = read_header(source)
    segments = read_segments(source, header)
    elf = Elf(machine=header.machine, kind=ElfKind.OTHER, type=header.type, osabi=header.osabi, segments=segments)
    if header.type == ET_REL:
        return msgspec.structs.replace(elf, kind=_kind(elf, None))
    if header.type not in {ET_EXEC, ET_DYN} or _is_detached_debug(source, header, segments):
        return elf
    require_loadable(source, header, segments)
    dynamic = read_dynamic(source, segments)
    if dynamic is not None:
        elf = _with_dynamic_facts(source, elf, dynamic)
    elf = msgspec.structs.replace(
        elf, interpreter=_read_interpreter(source, segments), build_id=read_build_id(source, segments)
    )
    return msgspec.structs.replace(elf, kind=_kind(elf, dynamic))


def _is_detached_debug(source: ElfBytes, header: Header, segments: Sequence[Segment]) -> bool:
    """Return whether a file has only debug information, according to both its sections and its program headers.

    Loaders ignore sections, so the program headers must show the same.
    """
    return is_detached_debug(read_section_table(source, header)) and not names_tables(source, segments)


def _kind(elf: Elf, dynamic: DynamicTable | None) -> ElfKind:
    if elf.machine == EM_AMDGPU:
        return ElfKind.CODE_OBJECT
    if elf.type == ET_REL:
        return ElfKind.RELOCATABLE
    return ElfKind.EXECUTABLE if is_program_only(elf.type, elf.segments, dynamic) else ElfKind.SHARED_OBJECT


def _read_interpreter(source: ElfBytes, segments: Sequence[Segment]) -> str | None:
    segment = next((segment for segment in segments if segment.type == PT_INTERP), None)
    return source.string(segment.offset, segment.end, "the interpreter's path") if segment else None


def _with_dynamic_facts(source: ElfBytes, elf: Elf, dynamic: DynamicTable) -> Elf:
    strings = read_string_table(source, elf.segments, dynamic)
    file = DynamicFile(source, elf.segments, dynamic, strings)
    versions = VersionReader(file)
    soname = dynamic.value(DT_SONAME)

    def run_path(tag: int, what: str) -> str | None:
        offset = dynamic.value(tag)
        return None if offset is None else strings.path(source, offset, what)

    return msgspec.structs.replace(
        elf,
        is_dynamic=True,
        soname=None if soname is None else _checked_soname(source, file.string(soname, "the SONAME")),
        needed=tuple(file.string(offset, "a NEEDED name") for offset in dynamic.values(DT_NEEDED)),
        filtees=tuple(
            Filtee(file.string(offset, "a filtee's name"), tag == DT_AUXILIARY)
            for tag, offset in dynamic.entries
            if tag in {DT_AUXILIARY, DT_FILTER}
        ),
        rpath=run_path(DT_RPATH, "the RPATH"),
        runpath=run_path(DT_RUNPATH, "the RUNPATH"),
        version_needs=versions.needs(),
        version_definitions=versions.definitions(),
        imports_dlopen=SymbolReader(file).imports(b"dlopen", b"dlmopen"),
    )


def _checked_soname(source: ElfBytes, soname: str) -> str:
    if soname in {"", ".", ".."} or "/" in soname:
        raise ElfError(
            source.name,
            f"the SONAME {soname!r}",
            expected="a plain file name",
            remedy="Link the library again with -Wl,-soname=NAME, or leave the library out.",
        )
    return soname
