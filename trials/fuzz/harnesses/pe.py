"""DLLs and programs of Windows, beside pefile."""

from __future__ import annotations

import sysconfig
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.kind import is_coff_object
from rocwheel.binary.pe.facts import iter_debug_entries, read_pe
from rocwheel.binary.pe.header import PeBytes, PeError, open_image
from rocwheel.binary.pe.layout import find_layout_faults, find_loader_faults
from trials.fuzz.beside.dll import compare_with_pefile
from trials.fuzz.fat_files import TOKENS, check_join, check_split, check_trim, fat_binary_of, host_of
from trials.fuzz.harness import Harness, require
from trials.fuzz.seeds.files import fixtures

if TYPE_CHECKING:
    from rocwheel.binary.pe.facts import DebugEntry

_LAUNCHERS = Path(sysconfig.get_path("purelib"), "installer", "_scripts")
"""Programs that Visual C++ linked, of a package that tests need anyway."""


_LARGEST = 1 << 16


def _facts(data: bytes) -> None:
    found = read_pe(data, name="input")
    find_layout_faults(data, found, name="input")
    compare_with_pefile(data, found, _debug_entries(data))


def _debug_entries(data: bytes) -> list[DebugEntry] | None:
    """Return the entries of the debug directory, which `read_pe` leaves alone; none where it is damaged."""
    try:
        return list(iter_debug_entries(open_image(PeBytes(memoryview(data), "input"))))
    except PeError:
        return None


def _seeds() -> list[bytes]:
    return [*fixtures("pe/*"), *((_LAUNCHERS / name).read_bytes() for name in ("t64.exe", "w64.exe"))]


def _require_no_worse(data: bytes, made: bytes) -> None:
    """Hold a changed file against what the loader refuses; a file that it refuses is not to be changed at all."""
    for name, content in (("input", data), ("output", made)):
        faults = find_loader_faults(open_image(PeBytes(memoryview(content), name)))
        require(not faults, f"the loader refuses the {name}: {faults[:1]}")


def _split(data: bytes) -> None:
    check_split(data, _require_no_worse)


def _join(data: bytes) -> None:
    check_join(data, _require_no_worse)


def _trim(data: bytes) -> None:
    check_trim(data)


def _objects(data: bytes) -> None:
    view = memoryview(data)
    if not is_coff_object(view):
        return
    targets = device_targets(view, name="input")
    fat = fat_binary_of(data)
    bundles = list(fat.iter_bundles(view, strict=False)) if fat else []
    require(all(target in targets for bundle in bundles for target in bundle.targets), "a target is missing")


def _fat_seeds() -> list[bytes]:
    fat = fixtures("pe/two*.dll", largest=_LARGEST)
    return [*fat, *map(host_of, fat)]


HARNESSES = (
    Harness("pe.facts", _facts, _seeds, (PeError,), largest=1 << 17),
    Harness("pe.join", _join, _fat_seeds, tokens=TOKENS, largest=_LARGEST),
    Harness("pe.objects", _objects, partial(fixtures, "pe/*.obj", largest=_LARGEST), largest=_LARGEST),
    Harness("pe.split", _split, _fat_seeds, tokens=TOKENS, largest=_LARGEST),
    Harness("pe.trim", _trim, _fat_seeds, tokens=TOKENS, largest=_LARGEST),
)
"""See `trials.fuzz.harness.Harness`."""
