"""Recognizes binary file formats by a file's first bytes.

===========================  ==================================================================================
a file that begins with      is
===========================  ==================================================================================
``7F 45 4C 46``, "ELF"       an ELF file. Byte 4 is its class, 2 for 64 bits; byte 5 its byte order, 1 for
                             little-endian (gABI, "ELF Identification")
``__CLANG_OFFLOAD_BUNDLE__``  a plain offload bundle
``CCOB``                     a compressed offload bundle
``KPAK``                     a kpack archive of code objects
``MZ``                       a Windows DLL or program, if the PE header confirms it (Microsoft, "PE Format")
``64 86`` or ``64 AA``        a Windows object file for x86-64 or ARM64, if the rest of its header matches
``CF FA ED FE`` and others    a macOS Mach-O file, with the magic number in either byte order, or several in one file
``!<arch>``, newline         a static library: an ``ar`` archive; ``!<thin>`` if it only lists its members
===========================  ==================================================================================

These bytes don't indicate a file's purpose. For that, see the properties of `rocwheel.binary.elf.facts.Elf`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rocwheel.core.reading import Data

ELF_MAGIC: Final = b"\x7fELF"
BUNDLE_MAGIC: Final = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED_MAGIC: Final = b"CCOB"
KPACK_MAGIC: Final = b"KPAK"
MZ_MAGIC: Final = b"MZ"
AR_MAGIC: Final = b"!<arch>\n"
_THIN_MAGIC: Final = b"!<thin>\n"
_ELF64_LITTLE_ENDIAN: Final = ELF_MAGIC + b"\2\1"
_SHORTEST_ELF: Final = 52
"""The size of the header of a 32-bit file, the shortest possible ELF file."""

_MACH_O_MAGICS: Final = frozenset(bytes.fromhex(text) for text in ("cffaedfe", "cefaedfe", "feedfacf", "feedface"))
_MACH_O_SEVERAL: Final = frozenset({b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbf"})
_MOST_MACHINES: Final = bytes([30])
"""The maximum number of machines in one file. In Java class files, this field has a larger version number."""

_LIBRARY_NAME: Final = re.compile(r"[^/]\.so(?:\.[0-9]+)*\Z")
_DLL_SUFFIXES: Final = (".dll", ".pyd")

_COFF_SIZE, _COFF_REST = 20, 16
_COFF_MACHINES: Final = frozenset({b"\x64\x86", b"\x64\xaa"})
_COFF_RESTS: Final = frozenset({b"\0\0\0\0", b"\0\0\4\0", b"\0\0\5\0"})
"""No optional header, and the usual flags: zero, line numbers stripped, or line numbers and relocations stripped."""

HEAD_SIZE: Final = 64
"""A number of bytes that is sufficient for every magic number in this module and for a complete ELF header."""


def is_elf(head: bytes | Data) -> bool:
    """Return whether a file is an ELF file of any class, byte order, and machine."""
    return _begins_with(head, ELF_MAGIC)


def is_elf64(head: bytes | Data) -> bool:
    """Return whether a file is a 64-bit little-endian ELF file, the only kind of ELF file that rocwheel reads.

    Other ELF files occur as data, such as a compiler's 32-bit runtime libraries.
    """
    return _begins_with(head, _ELF64_LITTLE_ENDIAN)


def is_cut_elf(data: bytes | Data) -> bool:
    """Return whether a file starts with the ELF magic number but ends inside its header, possibly before the class."""
    return is_elf(data) and len(data) < _SHORTEST_ELF


def is_library_name(path: str) -> bool:
    """Return whether a file has the name of a Linux shared library (``libx.so``, ``libx.so.1.2``) or a Python module.

    The file may actually be a text file that refers linkers to a library (ld(1), "Implicit Linker Scripts").
    """
    return _LIBRARY_NAME.search(path) is not None


def is_empty_library(path: str, data: bytes | Data) -> bool:
    """Return whether a file named like a shared library or DLL is empty, for example, after copying to a full disk."""
    return not len(data) and (is_library_name(path) or path.lower().endswith(_DLL_SUFFIXES))


def is_plain_bundle(head: bytes | Data) -> bool:
    """Return whether a file begins with an uncompressed offload bundle."""
    return _begins_with(head, BUNDLE_MAGIC)


def is_compressed_bundle(head: bytes | Data) -> bool:
    """Return whether a file begins with a compressed offload bundle."""
    return _begins_with(head, COMPRESSED_MAGIC)


def is_bundle(head: bytes | Data) -> bool:
    """Return whether a file begins with an offload bundle, plain or compressed."""
    return is_compressed_bundle(head) or is_plain_bundle(head)


def is_kpack(head: bytes | Data) -> bool:
    """Return whether a file is a kpack archive."""
    return _begins_with(head, KPACK_MAGIC)


def is_mach_o(head: bytes | Data) -> bool:
    """Return whether a file is a macOS program, library, or object file, which rocwheel doesn't read."""
    magic, number = bytes(head[:4]), bytes(head[4:8])
    has_several = magic in _MACH_O_SEVERAL and number[:3] == bytes(3) and b"\0" < number[3:] < _MOST_MACHINES
    return magic in _MACH_O_MAGICS or has_several


def is_pe(head: bytes | Data) -> bool:
    """Return whether a file begins like a Windows DLL or program. DOS programs and some text files also do."""
    return _begins_with(head, MZ_MAGIC)


def is_coff_object(head: bytes | Data) -> bool:
    """Return whether a file begins like a Windows object file for x86-64 or ARM64, which has no magic number."""
    start = bytes(head[:_COFF_SIZE])
    is_known = len(start) == _COFF_SIZE and start[:2] in _COFF_MACHINES
    return is_known and start[2:4] != b"\0\0" and start[_COFF_REST:] in _COFF_RESTS


def is_ar_archive(head: bytes | Data) -> bool:
    """Return whether a file is a static library that contains its members, unlike a thin archive."""
    return _begins_with(head, AR_MAGIC)


def is_thin_archive(head: bytes | Data) -> bool:
    """Return whether a file is a static library that only lists its members, which are separate files."""
    return _begins_with(head, _THIN_MAGIC)


def unread_archive(head: bytes | Data) -> str:
    """Return a description of an archive without readable object files, or an empty string for any other file."""
    if _begins_with(head, AR_MAGIC + b"debian-binary"):
        return "a Debian package, which 'dpkg-deb --extract' unpacks"
    return "a thin archive" if is_thin_archive(head) else ""


def has_facts(head: bytes | Data) -> bool:
    """Return whether rocwheel can read facts from an installed file.

    Such a file is a 64-bit little-endian ELF file, begins like a Windows DLL or program, or begins with a bundle.
    """
    return is_elf64(head) or is_pe(head) or is_bundle(head)


def is_binary(head: bytes | Data) -> bool:
    """Return whether a file that the user specifies is worth reading, even if it turns out to be unreadable.

    Such a file is an ELF file of any class, a bundle file, a kpack archive, or a static library. Windows DLLs,
    programs, and object files are also binaries.
    """
    return (
        is_elf(head) or is_pe(head) or is_coff_object(head) or is_bundle(head) or is_kpack(head) or is_ar_archive(head)
    )


def _begins_with(head: bytes | Data, magic: bytes) -> bool:
    return bytes(head[: len(magic)]) == magic
