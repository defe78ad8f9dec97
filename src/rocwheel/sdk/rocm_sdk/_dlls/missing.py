"""Finds out which DLL is missing when another can't be loaded, which Windows only numbers: error 126."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from .. import _build_info
from .._installing import installation_hint, reinstallation_hint
from .imports import DamagedDllError, read_imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .._platform.calls import WindowsCalls

__all__ = ["LONGEST_PATH", "MissingDll", "describe_missing", "explain_failure", "missing_of", "remedy_of"]

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
    searched = _searched(path, folders, calls)
    return searched, list(_find_missing(path, searched, calls))


def _find_missing(path: Path, searched: Sequence[str], calls: WindowsCalls) -> Iterator[MissingDll]:
    """Yield every DLL that a DLL needs, also by way of others, and that is in none of the folders ``searched``.

    What the process has already isn't looked for, and what the system's DLLs need is the system's affair.
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
            found = _find(name, searched)
            if found is None:
                yield MissingDll(name, file.name)
            elif str(found.parent) != searched[-1]:
                waiting.append((found, file.name))


def _searched(path: Path, folders: Sequence[str], calls: WindowsCalls) -> list[str]:
    """Return where Windows looks for what a DLL needs, in its order; the system's folder last."""
    others = (str(path.parent), calls.program_folder(), *folders)
    system = calls.system_folder()
    return [*(folder for folder in dict.fromkeys(others) if folder != system), system]


def _find(name: str, folders: Sequence[str]) -> Path | None:
    paths = (Path(folder, name) for folder in folders)
    return next((path for path in paths if path.is_file()), None)


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
