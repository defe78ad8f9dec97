"""DLLs and programs of Windows, beside pefile."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pefile

from fuzz.harness import Harness, require
from fuzz.seeds import fixtures
from rocwheel.binary.pe.facts import PeError, read_pe

_LAUNCHERS = Path(sysconfig.get_path("purelib"), "installer", "_scripts")
"""Programs that Visual C++ linked, of a package that tests need anyway."""


def _facts(data: bytes) -> None:
    found = read_pe(data, name="input")
    try:
        other = pefile.PE(data=data, fast_load=True)
    except pefile.PEFormatError:
        return
    theirs = (other.FILE_HEADER.Machine, other.FILE_HEADER.NumberOfSections)
    require((found.header.machine, len(found.sections)) == theirs, f"pefile has machine and sections {theirs}")


def _seeds() -> list[bytes]:
    return [*fixtures("pe/*"), *((_LAUNCHERS / name).read_bytes() for name in ("t64.exe", "w64.exe"))]


HARNESSES = (Harness("pe.facts", _facts, _seeds, (PeError,), largest=1 << 17),)
"""See `fuzz.harness.Harness`."""
