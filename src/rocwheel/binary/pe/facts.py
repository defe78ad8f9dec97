"""Reads the version, signature, checksum, and debug directory of a 64-bit Windows DLL or program.

The version layout follows "PE Format", section "The .rsrc Section", and Microsoft's "VS_VERSIONINFO structure". The
debug directory layout follows "PE Format", section "The .debug Section".

For the checksum, the file is read as 16-bit numbers, with zeros in place of the checksum itself. The checksum is the
sum of these numbers, with each carry added to the lowest bit, plus the size of the file. This sum is equivalent to the
sum modulo 65535. So if some bytes change, the checksum changes by the difference between their sums. The loader
verifies the checksum only for drivers. Linkers other than GNU ld usually leave a zero, which means that there is no
checksum.

The certificate layout follows "PE Format", section "The Attribute Certificate Table", and Microsoft's "Windows
Authenticode Portable Executable Signature Format". This module doesn't verify the identity of the signer.
"""

from __future__ import annotations

import hashlib
from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.bounded_bytes import Buffer, viewing
from rocwheel.binary.pe.header import (
    AMD64,
    Image,
    PeBytes,
    PeDirectory,
    PeError,
    PeHeader,
    PeSection,
    read_header,
    read_sections,
)
from rocwheel.binary.pe.linkage import Exports, ImportedDll, read_delay_imports, read_exports, read_imports
from rocwheel.core.patch import FilePatch, Replacement, patched_view
from rocwheel.core.reading import iter_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.core.reading import Data


_TABLE: Final = Struct("<IIHHHH")
_DATA_ENTRY: Final = Struct("<II")
_DATA: Final = Struct("<IIII")
_FIXED: Final = Struct("<IIIIII")
_SIGNATURE = 0xFEEF04BD
_RT_VERSION = 16
_IS_TABLE = _HAS_NAME = 1 << 31
_LEVELS = 3
"""The levels in the resource tree: kind, name, language."""
_LONGEST = 64 << 10
_TO_FIXED = 40
"""The aligned offset of the fixed part in a version resource, after three lengths and the key ``VS_VERSION_INFO``."""


class FileVersion(msgspec.Struct, frozen=True):
    """Version numbers with four parts each, for the file and for its product."""

    file: tuple[int, int, int, int]
    product: tuple[int, int, int, int]


def read_version(image: Image) -> FileVersion | None:
    """Return the version in the resources, or `None` if there is no version.

    Raises `PeError` if the resources are damaged.
    """
    directory = image.header.directory(PeDirectory.RESOURCES)
    if directory is None:
        return None
    at, wanted = directory.address, _RT_VERSION
    for _ in range(_LEVELS):
        found = _find(image, at, wanted)
        if found is None:
            return None
        if not found & _IS_TABLE:
            return _read_data(image, directory.address + found)
        at, wanted = directory.address + (found & ~_IS_TABLE), -1
    return None


def _find(image: Image, at: int, wanted: int) -> int | None:
    """Return the offset field of the entry with an ID, or of the first entry if the ID is -1."""
    *_, named, with_ids = image.unpack(_TABLE, at, "a table of resources")
    table = image.read(at + _TABLE.size, (named + with_ids) * _DATA_ENTRY.size, "a table of resources")
    return next((place for key, place in _DATA_ENTRY.iter_unpack(table) if wanted in {-1, _id_of(key)}), None)


def _id_of(key: int) -> int | None:
    """Return an entry's ID, which Windows reads from the lower half of the field, or `None` for a named entry."""
    return None if key & _HAS_NAME else key & 0xFFFF


def _read_data(image: Image, at: int) -> FileVersion | None:
    address, size, *_ = image.unpack(_DATA, at, "the location of the version resource")
    if not _TO_FIXED + _FIXED.size <= size <= _LONGEST:
        return None
    data = image.read(address, size, "the version resource")
    signature, _, *versions = _FIXED.unpack_from(data, _TO_FIXED)
    if signature != _SIGNATURE:
        return None
    file_high, file_low, product_high, product_low = versions
    return FileVersion(_numbers(file_high, file_low), _numbers(product_high, product_low))


def _numbers(high: int, low: int) -> tuple[int, int, int, int]:
    return high >> 16, high & 0xFFFF, low >> 16, low & 0xFFFF


OFFSET_AT: Final = 24
"""The position in an entry of the debug information's file offset, a u32."""
_ENTRY: Final = Struct("<IIHHIIII")
MOST_DEBUG_ENTRIES: Final = 1 << 10
"""The maximum number of entries in one file; linkers write fewer than ten."""


