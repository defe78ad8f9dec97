"""Loads DLLs of the packages on Windows, and says which is missing when one can't be loaded.

Windows takes a DLL that a process has for every later one of that file name. So the order decides: what is loaded first
by its path is not looked for in System32, where the graphics driver may have another of the name.
"""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

from . import _ALL_CDLLS, _build_info
from ._dll_imports import DamagedDllError, read_imports
from ._installing import installation_hint, reinstallation_hint
from ._libraries import locate_libraries
from ._packages import find_root
from ._platform import this_platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from ._platform import Windows, WindowsCalls

_FOLDERS: dict[str, object] = {}
"""Handles of the folders that DLLs are looked for in, by their paths."""


def preload_dlls(shortnames: Iterable[str], platform: Windows) -> None:
    """Load public libraries and before them those that they need; each is loaded once.

    Raises what `locate_libraries` raises, and `DllError`.
    """
    add_folders(platform)
    for name, path in locate_libraries(load_order(shortnames)):
        if name not in _ALL_CDLLS:
            _ALL_CDLLS[name] = load_dll(path, platform)


def load_order(shortnames: Iterable[str]) -> list[str]:
    """Return the short names of some libraries and of all that they need, each after what it needs itself."""
    rows = _build_info.LIBRARIES
    order = (needed for name in shortnames for needed in (*(rows[name].get("needs", []) if name in rows else []), name))
    return list(dict.fromkeys(order))


def add_folders(platform: Windows) -> None:
    """Have what is loaded from now on find the DLLs of the packages that are installed; each folder is added once."""
    for path in search_folders():
        if path not in _FOLDERS:
            _FOLDERS[path] = platform.calls.add_dll_directory(path)


def search_folders() -> list[str]:
    """Return the folders of DLLs of the packages that are installed; those of device packages are in the libraries'."""
    places = dict.fromkeys((info["package"], info["directory"]) for info in _build_info.LIBRARIES.values())
    roots = {package: find_root(package) for package, _ in places}
    paths = [root / folder for package, folder in places if (root := roots[package])]
    return [str(path) for path in paths if path.is_dir()]


class DllError(OSError):
    """A DLL can't be loaded; the text says which, what is missing, and what to do."""


def load_dll(path: Path, platform: Windows) -> ctypes.CDLL:
    """Load a DLL by its path. Raises `DllError`."""
    there = platform.calls.loaded_path(path.name)
    if there and not _is_same(path, Path(there)):
        msg = (
            f"{path.name} was loaded from {there} before rocm_sdk could load {path}, "
            "and DLLs that need it get the former. Call rocm_sdk.initialize_process or preload_libraries first."
        )
        warnings.warn(msg, RuntimeWarning, stacklevel=4)
    try:
        return platform.calls.load(str(path))
    except OSError as e:
        raise DllError(explain_failure(path, e, list(_FOLDERS), platform.calls)) from e


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


LONGEST_PATH = 259
"""Characters of a path that the loader of Windows takes."""

VIRTUAL = ("api-ms-win-", "ext-ms-")
"""What the names of API sets begin with, which are no files ("Windows API sets")."""

RUNTIME = re.compile(r"(msvcp|vcruntime|concrt|vccorlib|vcomp)\d+.*\.dll", re.IGNORECASE)
"""DLLs of the Microsoft Visual C++ Redistributable."""


class MissingDll(NamedTuple):
    """A DLL that is nowhere, or that can't be read."""

    name: str
    needed_by: str
    """File name of the DLL that needs it; empty for the one that was to be loaded."""

    fault: str = ""
    """What is wrong with it, where it is there."""


