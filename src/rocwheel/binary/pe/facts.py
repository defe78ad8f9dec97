"""Facts of one DLL or program of 64-bit Windows (PE/COFF); only the bytes that they need are read."""

from __future__ import annotations

import msgspec

from rocwheel.binary.bounded_bytes import Buffer, viewing
from rocwheel.binary.pe.bytes import PeBytes, PeError
from rocwheel.binary.pe.exports import Exports, read_exports
from rocwheel.binary.pe.header import AMD64, Directory, PeHeader, read_header
from rocwheel.binary.pe.imports import ImportedDll, read_delay_imports, read_imports
from rocwheel.binary.pe.sections import Image, PeSection, read_sections
from rocwheel.binary.pe.version import FileVersion, read_version

__all__ = ["Certificate", "ImportedDll", "Pe", "PeError", "PeSection", "read_pe"]


class Certificate(msgspec.Struct, frozen=True):
    """Where the signatures stand in the file, and how many bytes they have; any edit makes them void."""

    offset: int
    size: int


class Pe(msgspec.Struct, frozen=True):
    """The facts of one DLL or program; a plain value that can be pickled and compared."""

    header: PeHeader
    sections: tuple[PeSection, ...]
    imports: tuple[ImportedDll, ...] = ()
    """In the table's order, which is the order in which the loader loads them."""
    delay_imports: tuple[ImportedDll, ...] = ()
    exports: Exports | None = None
    version: FileVersion | None = None
    certificate: Certificate | None = None

    @property
    def is_dll(self) -> bool:
        """Whether it is a DLL, not a program."""
        return self.header.is_dll

    @property
    def is_amd64(self) -> bool:
        """Whether it is for x86-64, the only machine that ROCm for Windows has."""
        return self.header.machine == AMD64

    @property
    def wanted(self) -> tuple[str, ...]:
        """The names of all DLLs that it loads, at once or later, each once, in the order of the tables."""
        return tuple(dict.fromkeys(dll.name for dll in (*self.imports, *self.delay_imports)))


def read_pe(data: Buffer, *, name: str) -> Pe:
    """Read the facts of a 64-bit DLL or program; ``name`` is what errors call it.

    Raises `PeError` when the file is not one, or is truncated or damaged.
    """
    with viewing(data) as view:
        source = PeBytes(view, name)
        header = read_header(source)
        sections = read_sections(source, header)
        image = Image(source, header, sections)
        return Pe(
            header,
            sections,
            read_imports(image),
            read_delay_imports(image),
            read_exports(image),
            read_version(image),
            _certificate(source, header),
        )


def _certificate(source: PeBytes, header: PeHeader) -> Certificate | None:
    entry = header.directory(Directory.CERTIFICATES)
    if entry is None:
        return None
    source.require(entry.address, entry.size, "the certificates")
    return Certificate(entry.address, entry.size)
