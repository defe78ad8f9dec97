"""Loads a DLL in a process of its own, where it can neither hang nor break this one: for the self tests."""

from __future__ import annotations

import subprocess
import sys

from .imports import DamagedDllError, read_imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["check_dll", "is_native_dll"]

LOADED = "loaded"
"""What the process prints once a DLL is loaded: a DLL may also end its process, with any exit code."""

PROGRAM = """\
import sys
from pathlib import Path
sys.path.insert(0, {site!r})
from {package}.load import add_folders, load_dll
from {base}._platform import this_platform
platform = this_platform()
platform.calls.silence_faults()
add_folders(platform)
try:
    load_dll(Path(sys.argv[1]), platform)
except OSError as e:
    sys.exit(str(e))
print({loaded!r}, flush=True)
"""


def is_native_dll(path: Path) -> bool:
    """Return whether a file is a DLL that this machine can load, and not data of that name."""
    try:
        read_imports(path)
    except (DamagedDllError, OSError):
        return False
    return True


def check_dll(path: Path, time_limit: float) -> str:
    """Load a DLL; return what went wrong, empty when it was loaded."""
    command = [sys.executable, "-c", _program(), str(path)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=time_limit, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return f"{path} was not loaded within {time_limit:g} seconds"
    if LOADED in done.stdout.split():
        return ""
    return (
        done.stderr.strip() or f"the process ended with exit code {done.returncode & 0xFFFFFFFF:#x} while it was loaded"
    )


def _program() -> str:
    from .._trusted import SITE  # noqa: PLC0415 (where the packages are matters for this process alone)

    base = __name__.partition("._dlls")[0]
    return PROGRAM.format(site=str(SITE), package=__package__, base=base, loaded=LOADED)
