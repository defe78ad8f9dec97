"""DLLs and programs of Windows, beside pefile."""

from __future__ import annotations

import sysconfig
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pefile

from fuzz.harness import Harness, require
from fuzz.seeds import fixtures
from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.bundles.fat_binary import FatBinary, read_fat_binary
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.kind import is_coff_object
from rocwheel.binary.kpack.marker import Marker
from rocwheel.binary.kpack.split_library import read_split_library
from rocwheel.binary.pe.bytes import PeBytes
from rocwheel.binary.pe.facts import PeError, read_pe
from rocwheel.binary.pe.layout import find_layout_faults, find_loader_faults
from rocwheel.binary.pe.sections import open_image
from rocwheel.device.editing.patch import device_patch
from rocwheel.device.splitting.host.fat_file import plan_fat_file
from rocwheel.device.splitting.host.host_file import UnitLink, has_code_to_split, plan_host_file
from rocwheel.device.trimming.library import require_trimmable
from tests.support.bundles import bundle_of

if TYPE_CHECKING:
    from rocwheel.foundation.patch import FilePatch

_LAUNCHERS = Path(sysconfig.get_path("purelib"), "installer", "_scripts")
"""Programs that Visual C++ linked, of a package that tests need anyway."""


_MARKERS = tuple(Marker("bin/a.dll", (f"../.kpack/a{number}_@GFXARCH@.kpack",)) for number in range(2))
_TOKENS = (b".hip_fat", b".hipFatB", b".kpackrf", b"FPIH", b"HIPK", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")
_BUNDLE = bundle_of("gfx906")
_LARGEST = 1 << 16
_MOST_MORE = 1 << 17
"""Bytes that a change may add: two bundles, markers, and what fills up the last part of each."""


def _facts(data: bytes) -> None:
    found = read_pe(data, name="input")
    find_layout_faults(data, found, name="input")
    try:
        other = pefile.PE(data=data, fast_load=True)
    except pefile.PEFormatError:
        return
    theirs = (other.FILE_HEADER.Machine, other.FILE_HEADER.NumberOfSections)
    require((found.header.machine, len(found.sections)) == theirs, f"pefile has machine and sections {theirs}")


def _seeds() -> list[bytes]:
    return [*fixtures("pe/*"), *((_LAUNCHERS / name).read_bytes() for name in ("t64.exe", "w64.exe"))]


def _fat_of(data: bytes) -> FatBinary | None:
    return read_fat_binary(memoryview(data), name="input")


def _applied(data: bytes, patch: FilePatch) -> bytes:
    view = memoryview(data)
    made = b"".join(map(bytes, patch.apply(view)))
    require(len(made) == patch.size <= len(data) + _MOST_MORE, f"{len(made)} bytes of {len(data)}, said {patch.size}")
    return made


def _require_no_worse(data: bytes, made: bytes) -> None:
    """Hold a changed file against what the loader refuses; a file that it refuses is not to be changed at all."""
    for name, content in (("input", data), ("output", made)):
        faults = find_loader_faults(open_image(PeBytes(memoryview(content), name)))
        require(not faults, f"the loader refuses the {name}: {faults[:1]}")


def _split(data: bytes) -> None:
    fat = _fat_of(data)
    if fat is None or not has_code_to_split(memoryview(data), name="input"):
        return
    links = [UnitLink(number % 3, number % 2) for number in range(len(fat.wrappers))]
    host = _applied(data, plan_host_file(memoryview(data), _MARKERS, links, name="input"))
    _require_no_worse(data, host)
    library = read_split_library(memoryview(host), name="output")
    found = [(unit.index, unit.marker) for unit in library.units] if library else []
    require(found == [(link.index, _MARKERS[link.marker]) for link in links], f"wrappers of {found}")


def _join(data: bytes) -> None:
    fat = _fat_of(data)
    if fat is None:
        return
    bundles = [memoryview(_BUNDLE)] * 2
    units = [number % 2 for number in range(len(fat.wrappers))]
    made = _applied(data, plan_fat_file(memoryview(data), bundles, units, name="input"))
    _require_no_worse(data, made)
    joined = _fat_of(made)
    require(joined is not None and len(list(joined.iter_bundles(memoryview(made)))) == 2, "not the bundles put in")


def _trim(data: bytes) -> None:
    require_trimmable(memoryview(data), name="input")
    patch = device_patch(memoryview(data), name="input", storage=Storage(compress=True, limit=1 << 20), trim=True)
    if patch is not None:
        made = _applied(data, patch)
        fat, old = _fat_of(made), _fat_of(data)
        require(fat is not None and old is not None, "no device code is left")
        assert fat is not None
        assert old is not None
        numbers = [len(list(one.iter_bundles(memoryview(content)))) for one, content in ((old, data), (fat, made))]
        require(numbers[0] == numbers[1], f"{numbers} bundles before and after")


def _objects(data: bytes) -> None:
    view = memoryview(data)
    if not is_coff_object(view):
        return
    targets = device_targets(view, name="input")
    fat = _fat_of(data)
    bundles = list(fat.iter_bundles(view, strict=False)) if fat else []
    require(all(target in targets for bundle in bundles for target in bundle.targets), "a target is missing")


def _fat_seeds() -> list[bytes]:
    fat = fixtures("pe/two*.dll", largest=_LARGEST)
    return [*fat, *map(_host, fat)]


def _host(data: bytes) -> bytes:
    links = [UnitLink(0, 0), UnitLink(1, 1)]
    return _applied(data, plan_host_file(memoryview(data), _MARKERS, links, name="seed"))


HARNESSES = (
    Harness("pe.facts", _facts, _seeds, (PeError,), largest=1 << 17),
    Harness("pe.join", _join, _fat_seeds, tokens=_TOKENS, largest=_LARGEST),
    Harness("pe.objects", _objects, partial(fixtures, "pe/*.obj", largest=_LARGEST), largest=_LARGEST),
    Harness("pe.split", _split, _fat_seeds, tokens=_TOKENS, largest=_LARGEST),
    Harness("pe.trim", _trim, _fat_seeds, tokens=_TOKENS, largest=_LARGEST),
)
"""See `fuzz.harness.Harness`."""
