"""Loads the packages' DLLs on Windows, and reports missing DLLs.

Once a process has loaded a DLL, Windows uses it for every later request for that file name. So the order matters:
Windows doesn't search System32 for a DLL that is already loaded. The graphics driver may have installed another DLL
with the same name there.
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
"""Handles of the folders that were added to the DLL search path, keyed by path."""


def preload_dlls(shortnames: Iterable[str], platform: Windows) -> None:
    """Load each public library once, after the libraries that it needs.

    Raises the same errors as `locate_libraries`, and `DllError`.
    """
    add_folders(platform)
    for name, path in locate_libraries(load_order(shortnames)):
        if name not in _ALL_CDLLS:
            _ALL_CDLLS[name] = load_dll(path, platform)


def load_order(shortnames: Iterable[str]) -> list[str]:
    """Return the short names of libraries and their dependencies, with dependencies first."""
    rows = _build_info.LIBRARIES
    order = (needed for name in shortnames for needed in (*(rows[name].get("needs", []) if name in rows else []), name))
    return list(dict.fromkeys(order))


def add_folders(platform: Windows) -> None:
    """Add the DLL folders of the installed packages to the search path, each folder once."""
    for path in search_folders():
        if path not in _FOLDERS:
            _FOLDERS[path] = platform.calls.add_dll_directory(path)


def search_folders() -> list[str]:
    """Return the DLL folders of the installed packages. The DLLs of device packages are in the libraries' folder."""
    places = dict.fromkeys((info["package"], info["directory"]) for info in _build_info.LIBRARIES.values())
    roots = {package: find_root(package) for package, _ in places}
    paths = [root / folder for package, folder in places if (root := roots[package])]
    return [str(path) for path in paths if path.is_dir()]


class DllError(OSError):
    """A DLL can't be loaded. The message contains the DLL, the missing files, and a remedy."""