def explain_failure(path: Path, error: OSError, folders: Sequence[str], calls: WindowsCalls) -> str:
    """Return why a DLL can't be loaded: which DLL is missing, who needs it, where it was looked for, what to do."""
    start = f"{path} can't be loaded"
    if len(str(path)) > LONGEST_PATH:
        found = f"its path has {len(str(path))} characters, and Windows loads DLLs from paths of {LONGEST_PATH}"
        return f"{start}: {found}. Install into an environment in a folder with a shorter path."
    searched, missing = missing_of(path, folders, calls)
    if not missing:
        hint = "A DLL that it needs may be one of another version" if getattr(error, "winerror", 0) == 127 else ""
        return f"{start}: {error}{f'. {hint}.' if hint else ''}"
    faults = "; ".join(describe_missing(one, searched) for one in missing)
    return f"{start}: {faults}. {_remedies_of(missing)}"


def missing_of(path: Path, folders: Sequence[str], calls: WindowsCalls) -> tuple[list[str], list[MissingDll]]:
    """Return where Windows looks for what a DLL needs, given the folders that were added, and what it doesn't find."""
    system = calls.system_folder()
    others = dict.fromkeys((str(path.parent), calls.program_folder(), *folders))
    searched = [*(folder for folder in others if folder != system), system]  # in Windows' order
    return searched, list(_find_missing(path, searched, calls))


def _find_missing(path: Path, searched: Sequence[str], calls: WindowsCalls) -> Iterator[MissingDll]:
    """Yield every DLL that a DLL needs, also by way of others, and that is in none of the folders ``searched``.

    What the process has already isn't looked for, and what DLLs of the last folder, the system's, need is its affair.
    """
    waiting, seen = [(path, "")], {path.name.lower()}
    while waiting:
        file, needed_by = waiting.pop(0)
        try:
            names = read_imports(file)
        except (DamagedDllError, OSError) as e:
            yield MissingDll(file.name, needed_by, f"can't be read: {e}")
            continue
        for name in names:
            if name.lower() in seen or name.lower().startswith(VIRTUAL) or calls.loaded_path(name):
                continue
            seen.add(name.lower())
            paths = (Path(folder, name) for folder in searched)
            found = next((path for path in paths if path.is_file()), None)
            if found is None:
                yield MissingDll(name, file.name)
            elif str(found.parent) != searched[-1]:
                waiting.append((found, file.name))


def describe_missing(missing: MissingDll, searched: Sequence[str]) -> str:
    """Return which DLL is missing, who needs it, and where it was looked for."""
    if missing.fault:
        return f"{missing.name} {missing.fault}"
    return f"{missing.name}, which {missing.needed_by} needs, is in none of {', '.join(searched)}"


def _remedies_of(missing: Sequence[MissingDll]) -> str:
    """Return what to do about missing DLLs: one command for all that packages have, which is the end of a message."""
    packaged = [one for one in missing if _package_of(one.name)]
    sentences = dict.fromkeys(f"{remedy_of(one)}." for one in missing if one not in packaged)
    return " ".join([*sentences, *([_command_for(packaged)] if packaged else [])])


def remedy_of(missing: MissingDll) -> str:
    """Return what to do about a missing DLL."""
    if _package_of(missing.name):
        return _command_for([missing])
    if RUNTIME.fullmatch(missing.name):
        return "Install the Microsoft Visual C++ Redistributable for x64"
    return f"{missing.name} is in no package of ROCm: install what brings it, or repair Windows"


def _command_for(missing: Sequence[MissingDll]) -> str:
    packages = [package for package in (_package_of(one.name) for one in missing) if package]
    if any(one.fault for one in missing):
        return f"Reinstall: {reinstallation_hint(*packages)}"
    return f"Install {'it' if len(missing) == 1 else 'them'} with: {installation_hint(*packages)}"


def _package_of(name: str) -> str | None:
    rows = (info["package"] for info in _build_info.LIBRARIES.values() if info["pattern"].lower() == name.lower())
    return next(rows, None)


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
    import subprocess  # noqa: PLC0415 (slow to import, and for self tests alone)

    site = Path(__file__).parents[1]
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
    platform: Any = this_platform()
    platform.calls.silence_faults()
    add_folders(platform)
    try:
        load_dll(Path(path), platform)
    except OSError as e:
        sys.stderr.buffer.write(str(e).encode())
        sys.exit(1)
    sys.stdout.write(f"{LOADED}\n")
