"""Device code: offload bundles, code objects and their metadata, kpack archives and markers, names of targets."""

from __future__ import annotations

import hashlib
import zlib
from collections import deque
from contextlib import suppress
from functools import cache

import msgspec

from rocwheel.binary.bundles.compressed import CompressedBundle, Method, iter_decompressed
from rocwheel.binary.bundles.device_code import device_targets, iter_code_sources, read_offload_images
from rocwheel.binary.bundles.sequence import Bundle, iter_bundles
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import (
    BundleEntryId,
    CodePlace,
    is_code_object,
    parse_target_id,
    read_code_object,
    read_loaded_header,
)
from rocwheel.binary.kernel_metadata import count_kernels, kernel_names, read_metadata
from rocwheel.binary.kpack.archive import Scheme, read_archive, read_kernel
from rocwheel.binary.kpack.markers import Marker, encode_markers, read_marker, read_split_library
from rocwheel.core.errors import InputError
from rocwheel.device.edit_bundles import device_patch
from rocwheel.device.trim import require_trimmable
from rocwheel.device.trim_static import is_object_file
from rocwheel.targets.target_set import parse_known_target, parse_target_set
from tests.support.bundles import bundle_of
from tests.support.kpack_files import by_hand, make_kpack, toc
from trials.fuzz.harness import Harness, require
from trials.fuzz.seeds.files import fixtures
from trials.fuzz.seeds.metadata_notes import code_with_note, note_seeds

_PLACE = CodePlace("input")
_MOST_RAW = 1 << 24
"""Bytes that are unpacked of what calls itself compressed."""
_TARGET_TOKENS = (
    b"gfx90a",
    b"gfx1100",
    b":xnack+",
    b":sramecc-",
    b"-generic",
    b"gfx9-4-generic",
    b"hip",
    b"host-",
    b"openmp-",
)


def _bundles(data: bytes) -> None:
    view = memoryview(data)
    for bundle in iter_bundles(view, name="input"):
        require(0 <= bundle.start <= bundle.stop <= len(data), "a bundle outside of the file")
        require(len(list(bundle.find_problems())) < 1 << 20, "a million problems")
        _check_entries(bundle, view)


def _check_entries(bundle: Bundle, view: memoryview) -> None:
    size = bundle.raw_size if bundle.compressed else len(view) - bundle.start
    for entry in bundle.plain.entries:
        require(entry.offset + entry.size <= size, f"the entry {entry.spelling!r} lies outside of its bundle")
    if bundle.compressed and bundle.raw_size <= _MOST_RAW:
        deque(iter_decompressed(view[bundle.start :], bundle.compressed, place=_PLACE), maxlen=0)


def _packed_bundle(data: bytes) -> None:
    """Wrap an input, which is a plain bundle, as a compressed one: its header is right, its content is anything."""
    packed = zlib.compress(data)
    digest = hashlib.md5(data, usedforsecurity=False).digest()[:8]
    header = CompressedBundle(3, Method.ZLIB, 32, 32 + len(packed), len(data), digest)
    view = memoryview(header.pack() + packed)
    for bundle in iter_bundles(view, name="input"):
        _check_entries(bundle, view)


def _any_file(data: bytes) -> None:
    view = memoryview(data)
    targets = device_targets(view, name="input")
    for source in iter_code_sources(view, name="input"):
        for target in source.bundle.targets:
            require(target in targets, f"{target} is missing among the targets of the file")
        _check_code(source.view, source.bundle)


def _check_code(view: object, bundle: Bundle) -> None:
    for entry in bundle.plain.device_entries:
        if bundle.compressed is None and isinstance(view, memoryview):
            start = bundle.start + entry.offset
            with suppress(InputError):
                kernel_names(view[start : start + entry.size], place=_PLACE)


def _code_object(data: bytes) -> None:
    view = memoryview(data)
    code = read_code_object(view, place=_PLACE)
    names = kernel_names(view, place=_PLACE)
    number = count_kernels(view, code, place=_PLACE)
    require(number is None or len(names) <= number, f"{len(names)} names of {number} kernels")
    header = read_loaded_header(data[:64])
    same = (
        header is not None and header.version == code.version and (header.version < 4 or header.target == code.target)
    )
    require(same, f"runtimes take {header} from the header, not {code.target} of version {code.version}")


def _metadata(data: bytes) -> None:
    """Take an input as the MessagePack of a code object's note; msgspec's own decoder reads it, too."""
    view = memoryview(code_with_note(data))
    code = read_code_object(view, place=_PLACE)
    found = read_metadata(view, code, place=_PLACE)
    plain = msgspec.msgpack.decode(data)
    names = [kernel[".name"] for kernel in plain.get("amdhsa.kernels", ())]
    require([kernel.name for note in found for kernel in note.kernels] == names, "other kernels than msgspec finds")


def _kpack(data: bytes) -> None:
    view = memoryview(data)
    archive = read_archive(view, name="input")
    for entry in archive.entries:
        if entry.size <= _MOST_RAW:
            require(len(read_kernel(view, archive, entry)) == entry.size, "code of another size than declared")


def _toc(data: bytes) -> None:
    _kpack(by_hand(data))


def _marker(data: bytes) -> None:
    marker = read_marker(memoryview(data), place=_PLACE)
    with suppress(InputError, UnicodeEncodeError):
        section, starts = encode_markers([marker])
        require(read_marker(memoryview(section)[starts[0] :], place=_PLACE) == marker, "a marker changes when written")


