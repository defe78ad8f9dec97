"""Edits of a DLL or program that move nothing; the header fields that depend on the bytes are corrected."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from rocwheel.binary.pe.bytes import PeBytes
from rocwheel.binary.pe.checksum import CHECKSUM, RunningChecksum, with_checksum
from rocwheel.binary.pe.editing.rewrite import require_unsigned
from rocwheel.binary.pe.header import read_header
from rocwheel.core.patch import FilePatch, Replacement, write_patched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.binary.pe.header import PeHeader
    from rocwheel.core.reading import Data

__all__ = ["edited_image", "write_edited_image"]


def edited_image(data: Data, patch: FilePatch, *, name: str) -> FilePatch:
    """Return ``patch``, which changes the file ``data`` in place, with the right checksum.

    Raises `SignedFileError` where a signature would become void.
    """
    header = read_header(PeBytes(data, name))
    if not patch.is_identity:
        require_unsigned(name, header)
    return with_checksum(data, header, patch)


def write_edited_image(file: IO[bytes], data: Data, replacements: Iterable[Replacement], *, name: str) -> None:
    """Write the image ``data`` with ``replacements``, which leave its size as it is, into ``file`` from its start.

    Each is released once it is written; the checksum is written last. Raises as `edited_image` does.
    """
    header = read_header(PeBytes(data, name))
    checksum = RunningChecksum(data, header.checksum_offset) if header.checksum else None
    changes = _Changes(header, name, checksum)
    write_patched(file, data, changes.noted(replacements))
    if checksum is not None and changes.number:
        end = file.tell()
        file.seek(header.checksum_offset)
        file.write(CHECKSUM.pack(checksum.value(len(data))))
        file.seek(end)


class _Changes:
    """Counts changes as they pass through, and takes them into account for the checksum."""

    def __init__(self, header: PeHeader, name: str, checksum: RunningChecksum | None) -> None:
        self._header, self._name, self._checksum = header, name, checksum
        self.number = 0

    def noted(self, replacements: Iterable[Replacement]) -> Iterator[Replacement]:
        for replacement in replacements:
            require_unsigned(self._name, self._header)
            self.number += 1
            if self._checksum is not None:
                self._checksum.change(replacement)
            yield replacement