def load_dll(path: Path, platform: Windows) -> ctypes.CDLL:
    """Load a DLL by its path. Raises `DllError`."""
    there = platform.calls.loaded_path(path.name)
    if there and not _is_same(path, Path(there)):
        msg = (
            f"{path.name} was loaded from {there} before rocm_sdk could load {path}, and other DLLs use the copy that "
            "was loaded first. Call rocm_sdk.initialize_process or preload_libraries earlier."
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
"""The maximum length of a path that the Windows loader accepts."""

VIRTUAL = ("api-ms-win-", "ext-ms-")
"""Prefixes of the names of API sets, which aren't files ("Windows API sets")."""

RUNTIME = re.compile(r"(msvcp|vcruntime|concrt|vccorlib|vcomp)\d+.*\.dll", re.IGNORECASE)
"""DLLs of the Microsoft Visual C++ Redistributable."""


class MissingDll(NamedTuple):
    """A DLL that is missing or can't be read."""

    name: str
    needed_by: str
    """The file name of the DLL that imports the missing DLL. Empty for the DLL that the caller loads."""

    fault: str = ""
    """The reason why the DLL can't be read, or an empty string if it doesn't exist."""


def explain_failure(path: Path, error: OSError, folders: Sequence[str], calls: WindowsCalls) -> str:
    """Return a message that explains why a DLL can't be loaded.

    The message contains the missing DLL, the DLL that needs it, the searched folders, and the remedy.
    """
    start = f"{path} can't be loaded"
    if len(str(path)) > LONGEST_PATH:
        found = f"its path has {len(str(path))} characters, but Windows accepts at most {LONGEST_PATH} for a DLL"
        return f"{start}: {found}. Install into an environment in a folder with a shorter path."
    searched, missing = missing_of(path, folders, calls)
    if not missing:
        hint = "A DLL that this DLL needs might be a different version" if getattr(error, "winerror", 0) == 127 else ""
        return f"{start}: {error}{f'. {hint}.' if hint else ''}"
    faults = "; ".join(describe_missing(one, searched) for one in missing)
    return f"{start}: {faults}. {_remedies_of(missing)}"


def missing_of(path: Path, folders: Sequence[str], calls: WindowsCalls) -> tuple[list[str], list[MissingDll]]:
    """Return the folders that Windows searches for a DLL's imports, and the DLLs that are missing in these folders."""
    system = calls.system_folder()
    others = dict.fromkeys((str(path.parent), calls.program_folder(), *folders))
    searched = [*(folder for folder in others if folder != system), system]  # in the order in which Windows searches
    return searched, list(_find_missing(path, searched, calls))


def _find_missing(path: Path, searched: Sequence[str], calls: WindowsCalls) -> Iterator[MissingDll]:
    """Yield the direct and indirect imports of a DLL that aren't in the ``searched`` folders.

    DLLs that the process has already loaded are skipped. The same applies to imports of DLLs in the last folder, which
    belongs to the system.
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
    """Return text about a missing DLL, the DLL that needs it, and the searched folders."""
    if missing.fault:
        return f"{missing.name} {missing.fault}"
    return f"{missing.name}, which {missing.needed_by} needs, is not in any of these folders: {', '.join(searched)}"


def _remedies_of(missing: Sequence[MissingDll]) -> str:
    """Return the remedies for missing DLLs.

    The message ends with a single command for all missing DLLs that packages contain.
    """
    packaged = [one for one in missing if _package_of(one.name)]
    sentences = dict.fromkeys(f"{remedy_of(one)}." for one in missing if one not in packaged)
    return " ".join([*sentences, *([_command_for(packaged)] if packaged else [])])


def remedy_of(missing: MissingDll) -> str:
    """Return the remedy for a missing DLL."""
    if _package_of(missing.name):
        return _command_for([missing])
    if RUNTIME.fullmatch(missing.name):
        return "Install the Microsoft Visual C++ Redistributable for x64"
    return f"No ROCm package contains {missing.name}: install the software that provides it, or repair Windows"


def _command_for(missing: Sequence[MissingDll]) -> str:
    packages = [package for package in (_package_of(one.name) for one in missing) if package]
    if any(one.fault for one in missing):
        return f"Reinstall: {reinstallation_hint(*packages)}"
    return f"Install {'it' if len(missing) == 1 else 'them'} with: {installation_hint(*packages)}"


def _package_of(name: str) -> str | None:
    rows = (info["package"] for info in _build_info.LIBRARIES.values() if info["pattern"].lower() == name.lower())
    return next(rows, None)


LOADED = "loaded"
"""The text that the child process prints after it loads a DLL. A DLL may also end its process, with any exit code."""

PROGRAM = """\
import sys
sys.path[:] = [{site!r}, *filter(None, sys.path)]
from {module} import load_alone
load_alone(sys.argv[1])
"""


def is_native_dll(path: Path) -> bool:
    """Return whether a file is a DLL that this machine can load, rather than a data file with the name of a DLL."""
    try:
        read_imports(path)
    except (DamagedDllError, OSError):
        return False
    return True


def check_dll(path: Path, time_limit: float) -> str:
    """Load a DLL, and return the error, or an empty string on success."""
    import subprocess  # noqa: PLC0415 (slow to import, and needed only for self-tests)

    site = Path(__file__).parents[1]
    command = [sys.executable, "-c", PROGRAM.format(site=str(site), module=__name__), str(path)]
    try:
        done = subprocess.run(  # run in the packages' folder, because ``-c`` searches the working directory
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=time_limit, check=False, cwd=site
        )
    except subprocess.TimeoutExpired:
        return f"{path} did not load within {time_limit:g} seconds"
    if LOADED in done.stdout.split():
        return ""
    ended = f"the process exited with code {done.returncode & 0xFFFFFFFF:#x} during loading"
    return done.stderr.strip() or ended


def load_alone(path: str) -> None:
    """Load a DLL and print a confirmation, or exit with the reason for a failure."""
    platform: Any = this_platform()
    platform.calls.silence_faults()
    add_folders(platform)
    try:
        load_dll(Path(path), platform)
    except OSError as e:
        sys.stderr.buffer.write(str(e).encode())
        sys.exit(1)
    sys.stdout.write(f"{LOADED}\n")
