"""Gathers facts about the device code in one file, as plain values for tables and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.compressed import RAW_SIZE_LIMIT, WrongHashError, find_inner_magic, measure_entries
from rocwheel.binary.bundles.device_code import DeviceCode, iter_ar_members, read_device_code, read_offload_images
from rocwheel.binary.bundles.sequence import iter_entries
from rocwheel.binary.code_objects import CodePlace, find_illegal, is_code_object, processor_of, read_code_object
from rocwheel.binary.kernel_metadata import count_kernels
from rocwheel.binary.kind import COMPRESSED_MAGIC, is_ar_archive, unread_archive
from rocwheel.binary.kpack.archive import Scheme
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.reading import FileRange, load, release_pages
from rocwheel.device.kpack_code import find_inconsistencies, open_kpack_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rocwheel.binary.bundles.plain import BundleEntry
    from rocwheel.binary.bundles.sequence import Bundle
    from rocwheel.binary.code_objects import CodeObject
    from rocwheel.binary.kpack.archive import KpackArchive
    from rocwheel.binary.kpack.markers import SplitUnit
    from rocwheel.core.reading import Data
    from rocwheel.device.kpack_code import ArchiveLookup, CodeUnit, KpackCode, StoredCode


class EntryFacts(msgspec.Struct, frozen=True):
    """An entry of a bundle or archive, an image in an object file, or a standalone code object. Sizes are in bytes.

    ``stored_size`` is the size in the file. ``stored_size`` and ``kernels`` are `None` if the bundle wasn't
    decompressed.
    """

    id: str
    target: str
    size: int
    stored_size: int | None
    kernels: int | None = None
    is_shared: bool = False
    """Whether an earlier entry, with a different target, refers to the same code object in the kpack archive."""


class BundleFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle: its position in the file, and its stored and decompressed sizes, in bytes; version 0 is plain."""

    number: int
    offset: int
    size: int
    raw_size: int
    version: int
    method: str
    hosts: tuple[EntryFacts, ...]
    """The (empty) host entries, which have the target ``host``. All known writers put them first."""
    entries: tuple[EntryFacts, ...]


class UnitFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A wrapper in a split library: its file offset, its lookup key, and the search paths for archives."""

    offset: int
    key: str
    search_paths: tuple[str, ...]


class ArchiveFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A kpack archive: its metadata, and the number of its code objects."""

    path: str
    scheme: str
    group: str
    family: str
    targets: tuple[str, ...]
    code_objects: int


class KpackFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The archives with the code: the file itself, or the archives found for a split library's wrappers."""

    keys: tuple[str, ...]
    """The distinct lookup keys in an archive or in a library's wrappers."""
    archives: tuple[ArchiveFacts, ...]
    wrappers: tuple[UnitFacts, ...] = ()


class DeviceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The device code in one file.

    ``entries`` contains the code outside bundles, such as a standalone code object or images.
    """

    container: str
    wrappers: int = 0
    bundles: tuple[BundleFacts, ...] = ()
    entries: tuple[EntryFacts, ...] = ()
    problems: tuple[str, ...] = ()
    kpack: KpackFacts | None = None
    """Facts about kpack archives, if any. If so, ``entries`` contains the code objects in the archives."""

    @property
    def size(self) -> int:
        """The size of all device code in the file, in bytes."""
        stored = (entry.size if entry.stored_size is None else entry.stored_size for entry in self._each_once)
        return sum(bundle.size for bundle in self.bundles) + sum(stored)

    @property
    def raw_size(self) -> int:
        """The decompressed size of all device code in the file, in bytes."""
        return sum(bundle.raw_size for bundle in self.bundles) + sum(entry.size for entry in self._each_once)

    @property
    def groups(self) -> tuple[tuple[EntryFacts, ...], ...]:
        """The entries of each bundle, or under each key in kpack archives.

        The last group contains all entries outside bundles.
        """
        bundles = tuple(bundle.entries for bundle in self.bundles)
        if self.kpack is None:
            return (*bundles, self.entries) if self.entries else bundles
        by_key: dict[str, list[EntryFacts]] = {key: [] for key in self.kpack.keys}
        for entry in self.entries:
            by_key[entry.id].append(entry)
        return tuple(map(tuple, by_key.values()))

    @property
    def _each_once(self) -> Iterator[EntryFacts]:
        return (entry for entry in self.entries if not entry.is_shared)


_LARGEST_HELD = 256 << 20
"""The size of the largest payload from a compressed bundle that is kept in memory for inspection.

