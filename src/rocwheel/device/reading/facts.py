"""The facts of the device code of one file: plain values for tables and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.device_code import DeviceCode, iter_ar_members, read_device_code, read_offload_images
from rocwheel.binary.code_objects import Place, find_illegal
from rocwheel.binary.kernel_metadata import count_kernels
from rocwheel.binary.kind import is_ar_archive, is_thin_archive
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.reading import FileRange, release_pages
from rocwheel.device.reading.device_facts import BundleFacts, DeviceFacts, EntryFacts
from rocwheel.device.reading.kpack.facts import read_kpack_facts
from rocwheel.device.reading.payload_facts import Look, read_payload_facts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocwheel.binary.bundles.sequence import Bundle
    from rocwheel.binary.code_objects import CodeObject
    from rocwheel.core.reading import Data
    from rocwheel.device.reading.kpack.given_archives import Beside

__all__ = ["list_device_code", "read_device_facts"]

_HOST = "host"
_BRIEFLY = Look()


def read_device_facts(
    data: Data, *, name: str, look: Look = _BRIEFLY, folder: Path | None = None, beside: Beside | None = None
) -> DeviceFacts | None:
    """Gather the facts of the file ``name``; none when it has no device code.

    With a deep ``look``, compressed bundles are decompressed, to check hashes and to count kernels. From ``folder``, in
    which the file is, and ``beside`` it, the kpack archives of a split library are looked for.
    Raises `InputError` for damaged files; when it isn't strict, damage within code objects is among the problems.
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
        return _read_code_object(data, code.code_object, Place(name), look)
    return _read_bundles(data, code, look)


def _read_code_object(data: Data, code: CodeObject, place: Place, look: Look) -> DeviceFacts:
    kernels = None
    unknown = f"{place}: a code object whose flags {code.flags:#x} name no processor"
    problems: tuple[str, ...] = () if code.target else (unknown,)
    try:
        kernels = count_kernels(data, code, place=place)
    except InputError as e:
        if look.strict:
            raise
        problems += (str(e),)
    entry = EntryFacts("", str(code.target or "unknown"), len(data), len(data), kernels)
    return DeviceFacts(container="code object", entries=(entry,), problems=problems)


def list_device_code(path: Path) -> DeviceFacts:
    """Return the facts of the file ``path``, as `read_device_facts` does when it isn't strict.

    Raises `InputError` also when it has no device code.
    """
    with FileRange.whole(path).view() as data:
        facts = read_device_facts(data, name=str(path), look=Look(strict=False), folder=path.parent)
        is_thin = is_thin_archive(data)
    if facts is None:
        kinds = "a fat binary, a file of bundles, a kpack archive, a code object, an object file or a static library"
        raise InputError(path, "a thin archive" if is_thin else "no device code", expected=kinds)
    return facts


def _read_archive(data: Data, name: str, look: Look, depth: int) -> DeviceFacts | None:
    """Gather what all members hold; bundles are numbered through, and placed in the archive.

    ``depth`` is how many archives it is in.
    """
    bundles: list[BundleFacts] = []
    entries: list[EntryFacts] = []
    problems: list[str] = []
    wrappers = 0
    for member in iter_ar_members(data, name=name, depth=depth):
        content = data[member.offset : member.offset + member.size]
        facts = _read_member(content, f"{name}({member.name})", look, depth + 1)
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


def _read_member(data: Data, name: str, look: Look, depth: int) -> DeviceFacts | None:
    if is_ar_archive(data):
        return _read_archive(data, name, look, depth)
    return read_device_facts(data, name=name, look=look)


def _read_images(data: Data, name: str) -> DeviceFacts | None:
    images = read_offload_images(data, name=name)
    entries = tuple(
        EntryFacts(f"{image.kind}-{image.triple}", image.arch or "unknown", image.size, image.size) for image in images
    )
    problems = tuple(
        f"{Place(name, image.offset)}: an image that is not for a valid target: {reason}"
        for image in images
        if image.target and (reason := find_illegal(image.target))
    )
    return DeviceFacts(container="object file", entries=entries, problems=problems) if entries else None


def _read_bundles(data: Data, code: DeviceCode, look: Look) -> DeviceFacts:
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


def _rest_problems(data: Data, code: DeviceCode, last: BundleFacts) -> Iterator[str]:
    """Yield what is wrong with bytes after the last bundle of a file, if there are any."""
    rest = len(data) - last.offset - last.size
    if rest and last.version:
        place = Place(code.name, last.offset + last.size, last.number)
        refusal = ", which LLVM's bundler refuses" if last.method == "zstd" else ""
        yield f"{place}: {count(rest, 'byte')} after the compressed bundle{refusal}"


def _bundle_facts(view: Data, bundle: Bundle, look: Look) -> tuple[BundleFacts, tuple[str, ...]]:
    payloads = read_payload_facts(view, bundle, look)
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