class DebugEntry(msgspec.Struct, frozen=True):
    """A debug directory entry: its own address, and the debug information's size in bytes, address, and file offset."""

    place: int
    """The address of the entry, relative to the image base, like `address`."""
    size: int
    address: int
    """0 if the debug information isn't loaded."""
    offset: int


def debug_directory_fault(header: PeHeader) -> str:
    """Return the problem with the number of entries, as the end of "the file has ...", or an empty string."""
    number = _count(header)
    return f"a debug directory of {number} entries" if number > MOST_DEBUG_ENTRIES else ""


def iter_debug_entries(image: Image) -> Iterator[DebugEntry]:
    """Yield the entries of the debug directory; raise `PeError` if the directory is damaged or has too many entries."""
    directory = image.header.directory(PeDirectory.DEBUG)
    if fault := debug_directory_fault(image.header):
        raise PeError(image.source.name, fault, expected=f"at most {MOST_DEBUG_ENTRIES}")
    start = directory.address if directory else 0
    for number in range(_count(image.header)):
        place = start + number * _ENTRY.size
        *_, size, address, offset = image.unpack(_ENTRY, place, "an entry of the debug directory")
        yield DebugEntry(place, size, address, offset)


def _count(header: PeHeader) -> int:
    directory = header.directory(PeDirectory.DEBUG)
    return directory.size // _ENTRY.size if directory else 0


CHECKSUM: Final = Struct("<I")
_MODULUS: Final = 0xFFFF
_STEP: Final = 1 << 16


def checksum_of(data: Data, at: int) -> int:
    """Return a file's checksum; ``at`` is the file offset of the checksum in the header."""
    total = RunningChecksum(data, at)
    return total.value(len(data))


class RunningChecksum:
    """The checksum of a file while ranges change; ``data`` is the original file, and ``at`` the checksum's offset."""

    def __init__(self, data: Data, at: int) -> None:
        self._data, self._at = data, at
        self._sum = _sum_of(data, 0)
        self._sum -= _sum_of(data[at : at + CHECKSUM.size], at)

    def change(self, replacement: Replacement) -> None:
        """Update the checksum for a replaced range of the file; the range must be outside the checksum."""
        self._sum -= _sum_of(self._data[replacement.start : replacement.stop], replacement.start)
        self._sum += _sum_of(replacement.content(self._data), replacement.start)

    def value(self, size: int) -> int:
        """Return the checksum of the file in its current state, with a size of ``size`` bytes."""
        # A sum with carries is zero only if all bytes are zero, and a file begins with MZ.
        return (self._sum % _MODULUS or _MODULUS) + size


def _sum_of(data: Data, start: int) -> int:
    """Return the sum, modulo 65535, of the bytes from the file offset ``start``."""
    total = 0
    for piece in iter_pieces(data):
        part = _words(bytes(piece))
        total += part << 8 if start % 2 else part
        start += len(piece)
    return total % _MODULUS


def _words(data: bytes) -> int:
    """Return the sum of 16-bit numbers, modulo 65535.

    Because 65536 is 1 modulo 65535, a long number is congruent to the sum of its 16-bit parts. Processing 64 KiB at a
    time takes one ninth of the time that is necessary for dividing one large number.
    """
    return sum(int.from_bytes(data[at : at + _STEP], "little") for at in range(0, len(data), _STEP)) % _MODULUS


def with_checksum(data: Data, header: PeHeader, patch: FilePatch) -> FilePatch:
    """Return ``patch`` for the file ``data`` with an updated checksum, or unchanged if the file had no checksum."""
    if patch.is_identity or not header.checksum:
        return patch
    value = checksum_of(patched_view(data, patch), header.checksum_offset)
    return patch.then(FilePatch(patch.size, (Replacement.of(header.checksum_offset, CHECKSUM.pack(value)),)))


_CERTIFICATE: Final = Struct("<IHH")
_REVISIONS: Final = (0x100, 0x200)
_PKCS_SIGNED_DATA: Final = 2
_DIRECTORIES_AT: Final = 112
"""The offset of the data directories in the 64-bit optional header."""
_ENTRY_SIZE: Final = 8
_ALIGNMENT: Final = 8
_PIECE: Final = 4 << 20
_HASHES: Final = ("sha256", "sha1", "sha384", "sha512")
"""The hash algorithms that signers use, most common first."""
_MOST_CERTIFICATES: Final = 64
"""The limit on the number of certificates. Signing tools append only one."""


