"""Signatures of Portable Executables (Authenticode): whether one still matches the bytes of the file.

The layouts follow "PE Format", section "The Attribute Certificate Table", and Microsoft's "Windows Authenticode
Portable Executable Signature Format". Nothing here judges who signed.
"""

from __future__ import annotations

import hashlib
from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING, Final

from rocwheel.binary.pe.checksum import CHECKSUM
from rocwheel.binary.pe.header import Directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.pe.bytes import PeBytes
    from rocwheel.binary.pe.header import PeHeader

__all__ = ["find_signature_fault", "signed_digest"]

_CERTIFICATE: Final = Struct("<IHH")
_REVISIONS: Final = (0x100, 0x200)
_PKCS_SIGNED_DATA: Final = 2
_DIRECTORIES_AT: Final = 112
"""Where the data directories are in the optional header of 64 bits."""
_ENTRY_SIZE: Final = 8
_ALIGNMENT: Final = 8
_PIECE: Final = 4 << 20
_HASHES: Final = ("sha256", "sha1", "sha384", "sha512")
"""Those that signers use, the most common one first."""
_MOST_CERTIFICATES: Final = 64
"""Far more than signing tools append, which is one."""


def find_signature_fault(source: PeBytes, header: PeHeader, offset: int) -> str:
    """Return why the certificates at ``offset`` can't be those of the file, or no longer are; empty if they may be.

    The answer completes the sentence "the file ...". A signature holds the digest of the file's bytes, so that one that
    holds none of theirs was made before an edit.
    """
    entry = header.directory(Directory.CERTIFICATES)
    if entry is None:
        return ""
    stop = offset + entry.size
    if stop != source.size:
        return f"has certificates up to {stop:#x}, but ends at {source.size:#x}: they have to come last"
    if offset % _ALIGNMENT:
        return f"has certificates at {offset:#x}, not at a multiple of {_ALIGNMENT}"
    return _content_fault(source, header, offset, stop)


def _content_fault(source: PeBytes, header: PeHeader, offset: int, stop: int) -> str:
    blobs = list(islice(_read_certificates(source, offset, stop), _MOST_CERTIFICATES + 1))
    if not blobs:
        return f"says that certificates are at {offset:#x}, but what is there are none"
    if len(blobs) > _MOST_CERTIFICATES:
        return f"has more than {_MOST_CERTIFICATES} certificates: its table of them is damaged"
    signed = [blob for kind, blob in blobs if kind == _PKCS_SIGNED_DATA]
    if not signed or _hold_digest(signed, source, header, offset):
        return ""
    return "has a signature of other bytes than it has: it was edited after it was signed"


def _hold_digest(blobs: Sequence[bytes], source: PeBytes, header: PeHeader, offset: int) -> bool:
    """Return whether one of the signatures holds a digest of the file, each of which is made once, for all of them."""
    digests = (signed_digest(source, header, offset, name) for name in _HASHES)
    return any(digest in blob for digest in digests for blob in blobs)


def _read_certificates(source: PeBytes, offset: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """Yield the kind and the bytes of each certificate, up to the first that is none."""
    while offset + _CERTIFICATE.size <= stop:
        size, revision, kind = source.unpack(_CERTIFICATE, offset, "a certificate")
        if revision not in _REVISIONS or not _CERTIFICATE.size < size <= stop - offset:
            return
        yield kind, source.read(offset + _CERTIFICATE.size, size - _CERTIFICATE.size, "a certificate")
        offset += -(-size // _ALIGNMENT) * _ALIGNMENT


def signed_digest(source: PeBytes, header: PeHeader, offset: int, algorithm: str) -> bytes:
    """Return the digest that a signature has of a file: of all but the checksum and the entry for certificates.

    ``offset`` is where the certificates begin; the file has to end with them.
    """
    checksum = header.checksum_offset
    entry = header.optional_offset + _DIRECTORIES_AT + Directory.CERTIFICATES * _ENTRY_SIZE
    digest = hashlib.new(algorithm, usedforsecurity=False)
    for start, stop in ((0, checksum), (checksum + CHECKSUM.size, entry), (entry + _ENTRY_SIZE, offset)):
        for first in range(start, stop, _PIECE):
            digest.update(source.read(first, min(_PIECE, stop - first), "the signed bytes"))
    return digest.digest()
