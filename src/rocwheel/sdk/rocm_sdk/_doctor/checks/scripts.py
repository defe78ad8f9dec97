"""Checks that commands of the packages can start: they are there, and so is the interpreter of their first line.

Installers write the path of Python there, so that a folder that was moved or copied has commands that can't start.
Windows' programs have it inside, and it is not looked at.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import sysconfig
from pathlib import Path

from ..._distributions import find_distribution
from ..._gpus.access import ERROR, WARNING, Diagnosis
from ..._installing import reinstallation_hint
from ..._printing import listed
from ..._regular_file import open_regular
from .files import difference
from .installed import installed_packages
from .record import RECORD_ERRORS, read_outside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .record import Row

__all__ = ["check_scripts"]

HEAD = 4096
"""Bytes of a script that are read; the kernel itself takes 256 of its first line."""

FIRST_LINE = re.compile(rb"#![ \t]*(/\S*)\s")

LONG_LINE = re.compile(rb"#!/bin/sh\n('''exec' [^\n]*)\n")
"""What installers write for a path that is too long, or has blanks, for the kernel's ``#!``; the shell's words."""

REMEDY = "Make a new environment where this one is now, or move it back: what installers write there can't be moved"


def check_scripts(*, deep: bool = False) -> list[Diagnosis]:
    """Return an error for the commands of each package that can't start, and a warning for others than RECORD has.

    Libraries work without commands, and images are made that have site-packages alone. ``deep`` compares hashes too.
    """
    return [found for dist, extra, _ in installed_packages() for found in _check_package(dist, extra, deep)]


def _check_package(dist: str, extra: str, deep: bool) -> list[Diagnosis]:
    try:
        rows = read_outside(dist)
    except RECORD_ERRORS:  # of which `check_files` tells
        return []
    moved = [
        Diagnosis(ERROR, f"commands of {dist} can't start, as {absent} is not there: {listed(names)}", REMEDY)
        for absent, names in _lost([path for _, path, _, _ in rows]).items()
    ]
    return [*moved, *(_check_damage(dist, extra, rows, deep) if _is_own(dist) else ())]


def _lost(paths: list[Path]) -> dict[str, list[str]]:
    """Return the commands that can't start, by the path of the interpreter that each names."""
    lost: dict[str, list[str]] = {}
    for path in paths:
        named = _interpreter(path)
        if named and _is_absent(named):
            lost.setdefault(named, []).append(path.name)
    return lost


def _is_own(dist: str) -> bool:
    """Return whether a distribution is where this Python's installers have scripts beside; not so ``--target``."""
    folder = os.path.realpath(str(find_distribution(dist).locate_file("")))
    schemes = sysconfig.get_scheme_names()
    own = (sysconfig.get_path(key, scheme) for scheme in schemes for key in ("purelib", "platlib"))
    return folder in map(os.path.realpath, own)


def _check_damage(dist: str, extra: str, rows: list[Row], deep: bool) -> list[Diagnosis]:
    gone = [path.name for _, path, _, _ in rows if _is_absent(str(path))]
    faults = {path: _fault(path) for _, path, _, _ in rows}
    # Whoever moves an environment may mend the first lines of its commands.
    others = {path.name: _change(path, digest, size, deep) for _, path, digest, size in rows if not faults[path]}
    broken = [f"{path.name} ({fault})" for path, fault in faults.items() if fault]
    changed = [f"{name} ({fault})" for name, fault in others.items() if fault]
    texts = [(ERROR, f"commands of {dist} can't start: {listed(broken)}", broken)]
    texts.append((WARNING, f"{dist} lacks the commands {listed(gone)}", gone))
    texts.append((WARNING, f"commands of {dist} are not as installed: {listed(changed)}", changed))
    return [Diagnosis(level, text, reinstallation_hint(extra)) for level, text, names in texts if names]


def _fault(path: Path) -> str:
    """Return what keeps a command that is there from starting; empty for what this user may not look at, too."""
    try:
        facts = path.stat()
    except (OSError, ValueError):
        return ""
    if not stat.S_ISREG(facts.st_mode):
        return "not a file"
    if not facts.st_size:
        return "empty"
    return "" if os.access(path, os.X_OK) else "not executable"


def _change(path: Path, digest: str, size: str, deep: bool) -> str:
    """Return how a command differs from what RECORD says; empty for what is gone or may not be looked at, too."""
    try:
        return difference(path, digest, size, deep)
    except (OSError, ValueError):
        return ""


def _interpreter(path: Path) -> str:
    """Return the interpreter that a script names in its first line; empty for none, and for what can't be read."""
    try:
        with open_regular(path) as file:
            head = file.read(HEAD)
        if long := LONG_LINE.match(head):
            words = shlex.split(os.fsdecode(long[1]))
            return words[1] if words[1:] and words[1].startswith("/") else ""
    except (OSError, ValueError):
        return ""
    found = FIRST_LINE.match(head)
    return os.fsdecode(found[1]) if found else ""


def _is_absent(path: str) -> bool:
    """Return whether nothing has that path; where nobody may look, something may have it."""
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False
