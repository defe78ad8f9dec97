"""What there is to tell about the device code of one file: plain values for tables and JSON."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.ar_archive import is_ar_archive, is_thin_archive, iter_ar_members
from rocwheel.binary.compressed_bundle import RAW_SIZE_LIMIT
from rocwheel.binary.device_code import DeviceCode, read_device_code
from rocwheel.binary.device_error import Place
from rocwheel.binary.kernel_metadata import count_kernels
from rocwheel.binary.machine import find_illegal
from rocwheel.binary.offload_image import read_offload_images
from rocwheel.binary.payload_facts import read_payload_facts
from rocwheel.errors import InputError
from rocwheel.files import FileRange, release_pages

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rocwheel.binary.bundle_sequence import Bundle
    from rocwheel.binary.code_object import CodeObject

__all__ = [
    "BundleFacts",
    "DeviceFacts",
    "EntryFacts",
    "TargetFacts",
    "list_device_code",
    "read_device_facts",
    "summarize_targets",
]

_HOST = "host"


class EntryFacts(msgspec.Struct, frozen=True):
    """An entry of a bundle, an image in an object file, or a code object by itself; sizes in bytes.

    ``stored_size`` is what it takes in the file. That and ``kernels`` are none when the bundle wasn't decompressed.
    """

    id: str
    target: str
    size: int
    stored_size: int | None
    kernels: int | None = None


class BundleFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle: where it is in the file, its size there and decompressed, in bytes; version 0 is a plain one."""

    number: int
    offset: int
    size: int
    raw_size: int
    version: int
    method: str
    hosts: tuple[EntryFacts, ...]
    """The (empty) entries for the host, of the target ``host``; they come first in bundles of all known writers."""
    entries: tuple[EntryFacts, ...]


class DeviceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The device code of one file. ``entries`` are those outside of bundles: a code object by itself, or images."""

    container: str
    wrappers: int = 0
    bundles: tuple[BundleFacts, ...] = ()
    entries: tuple[EntryFacts, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Size of all device code in the file, in bytes."""
        return sum(bundle.size for bundle in self.bundles) + sum(entry.size for entry in self.entries)

    @property
    def raw_size(self) -> int:
        """Size of all device code when decompressed, in bytes."""
        return sum(bundle.raw_size for bundle in self.bundles) + sum(entry.size for entry in self.entries)


class TargetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The code for one target over all bundles of a file; ``missing`` counts the bundles without any for it."""

    target: str
    bundles: int
    missing: int
    size: int
    stored_size: int | None
    kernels: int | None


def read_device_facts(
    data: memoryview, *, name: str, deep: bool = False, limit: int = RAW_SIZE_LIMIT
) -> DeviceFacts | None:
    """Gather the facts of the file ``name``; none when it has no device code.

    With ``deep``, compressed bundles of up to ``limit`` bytes are decompressed, to check hashes and to count kernels.
    Raises `InputError` for damaged files.
    """
    if is_ar_archive(data):
        return _read_archive(data, name, deep=deep, limit=limit)
    code = read_device_code(data, name=name)
    if code is None:
        return _read_images(data, name)
    if code.code_object is not None:
        target = str(code.code_object.target or "unknown")
        kernels = count_kernels(data, code.code_object, place=Place(name))
        entry = EntryFacts("", target, len(data), len(data), kernels)
        return DeviceFacts(
            container="code object", entries=(entry,), problems=_machine_problems(code.code_object, name)
        )
    return _read_bundles(data, code, deep=deep, limit=limit)


def _machine_problems(code: CodeObject, name: str) -> tuple[str, ...]:
    found = f"{Place(name)}: a code object whose flags {code.flags:#x} name no processor"
    return () if code.target else (found,)


def list_device_code(path: Path) -> DeviceFacts:
    """Return the facts of the file ``path``, as `read_device_facts` does.

    Raises `InputError` also when it has no device code.
    """
    with FileRange.whole(path).map() as data:
        facts = read_device_facts(data, name=str(path))
        is_thin = is_thin_archive(data)
    if facts is None:
        kinds = "a fat binary, a file of bundles, a code object, an object file or a static library"
        raise InputError(path, "a thin archive" if is_thin else "no device code", expected=kinds)
    return facts


def _read_archive(data: memoryview, name: str, *, deep: bool, limit: int) -> DeviceFacts | None:
    """Gather what all members hold; bundles are numbered through, and placed in the archive."""
    bundles: list[BundleFacts] = []
    entries: list[EntryFacts] = []
    problems: list[str] = []
    wrappers = 0
    for member in iter_ar_members(data, name=name):
        content = data[member.offset : member.offset + member.size]
        facts = read_device_facts(content, name=f"{name}({member.name})", deep=deep, limit=limit)
        if facts is None:
            continue
        for bundle in facts.bundles:
            place = {"number": len(bundles), "offset": bundle.offset + member.offset}
            bundles.append(msgspec.structs.replace(bundle, **place))
        entries += [msgspec.structs.replace(entry, id=f"{member.name}:{entry.id}") for entry in facts.entries]
        problems += facts.problems
        wrappers += facts.wrappers
    if not bundles and not entries:
        return None
    return DeviceFacts(
        container="archive", wrappers=wrappers, bundles=tuple(bundles), entries=tuple(entries), problems=tuple(problems)
    )


def _read_images(data: memoryview, name: str) -> DeviceFacts | None:
    images = read_offload_images(data, name=name)
    entries = tuple(
        EntryFacts(f"{image.kind}-{image.triple}", image.arch or "unknown", image.size, image.size) for image in images
    )
    problems = tuple(
        f"{Place(name, image.offset)}: an image that is for no target: {reason}"
        for image in images
        if image.target and (reason := find_illegal(image.target))
    )
    return DeviceFacts(container="object file", entries=entries, problems=problems) if entries else None


def _read_bundles(data: memoryview, code: DeviceCode, *, deep: bool, limit: int) -> DeviceFacts:
    view = code.view(data)
    bundles: list[BundleFacts] = []
    problems: list[str] = []
    for bundle in code.iter_bundles(data, strict=False):
        problems += bundle.find_problems()
        facts, found = _bundle_facts(view, bundle, deep=deep, limit=limit)
        bundles.append(facts)
        problems += found
        release_pages(data)
    fat = code.fat_binary
    if fat is None:
        last = bundles[-1]
        rest = len(data) - last.offset - last.size
        if rest and last.version:
            place = Place(code.name, last.offset + last.size, last.number)
            refusal = ", which LLVM's bundler refuses" if last.method == "zstd" else ""
            problems.append(f"{place}: {rest} bytes follow the compressed bundle{refusal}")
        return DeviceFacts(container="bundles", bundles=tuple(bundles), problems=tuple(problems))
    problems += fat.find_problems(bundle.offset for bundle in bundles)
    container = "kpacked fat binary" if fat.is_kpacked else "fat binary"
    return DeviceFacts(
        container=container, wrappers=len(fat.wrappers), bundles=tuple(bundles), problems=tuple(problems)
    )


def _bundle_facts(view: memoryview, bundle: Bundle, *, deep: bool, limit: int) -> tuple[BundleFacts, tuple[str, ...]]:
    payloads = read_payload_facts(view, bundle, deep=deep, limit=limit)
    entries, hosts = [], []
    for entry, stored, kernels in zip(bundle.plain.entries, payloads.stored, payloads.kernels, strict=True):
        if entry.id.is_host:
            hosts.append(EntryFacts(entry.spelling, _HOST, entry.size, stored))
        else:
            entries.append(EntryFacts(entry.spelling, str(entry.target), entry.size, stored, kernels))
    facts = BundleFacts(
        number=bundle.place.bundle or 0,
        offset=bundle.place.offset,
        size=bundle.size,
        raw_size=bundle.raw_size,
        version=bundle.compressed.version if bundle.compressed else 0,
        method=bundle.compressed.method.name.lower() if bundle.compressed else "",
        hosts=tuple(hosts),
        entries=tuple(entries),
    )
    return facts, payloads.problems


def summarize_targets(facts: DeviceFacts) -> tuple[TargetFacts, ...]:
    """Sum up the code for each target, sorted by name; targets with code in all bundles miss none."""
    groups = [bundle.entries for bundle in facts.bundles] + ([facts.entries] if facts.entries else [])
    by_target: dict[str, list[tuple[int, EntryFacts]]] = defaultdict(list)
    for number, entries in enumerate(groups):
        for entry in entries:
            by_target[entry.target].append((number, entry))
    return tuple(_sum_up(target, found, len(groups)) for target, found in sorted(by_target.items()))


def _sum_up(target: str, found: list[tuple[int, EntryFacts]], groups: int) -> TargetFacts:
    numbers = {number for number, _ in found}
    return TargetFacts(
        target=target,
        bundles=len(numbers),
        missing=groups - len(numbers),
        size=sum(entry.size for _, entry in found),
        stored_size=_sum_known(entry.stored_size for _, entry in found),
        kernels=_sum_known(entry.kernels for _, entry in found),
    )


def _sum_known(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