Payloads in ROCm libraries are smaller.
"""
_FIRST_WITH_FEATURES = 4
"""The first code object version whose ``e_flags`` distinguish features that are off from features that aren't set."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for the inspection of device code."""

    deep: bool = False
    """Whether to decompress compressed bundles."""
    limit: int = RAW_SIZE_LIMIT
    """The size in bytes of the largest bundle to decompress, and of the largest wheel member to unpack."""
    strict: bool = True
    """Whether damage inside a code object raises an error instead of being reported as a problem."""
    code: bool = True
    """Whether to read code objects, to count their kernels and to check them. Otherwise, only headers are read."""


def _read_payloads(
    view: Data, bundle: Bundle, look: Look
) -> tuple[Sequence[int | None], Sequence[int | None], Sequence[str]]:
    """Return the stored size and the number of kernels for each entry of ``bundle``, and a list of problems.

    The values are `None` for payloads that aren't read or aren't code objects. A compressed bundle's payloads are read
    only if ``look`` is deep and the decompressed bundle doesn't exceed the limit. Raises `InputError` for damaged
    payloads.
    """
    unknown = (None,) * len(bundle.plain.entries)
    if bundle.compressed is None:
        sizes = tuple(entry.size for entry in bundle.plain.entries)
        return sizes, *(_look_into(view, bundle, strict=look.strict) if look.code else (unknown, ()))
    if not look.deep:
        return unknown, unknown, ()
    if bundle.raw_size > look.limit:
        size = count(bundle.raw_size, "byte")
        found = f"the bundle wasn't read, because it contains {size}, more than the limit of {look.limit}"
        return unknown, unknown, (f"{bundle.place}: {found}",)
    kernels, problems = _look_into(view, bundle, strict=look.strict)
    if (offset := find_inner_magic(view[bundle.start : bundle.stop])) is not None:
        found = (
            f"its payload contains the bytes {COMPRESSED_MAGIC.decode()} at {offset:#x}, which some readers mistake "
            "for another"
        )
        problems.append(f"{bundle.place}: {found} bundle; to avoid this, use device compress")
    stored = measure_entries(view[bundle.start :], bundle.compressed, bundle.plain, place=bundle.place)
    return stored, kernels, problems


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
    """Yield the payload of each device entry as soon as the payload is complete, in file order.

    Payloads don't overlap, so only one is in memory at a time. Payloads larger than `_LARGEST_HELD` are skipped.
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


def _read_or_report(
    payload: Data, entry: BundleEntry, place: CodePlace, *, strict: bool
) -> tuple[int | None, str | None]:
    try:
        # Return the number of kernels (`None` for bitcode and SPIR-V), and a problem if the payload is for another
        # target.
        if not is_code_object(payload):
            return None, None
        code = read_code_object(payload, place=place)
        problem = None
        if code.version >= _FIRST_WITH_FEATURES and code.target not in {None, entry.target}:
            problem = f"{place}: the entry {entry.spelling!r} contains code for {code.target}"
        return count_kernels(payload, code, place=place), problem
    except InputError as e:
        if strict:
            raise
        return None, str(e)


def read_kpack_facts(
    data: Data, *, name: str, look: Look, folder: Path | None, beside: ArchiveLookup | None = None
) -> DeviceFacts | None:
    """Return facts about the archive or split library ``name``, or `None` for any other file.

    Kernels are counted if ``look`` is deep or the code isn't compressed. A library's archives are looked up relative to
    its ``folder``, and among the archives ``beside`` it. If neither is specified, missing archives aren't reported.
    Raises `InputError` for a damaged file.
    """
    with open_kpack_code(data, name=name, folder=folder, beside=beside) as code:
        if code is None:
            return None
        entries, problems = _Entries(look).read(code)
        is_complete = folder is not None or bool(code.archives) or not code.is_library
        inconsistencies = find_inconsistencies(name, code) if is_complete else ()
        return DeviceFacts(
            container="kpacked fat binary" if code.is_library else "kpack archive",
            wrappers=len(code.wrappers),
            entries=entries,
            problems=tuple(dict.fromkeys((*code.problems, *problems, *inconsistencies))),
            kpack=KpackFacts(
                keys=tuple(dict.fromkeys(unit.key for unit in code.units)),
                archives=tuple(map(_archive_facts, code.archives)),
                wrappers=tuple(map(_wrapper_facts, code.wrappers)),
            ),
        )


def _archive_facts(archive: KpackArchive) -> ArchiveFacts:
    return ArchiveFacts(
        path=archive.name,
        scheme=archive.scheme.value,
        group=archive.group,
        family=archive.family,
        targets=archive.targets,
        code_objects=len(archive.blobs),
    )


def _wrapper_facts(wrapper: SplitUnit) -> UnitFacts:
    marker = wrapper.marker
    key = f"{marker.kernel_name}#{wrapper.index}"
    return UnitFacts(offset=wrapper.offset, key=key, search_paths=marker.search_paths)


class _Entries:
    """Inspects each code object only once, even if it has several keys and targets."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.problems: list[str] = []
        self._kernels: dict[tuple[str, int], int | None] = {}

    def read(self, code: KpackCode) -> tuple[tuple[EntryFacts, ...], list[str]]:
        return tuple(self._entry(unit, stored) for unit in code.units for stored in unit.codes), self.problems

    def _entry(self, unit: CodeUnit, stored: StoredCode) -> EntryFacts:
        is_shared = stored.identity in self._kernels
        if not is_shared:
            self._kernels[stored.identity] = self._count(unit, stored)
        entry = stored.entry
        kernels = self._kernels[stored.identity]
        return EntryFacts(unit.key, entry.target, entry.size, entry.stored_size, kernels, is_shared)

    def _count(self, unit: CodeUnit, stored: StoredCode) -> int | None:
        if not self.look.code or (stored.archive.scheme is not Scheme.NONE and not self.look.deep):
            return None
        place = CodePlace(stored.archive.name, stored.entry.offset)
        try:
            payload = stored.read(self.look.limit)
            if not is_code_object(payload):
                return None
            code = read_code_object(payload, place=place)
            if code.target and code.target.processor != processor_of(stored.entry.target):
                self.problems.append(f"{place}: {unit.key} for {stored.entry.target} contains code for {code.target}")
            return count_kernels(payload, code, place=place)
        except InputError as e:
            if self.look.strict:
                raise
            self.problems.append(str(e))
            return None


