"""Checks that the interpreter which commands of the packages name in their first line is there, mostly Python.

Installers write its path there, so that a folder that was moved or copied has commands that can't start. Windows'
programs have it inside, and are not looked at.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from ..._gpus.access import ERROR, Diagnosis
from ..._printing import listed
from ..._regular_file import open_regular
from .installed import installed_packages
from .record import RECORD_ERRORS, read_outside

__all__ = ["check_scripts"]

HEAD = 4096
"""Bytes of a script that are read; the kernel itself takes 256 of its first line."""

FIRST_LINE = re.compile(rb"#![ \t]*(/\S*)\s")

LONG_LINE = re.compile(rb"#!/bin/sh\n('''exec' [^\n]*)\n")
"""What installers write for a path that is too long, or has blanks, for the kernel's ``#!``; the shell's words."""

REMEDY = "Make a new environment where this one is now, or move it back: what installers write there can't be moved"


def check_scripts() -> list[Diagnosis]:
    """Return an error for the commands of each package whose interpreter is not there."""
    return [
        Diagnosis(ERROR, f"commands of {dist} can't start, as {absent} is not there: {listed(names)}", REMEDY)
        for dist, _, _ in installed_packages()
        for absent, names in _lost(dist).items()
    ]


def _lost(dist: str) -> dict[str, list[str]]:
    """Return the commands of a distribution that can't start, by the path of the interpreter that each names."""
    lost: dict[str, list[str]] = {}
    try:
        paths = read_outside(dist)
    except RECORD_ERRORS:  # of which `check_files` tells
        return lost
    for path in paths:
        named = _interpreter(path)
        if named and _is_absent(named):
            lost.setdefault(named, []).append(path.name)
    return lost


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
