"""Reads plain offload bundles, and writes them from parts.

======  ======  ==========================================================================
offset  size    field
======  ======  ==========================================================================
0       24      ``__CLANG_OFFLOAD_BUNDLE__``
24      8       number of entries
32      24 + n  each entry: offset from the bundle's start, size, length n of the ID; the ID
======  ======  ==========================================================================

Integers are unsigned, little-endian and 64 bits wide. Zeros fill the space before each payload. A bundle doesn't record
its own size; it ends with its last payload.
"""

from __future__ import annotations

import struct
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import BundleEntryId, CodePlace, DeviceCodeError, TargetId, find_illegal
from rocwheel.binary.kind import BUNDLE_MAGIC
from rocwheel.core.messages import count
from rocwheel.core.reading import Data

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.code_objects import TargetId


RUNTIME_HEADER_LIMIT = 4096
"""The number of bytes of a plain bundle that the runtime passes to the target lookup; all IDs must be within them.
"""

HEADER_LAYOUT = struct.Struct("<24sQ")
ENTRY_LAYOUT = struct.Struct("<QQQ")
_ID_LIMIT = 4096
_ENTRY_LIMIT = 1024
"""The maximum number of entries in a bundle.

Compilers write a few dozen entries. A bundle with far more entries could be compressed to a few hundred bytes.
"""
_TRIPLE_DASHES = 4


class BundleEntry(msgspec.Struct, frozen=True):
    """One entry: its ID, parsed and as written in the file, and its payload's range, relative to the bundle's start."""

    id: BundleEntryId
    spelling: str
    offset: int
    size: int

    @property
    def target(self) -> TargetId | None:
        """The target of the code object, or `None` for the host entry."""
        return self.id.target

    @property
    def stop(self) -> int:
        """The end of the payload, relative to the start of the bundle."""
        return self.offset + self.size


class OffloadBundle(msgspec.Struct, frozen=True):
    """The header of a plain bundle, with its entries in file order; all sizes are in bytes."""

    entries: tuple[BundleEntry, ...]
    header_size: int

    @property
    def size(self) -> int:
        """The size of the entire bundle, up to the end of the last payload, even if that payload is empty."""
        return max([self.header_size, *(entry.stop for entry in self.entries)])

    @property
    def device_entries(self) -> tuple[BundleEntry, ...]:
        """The entries with device code."""
        return tuple(entry for entry in self.entries if not entry.id.is_host)

    @property
    def short_host(self) -> str | None:
        """The host entry as written by clang 16 and earlier, ``host-x86_64-unknown-linux``, or `None` if absent.

        In LLVM 21 and later, two readers reject the entire bundle if it contains this entry. These readers are
        clang-offload-bundler, and comgr when it extracts code from compressed bundles. The runtime's lookup in plain
        bundles accepts this entry.
        """
        return next((entry.spelling for entry in self.entries if is_short_host(entry.spelling)), None)

    @property
    def repeated(self) -> tuple[str, ...]:
        """The IDs that occur more than once, as written in the bundle."""
        counts = Counter(entry.spelling for entry in self.entries)
        return tuple(spelling for spelling, count in counts.items() if count > 1)

    @property
    def targets(self) -> tuple[TargetId, ...]:
        """The targets of the device entries, in file order."""
        return tuple(entry.target for entry in self.entries if entry.target is not None)

    def find_problems(self) -> tuple[str, ...]:
        """Return the problems that cause some or all readers to reject a bundle with a valid layout."""
        problems = []
        if not self.entries:
            problems.append("the bundle has no entries")
        elif not self.device_entries:
            problems.append("the bundle has no device code")
        problems += [f"the entry {spelling!r} occurs more than once" for spelling in self.repeated]
        problems += [f"the entry {e.spelling!r} is empty" for e in self.device_entries if e.size == 0]
        problems += self._target_problems()
        if self.header_size > RUNTIME_HEADER_LIMIT:
            problems.append(
                f"its header has {self.header_size} bytes, but the runtime reads at most {RUNTIME_HEADER_LIMIT} bytes"
            )
        return tuple(problems)

    def _target_problems(self) -> Iterator[str]:
        for one, other in ambiguous_targets(self.targets):
            yield f"the targets {one} and {other} are ambiguous: one sets features that the other doesn't set"
        for entry in self.device_entries:
            if entry.target and (reason := find_illegal(entry.target)):
                yield f"the entry {entry.spelling!r} isn't for a valid target: {reason}"


def ambiguous_targets(targets: Sequence[TargetId]) -> Iterator[tuple[TargetId, TargetId]]:
    """Yield the pairs of targets that LLVM's bundler rejects.

    The bundler compares each target with the first target that has the same processor.
    """
    first: dict[str, TargetId] = {}
    for target in targets:
        one = first.setdefault(target.processor, target)
        if one.features.keys() != target.features.keys():
            yield one, target


def read_offload_bundle(head: Data, *, place: CodePlace, available: int | None = None) -> OffloadBundle:
    """Read the header of the bundle at the start of ``head``.

    ``available`` is the maximum size of the entire bundle, if ``head`` is only its beginning. Raises `DeviceCodeError`
    for a truncated header, more than 1024 entries, IDs that can't be parsed, and payloads that overlap or are outside
    the bundle.
    """
    available = len(head) if available is None else available
    if len(head) < HEADER_LAYOUT.size:
        raise DeviceCodeError(
            place, f"{count(len(head), 'byte')}, too few for a bundle", expected=f"at least {HEADER_LAYOUT.size}"
        )
    magic, entry_count = HEADER_LAYOUT.unpack(bytes(head[: HEADER_LAYOUT.size]))
    if magic != BUNDLE_MAGIC:
        raise DeviceCodeError(place, f"starts with {magic!r}", expected=f"{BUNDLE_MAGIC!r}")
    if entry_count * ENTRY_LAYOUT.size > len(head):
        found = f"{count(entry_count, 'entry', 'entries')} declared in a header of at most {count(len(head), 'byte')}"
        raise DeviceCodeError(place, found)
    if entry_count > _ENTRY_LIMIT:
        raise DeviceCodeError(place, count(entry_count, "entry", "entries"), expected=f"at most {_ENTRY_LIMIT}")
    bundle = _read_entries(head, entry_count, place)
    _check_layout(bundle, place, available)
    return bundle


