"""Facts of one ELF file (System V ABI, gABI); only the bytes that they need are read."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.bytes import Buffer, ElfBytes, ElfError, viewing
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
    read_string_table,
)
from rocwheel.binary.elf.header import (
    EM_AMDGPU,
    ET_DYN,
    ET_EXEC,
    ET_REL,
    PT_INTERP,
    Header,
    Segment,
    read_header,
    read_segments,
)
from rocwheel.binary.elf.mapping import find_misaligned, realigned, require_loadable
from rocwheel.binary.elf.notes import read_build_id
from rocwheel.binary.elf.sections import Section, is_detached_debug, read_section_table, read_sections
from rocwheel.binary.elf.symbols import SymbolReader
from rocwheel.binary.elf.versions import VersionNeed, VersionReader
from rocwheel.binary.kind import is_elf64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.core.reading import Data

__all__ = [
    "Buffer",
    "Elf",
    "ElfError",
    "ElfKind",
    "Filtee",
    "Section",
    "Segment",
    "VersionNeed",
    "read_elf",
    "read_sections",
    "read_soname",
]


class ElfKind(enum.Enum):
    """What an ELF file is for."""

    EXECUTABLE = "executable"
    """A program; also one that is position independent, or that is statically linked."""
    SHARED_OBJECT = "shared object"
    RELOCATABLE = "relocatable"
    """An object file, for the linker."""
    CODE_OBJECT = "code object"
    """Code for an AMD GPU."""
    OTHER = "other"
    """Neither of these: a core dump, or debug information split off a program."""


class Filtee(msgspec.Struct, frozen=True):
    """A library that a file loads so that its symbols come before the file's own (``ld -F``, ``ld -f``)."""

    name: str
    is_optional: bool
    """Whether the file does without it where it is absent (``DT_AUXILIARY``, not ``DT_FILTER``)."""


class Elf(msgspec.Struct, frozen=True):
    """The facts of one ELF file; a plain value that can be pickled and compared."""

    machine: int
    """``e_machine``: 62 for x86-64, 183 for AArch64, 224 for AMD GPUs."""
    kind: ElfKind
    type: int
    """``e_type``."""
    osabi: int
    segments: tuple[Segment, ...]
    is_dynamic: bool = False
    """Whether there is a dynamic section, the place of all that follows but interpreter and build id."""
    interpreter: str | None = None
    soname: str | None = None
    needed: tuple[str, ...] = ()
    filtees: tuple[Filtee, ...] = ()
    rpath: str | None = None
    runpath: str | None = None
    """Bytes of a run path that are not UTF-8 are as in Python's file names (``surrogateescape``)."""
    version_needs: tuple[VersionNeed, ...] = ()
    version_definitions: tuple[str, ...] = ()
    imports_dlopen: bool = False
    """Whether it calls ``dlopen`` or ``dlmopen``, and so may load libraries that it doesn't name as needed."""
    build_id: str | None = None
    """In hexadecimal."""

    @property
    def run_path(self) -> str | None:
        """The run path that counts; none for a file without."""
        return self.rpath if self.run_path_tag is RunpathTag.RPATH else self.runpath

    @property
    def run_path_tag(self) -> RunpathTag | None:
        """The tag of the run path that counts: a RUNPATH makes loaders ignore an RPATH next to it."""
        return counting_tag(self.rpath, self.runpath)

    @property
    def is_shared_library(self) -> bool:
        """Whether it is a shared library for the host."""
        return self.kind is ElfKind.SHARED_OBJECT

    @property
    def is_host_code(self) -> bool:
        """Whether it is linked code for the host: a shared library or a program."""
        return self.kind in {ElfKind.SHARED_OBJECT, ElfKind.EXECUTABLE}

    @property
    def is_loadable(self) -> bool:
        """Whether the dynamic loader loads it: a shared library or a dynamically linked program."""
        return self.is_dynamic and self.is_host_code

    @property
    def misaligned(self) -> Segment | None:
        """The segment of a shared library that glibc before 2.35 refuses to map (`mapping.ANY_ALIGNMENT`), if any."""
        return find_misaligned(self.segments, is_program=not self.is_shared_library) if self.is_dynamic else None

    @property
    def realigned(self) -> tuple[Segment, ...]:
        """The segments once those that glibc before 2.35 refuses are mended, as far as that is possible."""
        return self.segments if self.misaligned is None else realigned(self.segments, is_program=False)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The libraries that it loads, or tries to: those that it names as needed, and its filtees."""
        return (*self.needed, *(filtee.name for filtee in self.filtees))


def read_elf(data: Buffer, *, name: str) -> Elf:
    """Read the facts of a 64-bit little-endian ELF file; ``name`` is what errors call it.

    Section headers are read only to recognise split-off debug information: stripped files and files
    without section headers read the same.

    Raises `ElfError` when the file is not such an ELF file, is truncated or damaged, or when its SONAME is not a file
    name (empty, ``.``, ``..`` or with a slash): every user of the SONAME makes a file name of it.
    """
    with viewing(data) as view:
        source = ElfBytes(view, name)
        return _read(source)


def read_soname(data: Data, *, name: str) -> str:
    """Return the SONAME of a file; empty for one without, for what is no 64-bit ELF file, and for a damaged one."""
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
    """Return whether a file is debug information alone: by its sections, at which loaders don't look, and to them."""
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
            remedy="Link the library again with -Wl,-soname=NAME, or leave it out.",
        )
    return soname
