"""The facts about the payloads of a bundle, read one at a time, in place or from a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.compressed import RAW_SIZE_LIMIT, WrongHashError, find_inner_magic, measure_entries
from rocwheel.binary.bundles.sequence import iter_entries
from rocwheel.binary.code_objects import is_code_object, read_code_object
from rocwheel.binary.kernel_metadata import count_kernels
from rocwheel.binary.kind import COMPRESSED_MAGIC
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.reading import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.bundles.compressed import CompressedBundle
    from rocwheel.binary.bundles.plain import BundleEntry
    from rocwheel.binary.bundles.sequence import Bundle
    from rocwheel.binary.code_objects import Place
    from rocwheel.core.reading import Data

__all__ = ["Look", "PayloadFacts", "iter_payloads", "read_payload_facts"]

_LARGEST_HELD = 256 << 20
"""The largest payload of a compressed bundle that is held to be looked into; those of ROCm's libraries are smaller."""
_FIRST_WITH_FEATURES = 4
"""The first code object version whose ``e_flags`` distinguish features that are off from those that are left open."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """How closely to look at device code."""

    deep: bool = False
    """Whether compressed bundles are decompressed."""
    limit: int = RAW_SIZE_LIMIT
    """The largest bundle to decompress, and the largest member of a wheel to unpack, in bytes."""
    strict: bool = True
    """Whether damage within a code object is an error, rather than a problem to report."""


class PayloadFacts(msgspec.Struct, frozen=True):
    """Facts of the entries of a bundle, all of them, in their order.

    ``stored`` are the bytes that each takes in the file, ``kernels`` how many it has; none where nobody looked, and for
    payloads that are not code objects.
    """

    stored: tuple[int | None, ...]
    kernels: tuple[int | None, ...]
    problems: tuple[str, ...] = ()


def read_payload_facts(view: Data, bundle: Bundle, look: Look) -> PayloadFacts:
    """Look into the payloads of ``bundle``, which is in ``view``.

    Those of a compressed one are read only when ``look`` is deep, and when it decompresses to no more than its limit.
    Raises `InputError` for damaged payloads.
    """
    unknown = (None,) * len(bundle.plain.entries)
    if bundle.compressed is None:
        kernels, problems = _look_into(view, bundle, strict=look.strict)
        return PayloadFacts(tuple(entry.size for entry in bundle.plain.entries), kernels, tuple(problems))
    if not look.deep:
        return PayloadFacts(unknown, unknown)
    if bundle.raw_size > look.limit:
        found = f"it holds {count(bundle.raw_size, 'byte')} and was not read: at most {look.limit} bytes are"
        return PayloadFacts(unknown, unknown, (f"{bundle.place}: {found}",))
    kernels, problems = _look_into(view, bundle, strict=look.strict)
    if (offset := find_inner_magic(view[bundle.start : bundle.stop])) is not None:
        found = (
            f"its payload has the bytes {COMPRESSED_MAGIC.decode()} at {offset:#x}, where some readers begin another"
        )
        problems.append(f"{bundle.place}: {found} bundle; device compress writes it without them")
    return PayloadFacts(_measure(view, bundle, bundle.compressed), kernels, tuple(problems))


def _measure(view: Data, bundle: Bundle, compressed: CompressedBundle) -> tuple[int, ...]:
    return tuple(measure_entries(view[bundle.start :], compressed, bundle.plain, place=bundle.place))


def _look_into(view: Data, bundle: Bundle, *, strict: bool) -> tuple[tuple[int | None, ...], list[str]]:
    kernels: dict[BundleEntry, int | None] = {}
    problems = []
    try:
        for entry, payload in iter_payloads(view, bundle):
            kernels[entry], problem = _read_or_report(payload, entry, bundle.place, strict=strict)
            problems += [problem] if problem else []
    except WrongHashError as e:
        problems.append(f"{bundle.place}: {e.found}")
    return tuple(kernels.get(entry) for entry in bundle.plain.entries), problems


def iter_payloads(view: Data, bundle: Bundle) -> Iterator[tuple[BundleEntry, Data]]:
    """Yield the payload of each device entry when it is whole, in the order in which they lie in the bundle.

    They don't overlap, so that one is held at a time. Larger ones than `_LARGEST_HELD` are passed over.
    """
    held = bytearray()
    entries = sorted(bundle.plain.device_entries, key=lambda entry: entry.offset)
    for entry, piece in iter_entries(view, bundle, entries):
        if len(piece) == entry.size:
            yield entry, piece
        elif entry.size <= _LARGEST_HELD:
            held += load(piece)
            if len(held) == entry.size:
                yield entry, memoryview(held)
                held = bytearray()


def _read_or_report(payload: Data, entry: BundleEntry, place: Place, *, strict: bool) -> tuple[int | None, str | None]:
    try:
        return _read_payload(payload, entry, place)
    except InputError as e:
        if strict:
            raise
        return None, str(e)


def _read_payload(payload: Data, entry: BundleEntry, place: Place) -> tuple[int | None, str | None]:
    """Return the number of kernels, none in bitcode and SPIR-V, and the problem of a payload for another target."""
    if not is_code_object(payload):
        return None, None
    code = read_code_object(payload, place=place)
    problem = None
    if code.version >= _FIRST_WITH_FEATURES and code.target not in {None, entry.target}:
        problem = f"{place}: the entry {entry.spelling!r} holds code for {code.target}"
    return count_kernels(payload, code, place=place), problem
