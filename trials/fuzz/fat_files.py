"""Files whose device code is split off, joined and trimmed: what has to hold of what comes out, in any format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.binary.kind import is_elf
from rocwheel.binary.kpack.markers import Marker, read_split_library
from rocwheel.device.edit_bundles import device_patch
from rocwheel.device.split.host_file import UnitLink, has_code_to_split, plan_host_file
from rocwheel.device.split.joined_file import plan_fat_file
from rocwheel.device.trim import require_trimmable
from tests.support.bundles import bundle_of
from trials.fuzz.harness import require

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocwheel.binary.bundles.wrappers import FatBinary
    from rocwheel.core.patch import FilePatch

    Judge = Callable[[bytes, bytes], None]
    """Raises `WrongAnswerError` for a file, and what was made of it, that no loader takes."""

__all__ = ["TOKENS", "check_join", "check_split", "check_trim", "fat_binary_of", "host_of"]

TOKENS = (b".hip_fat", b".hipFatB", b".kpackrf", b"FPIH", b"HIPK", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")
"""Words of files with device code."""
_MARKERS = tuple(Marker("bin/a.dll", (f"../.kpack/a{number}_@GFXARCH@.kpack",)) for number in range(2))
_BUNDLE = bundle_of("gfx906")
_MOST_MORE = 1 << 17
"""Bytes that a change may add to a DLL: two bundles, markers, and what fills up the last part of each."""
_MOST_BYTES = 64 << 20
"""Of what is looked at. ELF files get back the room that their segments say, zeros up to gigabytes, a hole on disks."""


def fat_binary_of(data: bytes) -> FatBinary | None:
    """Return what leads to the device code of a file."""
    return read_fat_binary(memoryview(data), name="input")


def host_of(data: bytes) -> bytes:
    """Return a good file with two bundles after its device code was split off."""
    links = [UnitLink(0, 0), UnitLink(1, 1)]
    return b"".join(map(bytes, plan_host_file(memoryview(data), _MARKERS, links, name="seed").apply(memoryview(data))))


def check_split(data: bytes, judge: Judge) -> None:
    """Split the device code off, and require that each wrapper leads to the marker that was asked for."""
    fat = fat_binary_of(data)
    if fat is None or not has_code_to_split(memoryview(data), name="input"):
        return
    links = [UnitLink(number % 3, number % 2) for number in range(len(fat.wrappers))]
    host = _applied(data, plan_host_file(memoryview(data), _MARKERS, links, name="input"))
    if host is None:
        return
    judge(data, host)
    library = read_split_library(memoryview(host), name="output")
    found = [(unit.index, unit.marker) for unit in library.units] if library else []
    require(found == [(link.index, _MARKERS[link.marker]) for link in links], f"wrappers of {found}")


def check_join(data: bytes, judge: Judge) -> None:
    """Put two bundles into a file, and require that they are found in it."""
    fat = fat_binary_of(data)
    if fat is None:
        return
    bundles = [memoryview(_BUNDLE)] * 2
    units = [number % 2 for number in range(len(fat.wrappers))]
    made = _applied(data, plan_fat_file(memoryview(data), bundles, units, name="input"))
    if made is None:
        return
    judge(data, made)
    joined = fat_binary_of(made)
    require(joined is not None and len(list(joined.iter_bundles(memoryview(made)))) == 2, "not the bundles put in")


def check_trim(data: bytes) -> None:
    """Compress a file's bundles and give back their room, and require that as many are found in it."""
    require_trimmable(memoryview(data), name="input")
    patch = device_patch(memoryview(data), name="input", storage=Storage(compress=True, limit=1 << 20), trim=True)
    made = _applied(data, patch) if patch else None
    if made is not None:
        numbers = [_count_bundles(content) for content in (data, made)]
        require(0 < numbers[0] == numbers[1], f"{numbers} bundles before and after")


def _count_bundles(data: bytes) -> int:
    fat = fat_binary_of(data)
    return len(list(fat.iter_bundles(memoryview(data)))) if fat else 0


def _applied(data: bytes, patch: FilePatch) -> bytes | None:
    """Return what a patch makes of a file; none where that is too large to be looked at, which no DLL may become."""
    require(is_elf(data) or patch.size <= len(data) + _MOST_MORE, f"{patch.size} bytes of {len(data)}")
    if patch.size > _MOST_BYTES:
        return None
    made = b"".join(map(bytes, patch.apply(memoryview(data))))
    require(len(made) == patch.size, f"{len(made)} bytes, said {patch.size}")
    return made