def _libraries(data: bytes) -> None:
    view = memoryview(data)
    read_split_library(view, name="input")
    read_offload_images(view, name="input")
    require_trimmable(view, name="input")
    if is_object_file(view, name="input"):
        device_patch(view, name="input", storage=Storage(compress=True, limit=_MOST_RAW), trim=True)


def _target_id(data: bytes) -> None:
    text = data.decode(errors="replace")
    target = parse_target_id(text)
    require(parse_target_id(str(target)) == target, f"{target} reads otherwise than it is written")
    with suppress(InputError):
        parse_known_target(text)


def _entry_id(data: bytes) -> None:
    entry = BundleEntryId.parse(data.decode(errors="replace"))
    require(BundleEntryId.parse(str(entry)) == entry, f"{entry} reads otherwise than it is written")


def _target_set(data: bytes) -> None:
    parse_target_set(data.decode(errors="replace"))


def _bundle_seeds() -> list[bytes]:
    return [*fixtures("edge/*", "v18/*.hipfb", "v22/*.ccob.hipfb"), bundle_of("gfx906", "gfx90a:xnack+")[:9000]]


def _plain_seeds() -> list[bytes]:
    return [data for data in _bundle_seeds() if data.startswith(b"__CLANG")]


def file_seeds() -> list[bytes]:
    """Return files of every kind that has device code."""
    return [*_bundle_seeds(), *_library_seeds(), *_code_seeds(), *_object_seeds()]


def _library_seeds() -> list[bytes]:
    return [*fixtures("v18/libtwo.ccob.so", "v18/libtwo.rdcccob.so", "v22/libtwo.rdcccob.so"), *_object_seeds()]


def _object_seeds() -> list[bytes]:
    """Return object files of both offload drivers, with images that aren't linked, and one that is."""
    return fixtures("v19/*.o", "v23/*.o")


@cache
def _code_seeds() -> list[bytes]:
    """Return the code objects of small bundles."""
    found = fixtures("elf/gfx906.co")
    for data in fixtures("v16/*.hipfb", "v23/saxpy*.hipfb", "edge/two.plain.fatbin", largest=60 << 10):
        view = memoryview(data)
        for bundle in iter_bundles(view, name="seed"):
            slots = [
                (bundle.start + one.offset, one.size) for one in bundle.plain.device_entries if not bundle.compressed
            ]
            found += [bytes(view[start : start + size]) for start, size in slots]
    return sorted({code for code in found if is_code_object(memoryview(code))}, key=len)[:12]


def kpack_seeds() -> list[bytes]:
    """Return archives of kernels."""
    kernels = {("lib/liba.so", 0, "gfx906|gfx906:xnack-"): b"\x7fELF" * 9, ("lib/liba.so", 1, "gfx1100"): bytes(99)}
    return [make_kpack(kernels), make_kpack(kernels, scheme=Scheme.NONE), by_hand(toc())]


def _toc_seeds() -> list[bytes]:
    return [msgspec.msgpack.encode(toc()), b"\x91" * 3000, b"\x81\xa1a" * 3000]


def _marker_seeds() -> list[bytes]:
    markers = [Marker("lib/a.so", ("../.kpack",)), Marker("b", ("x", "y"), ("gfx906",), (7,))]
    return [encode_markers([marker])[0] for marker in markers]


_MAPS = (
    b"\x81",
    b"\x91",
    b"\xdf\xff\xff\xff\xff",
    b"\xdd\xff\xff\xff\xff",
    b"\xc6\x7f\xff\xff\xff",
    b"toc",
    b"ordinal",
)
_TARGETS = [b"gfx90a:sramecc+:xnack-", b"gfx1100", b"gfx9-4-generic", b"gfx90a:xnack+"]

HARNESSES = (
    Harness(
        "device_code.bundles", _bundles, _bundle_seeds, tokens=(b"CCOB", b"__CLANG_OFFLOAD_BUNDLE__", *_TARGET_TOKENS)
    ),
    Harness("device_code.packed_bundle", _packed_bundle, _plain_seeds, tokens=_TARGET_TOKENS),
    Harness("device_code.any_file", _any_file, file_seeds, tokens=(b"!<arch>\n", b"\x10\xff\x10\xad")),
    Harness("device_code.code_object", _code_object, _code_seeds),
    Harness("device_code.metadata", _metadata, note_seeds, tokens=_MAPS),
    Harness("device_code.kpack", _kpack, kpack_seeds, tokens=_MAPS),
    Harness("device_code.kpack_table", _toc, _toc_seeds, tokens=_MAPS),
    Harness("device_code.marker", _marker, _marker_seeds, tokens=_MAPS),
    Harness("device_code.libraries", _libraries, _library_seeds),
    Harness("device_code.target_id", _target_id, lambda: _TARGETS, tokens=_TARGET_TOKENS, largest=200),
    Harness(
        "device_code.entry_id",
        _entry_id,
        lambda: [b"hipv4-amdgcn-amd-amdhsa--" + one for one in _TARGETS] + [b"host-x86_64-unknown-linux--"],
        tokens=_TARGET_TOKENS,
        largest=200,
    ),
    Harness(
        "device_code.target_set",
        _target_set,
        lambda: [b"gfx90a,gfx1100", b"family:gfx94X-dcgpu", b"gfx110*"],
        tokens=_TARGET_TOKENS,
        largest=200,
    ),
)
"""See `trials.fuzz.harness.Harness`."""