def _read_entries(head: Data, entry_count: int, place: CodePlace) -> OffloadBundle:
    entries = []
    position = HEADER_LAYOUT.size
    for number in range(entry_count):
        if position + ENTRY_LAYOUT.size > len(head):
            raise DeviceCodeError(place, f"the header ends inside entry {number} of {entry_count}")
        offset, size, id_size = ENTRY_LAYOUT.unpack(bytes(head[position : position + ENTRY_LAYOUT.size]))
        position += ENTRY_LAYOUT.size
        if id_size > min(_ID_LIMIT, len(head) - position):
            raise DeviceCodeError(place, f"the ID of entry {number} of {entry_count} is {count(id_size, 'byte')} long")
        spelling = bytes(head[position : position + id_size]).decode("ascii", "backslashreplace")
        position += id_size
        entries.append(BundleEntry(BundleEntryId.parse(spelling, source=f"{place}"), spelling, offset, size))
    return OffloadBundle(tuple(entries), position)


def _check_layout(bundle: OffloadBundle, place: CodePlace, available: int) -> None:
    for entry in bundle.entries:
        if entry.stop > available:
            raise DeviceCodeError(
                place,
                f"the entry {entry.spelling!r} ends at byte {entry.stop} in the bundle",
                expected=f"at most {available}, where the data ends",
                remedy="The file may be truncated.",
            )
    end, before = bundle.header_size, "the header"
    for entry in sorted((e for e in bundle.entries if e.size), key=lambda e: e.offset):
        if entry.offset < end:
            raise DeviceCodeError(place, f"the entry {entry.spelling!r} at {entry.offset:#x} overlaps {before}")
        end, before = entry.stop, f"the entry {entry.spelling!r}"


def is_short_host(spelling: str) -> bool:
    """Return whether a host entry is written as in clang 16 and earlier (`OffloadBundle.short_host`)."""
    return spelling.startswith("host-") and spelling.count("-") < _TRIPLE_DASHES


HOST_ENTRY = "host-x86_64-unknown-linux--"
"""The empty host entry, written as in clang 17 to 19; all bundlers since LLVM 15 can read this form."""
CODE_ENTRY = "hipv4-amdgcn-amd-amdhsa--"
"""The start of an entry ID for HIP code; the target follows."""
BUNDLE_ALIGNMENT = 4096
"""The alignment of payloads in a bundle: the runtime maps code objects in place, so each payload starts on a page."""


class BundlePart(msgspec.Struct, frozen=True):
    """A part of a bundle: the text of an entry ID, and the payload as a sequence of buffers."""

    spelling: str
    payload: tuple[Data, ...] = ()

    @property
    def target(self) -> TargetId | None:
        """The target of the code object, or `None` for the host entry.

        Raises `InputError` if the text isn't an entry ID.
        """
        return BundleEntryId.parse(self.spelling).target

    @property
    def size(self) -> int:
        """The size of the payload in bytes."""
        return sum(len(buffer) for buffer in self.payload)


def spell_host(spelling: str) -> str:
    """Return the entry ID, with a short host entry (`OffloadBundle.short_host`) written as in clang 17 to 19.

    The bundlers of LLVM 15 to 22 can read that form.
    """
    return f"{spelling.rstrip('-')}--" if is_short_host(spelling) else spelling


def spell_hosts(parts: tuple[BundlePart, ...]) -> tuple[BundlePart, ...]:
    """Return ``parts`` with the host entries that `spell_host` returns, or the same tuple if nothing changes."""
    if not any(is_short_host(part.spelling) for part in parts):
        return parts
    return tuple(BundlePart(spell_host(part.spelling), part.payload) for part in parts)


def write_offload_bundle(parts: Sequence[BundlePart], *, alignment: int = BUNDLE_ALIGNMENT) -> Iterator[Data]:
    """Yield the bytes of a plain bundle as a sequence of buffers, without copying the payloads.

    The order of ``parts`` doesn't change, because readers use the first entry that matches.
    """
    header, offsets = lay_out_bundle([(part.spelling, part.size) for part in parts], alignment=alignment)
    yield memoryview(header)
    end = len(header)
    for part, offset in zip(parts, offsets, strict=True):
        if part.size:
            yield memoryview(bytes(offset - end))
            yield from part.payload
            end = offset + part.size
    # LLVM's reader stops at an entry that starts past the end, even if the entry is empty.
    if (last := max(offsets, default=0)) > end:
        yield memoryview(bytes(last - end))


def lay_out_bundle(
    entries: Sequence[tuple[str, int]], *, alignment: int = BUNDLE_ALIGNMENT
) -> tuple[bytes, tuple[int, ...]]:
    """Return the header of a plain bundle with these entries, and each payload's offset in the bundle.

    An entry is a pair: the text of its ID, and its size in bytes. LLVM's reader expects the bundle to reach at least
    the start of the last payload, even if that payload is empty.
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