_HOST = "host"
_BRIEFLY = Look()


def read_device_facts(
    data: Data, *, name: str, look: Look = _BRIEFLY, folder: Path | None = None, beside: ArchiveLookup | None = None
) -> DeviceFacts | None:
    """Return facts about the file ``name``, or `None` if it has no device code.

    If ``look`` is deep, compressed bundles are decompressed to check hashes and count kernels. A split library's kpack
    archives are looked up relative to its ``folder``, and among the archives ``beside`` it. Raises `InputError` for
    damaged files. If ``look`` isn't strict, damage inside code objects is reported as a problem.
    """
    if is_ar_archive(data):
        return _read_archive(data, name, look, 0)
    kpack = read_kpack_facts(data, name=name, look=look, folder=folder, beside=beside)
    if kpack is not None:
        return kpack
    code = read_device_code(data, name=name)
    if code is None:
        return _read_images(data, name)
    if code.code_object is not None:
        return _read_code_object(data, code.code_object, CodePlace(name), look)
    view = code.view(data)
    bundles: list[BundleFacts] = []
    problems: list[str] = []
    for bundle in code.iter_bundles(data, strict=False):
        problems += bundle.find_problems()
        facts, found = _bundle_facts(view, bundle, look)
        bundles.append(facts)
        problems += found
        release_pages(data)
    fat = code.fat_binary
    if fat is None:
        problems += _rest_problems(data, code, bundles[-1])
        return DeviceFacts(container="bundles", bundles=tuple(bundles), problems=tuple(problems))
    problems += fat.find_problems(bundle.offset for bundle in bundles)
    container = "kpacked fat binary" if fat.is_kpacked else "fat binary"
    return DeviceFacts(
        container=container, wrappers=len(fat.wrappers), bundles=tuple(bundles), problems=tuple(problems)
    )