def find_signature_fault(source: PeBytes, header: PeHeader, offset: int) -> str:
    """Return why the certificates at ``offset`` don't match the file, or an empty string if they may match.

    The text completes the sentence "the file ...". A signature contains the digest of the file's bytes. If no signature
    contains a digest of this file, the file was edited after it was signed.
    """
    entry = header.directory(PeDirectory.CERTIFICATES)
    if entry is None:
        return ""
    stop = offset + entry.size
    if stop != source.size:
        return f"has certificates up to {stop:#x}, but ends at {source.size:#x}: certificates must be last"
    if offset % _ALIGNMENT:
        return f"has certificates at {offset:#x}, not at a multiple of {_ALIGNMENT}"
    return _content_fault(source, header, offset, stop)


def _content_fault(source: PeBytes, header: PeHeader, offset: int, stop: int) -> str:
    blobs = list(islice(_read_certificates(source, offset, stop), _MOST_CERTIFICATES + 1))
    if not blobs:
        return f"claims to have certificates at {offset:#x}, but has none there"
    if len(blobs) > _MOST_CERTIFICATES:
        return f"has more than {_MOST_CERTIFICATES} certificates: the certificate table is damaged"
    signed = [blob for kind, blob in blobs if kind == _PKCS_SIGNED_DATA]
    if not signed or _hold_digest(signed, source, header, offset):
        return ""
    return "has a signature for different content: the file was edited after it was signed"


def _hold_digest(blobs: Sequence[bytes], source: PeBytes, header: PeHeader, offset: int) -> bool:
    """Return whether any signature contains a digest of the file; each digest is computed once for all signatures."""
    digests = (signed_digest(source, header, offset, name) for name in _HASHES)
    return any(digest in blob for digest in digests for blob in blobs)


def _read_certificates(source: PeBytes, offset: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """Yield the kind and content of each certificate, up to the first invalid certificate."""
    while offset + _CERTIFICATE.size <= stop:
        size, revision, kind = source.unpack(_CERTIFICATE, offset, "a certificate")
        if revision not in _REVISIONS or not _CERTIFICATE.size < size <= stop - offset:
            return
        yield kind, source.read(offset + _CERTIFICATE.size, size - _CERTIFICATE.size, "a certificate")
        offset += -(-size // _ALIGNMENT) * _ALIGNMENT


def signed_digest(source: PeBytes, header: PeHeader, offset: int, algorithm: str) -> bytes:
    """Return the digest that a signature contains. It excludes the checksum and the certificates' directory entry.

    ``offset`` is the start of the certificates, which must be at the end of the file.
    """
    checksum = header.checksum_offset
    entry = header.optional_offset + _DIRECTORIES_AT + PeDirectory.CERTIFICATES * _ENTRY_SIZE
    digest = hashlib.new(algorithm, usedforsecurity=False)
    for start, stop in ((0, checksum), (checksum + CHECKSUM.size, entry), (entry + _ENTRY_SIZE, offset)):
        for first in range(start, stop, _PIECE):
            digest.update(source.read(first, min(_PIECE, stop - first), "the signed bytes"))
    return digest.digest()


class Certificate(msgspec.Struct, frozen=True):
    """The position and size of the signatures in the file; any edit makes the signatures invalid."""

    offset: int
    size: int


class Pe(msgspec.Struct, frozen=True):
    """Facts about one DLL or program, as a plain value that can be pickled and compared."""

    header: PeHeader
    sections: tuple[PeSection, ...]
    imports: tuple[ImportedDll, ...] = ()
    """The imported DLLs, in table order, which is also the loading order."""
    delay_imports: tuple[ImportedDll, ...] = ()
    exports: Exports | None = None
    version: FileVersion | None = None
    certificate: Certificate | None = None

    @property
    def is_dll(self) -> bool:
        """Whether the file is a DLL, not a program."""
        return self.header.is_dll

    @property
    def is_amd64(self) -> bool:
        """Whether the file is for x86-64, the only architecture that ROCm for Windows supports."""
        return self.header.machine == AMD64

    @property
    def wanted(self) -> tuple[str, ...]:
        """The names of all DLLs that the file loads, immediately or later, without duplicates, in table order."""
        return tuple(dict.fromkeys(dll.name for dll in (*self.imports, *self.delay_imports)))


def read_pe(data: Buffer, *, name: str) -> Pe:
    """Read the facts of a 64-bit DLL or program; ``name`` identifies the file in errors.

    Raises `PeError` if the file isn't a 64-bit DLL or program, or is truncated or damaged.
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
    entry = header.directory(PeDirectory.CERTIFICATES)
    if entry is None:
        return None
    source.require(entry.address, entry.size, "the certificates")
    return Certificate(entry.address, entry.size)
