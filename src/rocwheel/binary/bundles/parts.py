"""What goes into a plain offload bundle, and writing one; see `rocwheel.binary.bundles.plain` for the layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.plain import ENTRY_LAYOUT, HEADER_LAYOUT, is_short_host
from rocwheel.binary.code_objects.target_id import BundleEntryId
from rocwheel.binary.kind import BUNDLE_MAGIC
from rocwheel.core.reading import Data

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.code_objects.target_id import TargetId

__all__ = ["BUNDLE_ALIGNMENT", "BundlePart", "lay_out_bundle", "spell_host", "spell_hosts", "write_offload_bundle"]

BUNDLE_ALIGNMENT = 4096
"""Alignment of payloads in a bundle; the runtime maps code objects in place, so they start on a page."""


class BundlePart(msgspec.Struct, frozen=True):
    """What goes into a bundle: the spelling of an entry id and its payload, any number of buffers."""

    spelling: str
    payload: tuple[Data, ...] = ()

    @property
    def target(self) -> TargetId | None:
        """The target of the code object; none for the host entry. Raises `InputError` for anything but an entry id."""
        return BundleEntryId.parse(self.spelling).target

    @property
    def size(self) -> int:
        """Size of the payload in bytes."""
        return sum(len(buffer) for buffer in self.payload)


def spell_host(spelling: str) -> str:
    """Return the id of an entry; a short host entry (`OffloadBundle.short_host`) as clang 17 to 19 spell it.

    The bundlers of LLVM 15 to 22 read these.
    """
    return f"{spelling.rstrip('-')}--" if is_short_host(spelling) else spelling


def spell_hosts(parts: tuple[BundlePart, ...]) -> tuple[BundlePart, ...]:
    """Return ``parts`` with host entries spelled as `spell_host` does; the same tuple when there is nothing to do."""
    if not any(is_short_host(part.spelling) for part in parts):
        return parts
    return tuple(BundlePart(spell_host(part.spelling), part.payload) for part in parts)


def write_offload_bundle(parts: Sequence[BundlePart], *, alignment: int = BUNDLE_ALIGNMENT) -> Iterator[Data]:
    """Yield the bytes of a plain bundle as a sequence of buffers; payloads are not copied.

    The order of ``parts`` is kept, since readers take the first entry that fits.
    """
    header, offsets = lay_out_bundle([(part.spelling, part.size) for part in parts], alignment=alignment)
    yield memoryview(header)
    end = len(header)
    for part, offset in zip(parts, offsets, strict=True):
        if part.size:
            yield memoryview(bytes(offset - end))
            yield from part.payload
            end = offset + part.size
    # LLVM's reader stops at an entry that lies past the end, even at an empty one.
    if (last := max(offsets, default=0)) > end:
        yield memoryview(bytes(last - end))


def lay_out_bundle(
    entries: Sequence[tuple[str, int]], *, alignment: int = BUNDLE_ALIGNMENT
) -> tuple[bytes, tuple[int, ...]]:
    """Return the header of a plain bundle with these entries, and where in it the payload of each begins.

    An entry is given by the spelling of its id, and its size in bytes. LLVM's reader wants the bundle to reach at least
    to where the last payload begins, even if that is empty.
    """
    ids = [spelling.encode("ascii") for spelling, _ in entries]
    end = HEADER_LAYOUT.size + sum(ENTRY_LAYOUT.size + len(entry_id) for entry_id in ids)
    header = bytearray(HEADER_LAYOUT.pack(BUNDLE_MAGIC, len(entries)))
    offsets = []
    for (_, size), entry_id in zip(entries, ids, strict=True):
        offset = -(-end // alignment) * alignment
        header += ENTRY_LAYOUT.pack(offset, size, len(entry_id)) + entry_id
        offsets.append(offset)
        end = offset + size if size else end
    return bytes(header), tuple(offsets)
