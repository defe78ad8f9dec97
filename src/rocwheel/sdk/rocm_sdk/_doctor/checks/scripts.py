"""Checks that the Python which commands of the packages name in their first line is there.

Installers write its path there, so that a folder that was moved or copied has commands that can't start. Windows'
programs have it inside, and are not looked at.
"""

from __future__ import annotations

import os
import re

from ..._gpus.access import ERROR, Diagnosis
from ..._regular_file import open_regular
from .files import listed
from .installed import installed_packages
from .record import RECORD_ERRORS, read_outside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["check_scripts"]

HEAD = 4096
"""Bytes of a script that are read; the kernel itself takes 256 of its first line."""

FIRST_LINE = re.compile(rb"#!(?P<python>/\S*python[^\s/]*)\s")

LONG_LINE = re.compile(rb"#!/bin/sh\n'''exec' (?P<quote>[\"']?)(?P<python>/.*?python[^\n/\"' ]*)(?P=quote) ")
"""What installers write for a path that is too long, or has blanks, for the kernel's ``#!``."""


REMEDY = "Make a new environment where this one is now, or move it back: what installers write there can't be moved"


def check_scripts() -> list[Diagnosis]:
    """Return an error for the commands of each package whose Python is not there."""
    return [
        Diagnosis(ERROR, f"commands of {dist} can't start, as {python} is not there: {listed(names)}", REMEDY)
        for dist, _, _ in installed_packages()
        for python, names in _lost(dist).items()
    ]


def _lost(dist: str) -> dict[str, list[str]]:
    """Return the commands of a distribution that can't start, by the path of the Python that each names."""
    lost: dict[str, list[str]] = {}
    try:
        paths = read_outside(dist)
    except RECORD_ERRORS:  # of which `check_files` tells
        return lost
    for path in paths:
        python = _named_python(path)
        if python and not os.path.exists(python):  # noqa: PTH110 (bytes or text, as Python names files)
            lost.setdefault(python, []).append(path.name)
    return lost


def _named_python(path: Path) -> str:
    """Return the Python that a script names in its first line; empty for none, and for what can't be read."""
    try:
        with open_regular(path) as file:
            head = file.read(HEAD)
    except OSError:
        return ""
    found = FIRST_LINE.match(head) or LONG_LINE.match(head)
    return os.fsdecode(found["python"]) if found else ""
