"""What the audit needs to know of a DLL or program of Windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bounded_bytes import viewing
from rocwheel.binary.bundles.wrappers import PE_MARKER_NAMES
from rocwheel.binary.kpack.archive import KpackError
from rocwheel.binary.kpack.markers import read_split_library
from rocwheel.binary.pe.facts import Pe, read_pe
from rocwheel.binary.pe.header import AMD64, PeBytes, PeError, read_identity
from rocwheel.binary.pe.layout import LayoutFault, find_layout_faults
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from rocwheel.core.reading import Data

__all__ = ["PeReport", "read_pe_report"]

_SUFFIXES = (".dll", ".exe", ".pyd")


class PeReport(msgspec.Struct, frozen=True):
    """One DLL or program, for whichever machine."""

    machine: int
    """Its number in the COFF header."""
    is_dll: bool
    pe: Pe | None = None
    """Its facts; none for a file of 32 bits, which no ROCm program loads."""
    faults: tuple[LayoutFault, ...] = ()
    """What of its layout breaks the rules of the format."""
    archives: tuple[str, ...] = ()
    """Where its device code is, if it was split off into kpack archives: paths from its folder, each once."""
    kpack_fault: str = ""
    """Why no runtime finds the archives, by what the file says of them."""
    is_managed: bool = False
    """Whether it has code for .NET, which runs on any system."""

    @property
    def is_amd64(self) -> bool:
        """Whether it is for x86-64."""
        return self.machine == AMD64

    @property
    def imports(self) -> tuple[str, ...]:
        """The DLLs that are loaded together with it, by name, each once."""
        return tuple(dict.fromkeys(dll.name for dll in self.pe.imports)) if self.pe else ()

    @property
    def delay_imports(self) -> tuple[str, ...]:
        """The DLLs that are loaded when it first calls them, without those of `imports`."""
        names = dict.fromkeys(dll.name for dll in self.pe.delay_imports) if self.pe else {}
        at_once = {name.lower() for name in self.imports}
        return tuple(name for name in names if name.lower() not in at_once)


def read_pe_report(data: Data, *, name: str, whole: bool = True) -> PeReport | None:
    """Return the report on the file ``name``, which begins with "MZ"; None for a program of DOS, or other data.

    Without ``whole``, only headers and tables are read: checksum and signature are not compared with the file's bytes.
    Raises `PeError` for a damaged file that is named like a DLL or program.
    """
    try:
        return _read(data, name, whole=whole)
    except PeError:
        if name.lower().endswith(_SUFFIXES):
            raise
        return None


def _read(data: Data, name: str, *, whole: bool) -> PeReport:
    with viewing(data) as view:
        identity = read_identity(PeBytes(view, name))
    if not identity.is_64_bit:
        return PeReport(identity.machine, identity.is_dll, is_managed=identity.is_managed)
    pe = read_pe(data, name=name)
    faults = find_layout_faults(data, pe, name=name, whole=whole)
    archives, kpack_fault = _read_archives(data, pe, name)
    return PeReport(identity.machine, identity.is_dll, pe, faults, archives, kpack_fault, identity.is_managed)


def _read_archives(data: Data, pe: Pe, name: str) -> tuple[tuple[str, ...], str]:
    """Return the paths of a file's archives, and what is wrong with what says so."""
    try:
        split = read_split_library(data, name=name)
    except KpackError as e:
        return (), e.fault
    except InputError:
        # What is wrong with device code itself is found where that is read.
        return (), ""
    if split is not None:
        return tuple(dict.fromkeys(path for unit in split.units for path in unit.marker.search_paths)), ""
    marked = [section.name for section in pe.sections if section.name in PE_MARKER_NAMES and section.file_size]
    return (), f"has a section {marked[0]}, but no wrapper that leads to a kpack archive" if marked else ""
