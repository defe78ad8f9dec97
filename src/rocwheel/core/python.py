"""This Python and this rocwheel: how a module is run, in which mode, and the hash of the source code."""

from __future__ import annotations

import codecs
import hashlib
import os
import sys
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


_PROGRAM = """\
import sys
if sys.path[0] == "":
    del sys.path[0]
import runpy
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
"""``python -P -m``, which Python has since 3.11: with ``-m`` alone, the working directory comes first."""


def module_command(python: str | Path, module: str) -> list[str]:
    """Return the words that run ``module`` as ``python -m`` does, but never one of the working directory."""
    return [str(python), "-c", _PROGRAM, module]


def as_typed(command: Sequence[str]) -> str:
    """Return a command for a message: one of `module_command` as the ``python -m`` that people know."""
    python, *words = command
    if words[:2] == ["-c", _PROGRAM]:
        words[:2] = ["-m"]
    return " ".join([python, *words])


_SUFFIXES = frozenset({".py", ".pyc", ".toml"})
"""Of code, without source if it was installed so, and of the tables that it reads."""


@cache
def source_hash(place: Path) -> bytes:
    """Return the hash of a module, or of the names and bytes of all modules and tables of a package and those below."""
    if not place.is_dir():
        return hashlib.sha256(place.read_bytes()).digest()
    hasher = hashlib.sha256()
    for path in sorted(place.iterdir()):
        if path.suffix in _SUFFIXES or (path.is_dir() and path.name != "__pycache__"):
            hasher.update(b"%s\n" % path.name.encode() + source_hash(path))
    return hasher.digest()


def start_in_utf8_mode() -> None:
    """Start the program again in Python's UTF-8 mode (:pep:`540`) if it takes names of files for ASCII.

    It does so in the locale C where its own remedies for that are turned off. Names in wheels, RECORD and artifacts are
    UTF-8: with ASCII, a file would be there under one name and listed under another. What is printed stays in the
    encoding that it had. Returns where this isn't needed, or Python can't be started.
    """
    if codecs.lookup(sys.getfilesystemencoding()).name != "ascii" or not sys.executable:
        return
    printed = {"PYTHONIOENCODING": sys.stdout.encoding} if sys.stdout else {}
    # Of several -X utf8, the first counts.
    words = [sys.executable, "-X", "utf8", *sys.orig_argv[1:]]
    with suppress(OSError):
        os.execve(sys.executable, words, {**printed, **os.environ})  # noqa: S606 (the words of this process)