def _read_code_object(data: Data, code: CodeObject, place: CodePlace, look: Look) -> DeviceFacts:
    kernels = None
    unknown = f"{place}: a code object whose flags {code.flags:#x} don't identify a processor"
    problems: tuple[str, ...] = () if code.target else (unknown,)
    try:
        kernels = count_kernels(data, code, place=place) if look.code else None
    except InputError as e:
        if look.strict:
            raise
        problems += (str(e),)
    entry = EntryFacts("", str(code.target or "unknown"), len(data), len(data), kernels)
    return DeviceFacts(container="code object", entries=(entry,), problems=problems)


def list_device_code(path: Path) -> DeviceFacts:
    """Return facts about the file ``path``, with damage inside code objects reported as problems.

    Raises `InputError` for other damage, and if the file has no device code.
    """
    with FileRange.whole(path).view() as data:
        facts = read_device_facts(data, name=str(path), look=Look(strict=False), folder=path.parent)
        archive = unread_archive(data)
    if facts is None:
        kinds = "a fat binary, a bundle file, a kpack archive, a code object, an object file, or a static library"
        raise InputError(path, archive or "no device code", expected=kinds)
    return facts


def _read_archive(data: Data, name: str, look: Look, depth: int) -> DeviceFacts | None:
    """Return facts about all members. Bundles are numbered across the archive, with their offsets in the archive.

    ``depth`` is the number of archives that this archive is nested in.
    """
    bundles: list[BundleFacts] = []
    entries: list[EntryFacts] = []
    problems: list[str] = []
    wrappers = 0
    for member in iter_ar_members(data, name=name, depth=depth):
        content = data[member.offset : member.offset + member.size]
        label = f"{name}({member.name})"
        if is_ar_archive(content):
            facts = _read_archive(content, label, look, depth + 1)
        else:
            facts = read_device_facts(content, name=label, look=look)
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


def _read_images(data: Data, name: str) -> DeviceFacts | None:
    images = read_offload_images(data, name=name)
    entries = tuple(
        EntryFacts(f"{image.kind}-{image.triple}", image.arch or "unknown", image.size, image.size) for image in images
    )
    problems = tuple(
        f"{CodePlace(name, image.offset)}: an image for an invalid target: {reason}"
        for image in images
        if image.target and (reason := find_illegal(image.target))
    )
    return DeviceFacts(container="object file", entries=entries, problems=problems) if entries else None


def _rest_problems(data: Data, code: DeviceCode, last: BundleFacts) -> Iterator[str]:
    """Yield a problem if any bytes follow a file's last bundle."""
    rest = len(data) - last.offset - last.size
    if rest and last.version:
        place = CodePlace(code.name, last.offset + last.size, last.number)
        refusal = ", which LLVM's bundler rejects" if last.method == "zstd" else ""
        yield f"{place}: {count(rest, 'byte')} after the compressed bundle{refusal}"


def _bundle_facts(view: Data, bundle: Bundle, look: Look) -> tuple[BundleFacts, Sequence[str]]:
    stored_sizes, kernel_counts, problems = _read_payloads(view, bundle, look)
    entries, hosts = [], []
    for entry, stored, kernels in zip(bundle.plain.entries, stored_sizes, kernel_counts, strict=True):
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
    return facts, problems
