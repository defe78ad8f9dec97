"""Plain offload bundles: read, and written from parts.

======  ======  ==========================================================================
offset  size    field
======  ======  ==========================================================================
0       24      ``__CLANG_OFFLOAD_BUNDLE__``
24      8       number of entries
32      24 + n  each entry: offset from the bundle's start, size, length n of the id; the id
======  ======  ==========================================================================

Integers are unsigned, little-endian and 64 bits wide. Zeros fill the space before each payload. A bundle doesn't state
its own size: it ends with its last payload.
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
"""The runtime hands over this much of a plain bundle to look up a target, so all ids must lie within."""

HEADER_LAYOUT = struct.Struct("<24sQ")
ENTRY_LAYOUT = struct.Struct("<QQQ")
_ID_LIMIT = 4096
_ENTRY_LIMIT = 1024
"""Entries of one bundle; compilers write a few dozen. Many times that compress to a few hundred bytes."""
_TRIPLE_DASHES = 4


class BundleEntry(msgspec.Struct, frozen=True):
    """One entry: where its payload is, counted from the bundle's start, and its id, parsed and as it is spelled."""

    id: BundleEntryId
    spelling: str
    offset: int
    size: int

    @property
    def target(self) -> TargetId | None:
        """The target of the code object; none for the host entry."""
        return self.id.target

    @property
    def stop(self) -> int:
        """Where the payload ends, counted from the bundle's start."""
        return self.offset + self.size


class OffloadBundle(msgspec.Struct, frozen=True):
    """The header of a plain bundle: its entries in file order; all sizes are in bytes."""

    entries: tuple[BundleEntry, ...]
    header_size: int

    @property
    def size(self) -> int:
        """Size of the whole bundle: to the end of the last payload, be it empty."""
        return max([self.header_size, *(entry.stop for entry in self.entries)])

    @property
    def device_entries(self) -> tuple[BundleEntry, ...]:
        """The entries of device code."""
        return tuple(entry for entry in self.entries if not entry.id.is_host)

    @property
    def short_host(self) -> str | None:
        """The host entry as clang 16 and earlier spell it, ``host-x86_64-unknown-linux``; none if there is none.

        Readers on LLVM 21 and later (clang-offload-bundler, comgr's unbundling of compressed bundles) give up on the
        bundle when they come across it; the lookup in plain bundles, which the runtime uses, doesn't mind.
        """
        return next((entry.spelling for entry in self.entries if is_short_host(entry.spelling)), None)

    @property
    def repeated(self) -> tuple[str, ...]:
        """The ids that occur more than once, as they are spelled."""
        counts = Counter(entry.spelling for entry in self.entries)
        return tuple(spelling for spelling, count in counts.items() if count > 1)

    @property
    def targets(self) -> tuple[TargetId, ...]:
        """The targets of the device entries, in file order."""
        return tuple(entry.target for entry in self.entries if entry.target is not None)

    def find_problems(self) -> tuple[str, ...]:
        """Return what readers disagree about or refuse, though the layout is sound."""
        problems = []
        if not self.entries:
            problems.append("it has no entries")
        elif not self.device_entries:
            problems.append("it has no device code")
        problems += [f"the entry {spelling!r} occurs more than once" for spelling in self.repeated]
        problems += [f"the entry {e.spelling!r} is empty" for e in self.device_entries if e.size == 0]
        problems += self._target_problems()
        if self.header_size > RUNTIME_HEADER_LIMIT:
            problems.append(
                f"its header takes {self.header_size} bytes; the runtime reads {RUNTIME_HEADER_LIMIT} of a plain bundle"
            )
        return tuple(problems)

    def _target_problems(self) -> Iterator[str]:
        for one, other in ambiguous_targets(self.targets):
            yield f"the targets {one} and {other} are ambiguous: one names features that the other leaves open"
        for entry in self.device_entries:
            if entry.target and (reason := find_illegal(entry.target)):
                yield f"the entry {entry.spelling!r} is not for a valid target: {reason}"


def ambiguous_targets(targets: Sequence[TargetId]) -> Iterator[tuple[TargetId, TargetId]]:
    """Yield the pairs of targets that LLVM's bundler refuses; each is compared with its processor's first target."""
    first: dict[str, TargetId] = {}
    for target in targets:
        one = first.setdefault(target.processor, target)
        if one.features.keys() != target.features.keys():
            yield one, target


def read_offload_bundle(head: Data, *, place: CodePlace, available: int | None = None) -> OffloadBundle:
    """Read the header of the bundle at the start of ``head``.

    ``available`` is the number of bytes that the whole bundle may take, if ``head`` is only its beginning.
    Raises `DeviceCodeError` for a truncated header, more than 1024 entries, ids that don't parse, and payloads that
    overlap or lie outside.
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
        found = f"{count(entry_count, 'entry', 'entries')} declared in a header of {count(len(head), 'byte')} at most"
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
            raise DeviceCodeError(place, f"the header ends within entry {number} of {entry_count}")
        offset, size, id_size = ENTRY_LAYOUT.unpack(bytes(head[position : position + ENTRY_LAYOUT.size]))
        position += ENTRY_LAYOUT.size
        if id_size > min(_ID_LIMIT, len(head) - position):
            raise DeviceCodeError(place, f"the id of entry {number} of {entry_count} is {count(id_size, 'byte')} long")
        spelling = bytes(head[position : position + id_size]).decode("ascii", "backslashreplace")
        position += id_size
        entries.append(BundleEntry(BundleEntryId.parse(spelling, source=f"{place}"), spelling, offset, size))
    return OffloadBundle(tuple(entries), position)


def _check_layout(bundle: OffloadBundle, place: CodePlace, available: int) -> None:
    for entry in bundle.entries:
        if entry.stop > available:
            raise DeviceCodeError(
                place,
                f"the entry {entry.spelling!r} ends at byte {entry.stop} of the bundle",
                expected=f"at most {available}, where the data end",
                remedy="The file may be truncated.",
            )
    end, before = bundle.header_size, "the header"
    for entry in sorted((e for e in bundle.entries if e.size), key=lambda e: e.offset):
        if entry.offset < end:
            raise DeviceCodeError(place, f"the entry {entry.spelling!r} at {entry.offset:#x} overlaps {before}")
        end, before = entry.stop, f"the entry {entry.spelling!r}"


def is_short_host(spelling: str) -> bool:
    """Return whether a host entry is spelled as clang 16 and earlier do (`OffloadBundle.short_host`)."""
    return spelling.startswith("host-") and spelling.count("-") < _TRIPLE_DASHES


HOST_ENTRY = "host-x86_64-unknown-linux--"
"""The empty entry for the host, spelled as clang 17 to 19 do, which all bundlers from LLVM 15 on read."""
CODE_ENTRY = "hipv4-amdgcn-amd-amdhsa--"
"""What the id of an entry with code for HIP begins with; its target follows."""
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
