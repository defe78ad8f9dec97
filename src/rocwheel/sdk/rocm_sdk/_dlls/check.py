"""Loads a DLL in a process of its own, where it can neither hang nor break this one: for the self tests."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

from .imports import DamagedDllError, read_imports

__all__ = ["check_dll", "is_native_dll", "load_alone"]

LOADED = "loaded"
"""What the process prints once a DLL is loaded: a DLL may also end its process, with any exit code."""

PROGRAM = """\
import sys
sys.path[:] = [{site!r}, *filter(None, sys.path)]
from {module} import load_alone
load_alone(sys.argv[1])
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
    site = Path(__file__).parents[2]
    command = [sys.executable, "-c", PROGRAM.format(site=str(site), module=__name__), str(path)]
    try:
        done = subprocess.run(  # in the packages' folder: ``-c`` has Python look for modules where it is started
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=time_limit, check=False, cwd=site
        )
    except subprocess.TimeoutExpired:
        return f"{path} was not loaded within {time_limit:g} seconds"
    if LOADED in done.stdout.split():
        return ""
    ended = f"the process ended with exit code {done.returncode & 0xFFFFFFFF:#x} while it was loaded"
    return done.stderr.strip() or ended


def load_alone(path: str) -> None:
    """Load a DLL and say so; end with the reason when it can't be loaded."""
    base = __name__.partition("._dlls")[0]
    platform = import_module(f"{base}._platform").this_platform()
    load = import_module(f"{base}._dlls.load")
    platform.calls.silence_faults()
    load.add_folders(platform)
    try:
        load.load_dll(Path(path), platform)
    except OSError as e:
        sys.stderr.buffer.write(str(e).encode())
        sys.exit(1)
    sys.stdout.write(f"{LOADED}\n")
