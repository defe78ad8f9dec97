"""This Python: how a module runs, in which mode, and when garbage is collected."""

from __future__ import annotations

import codecs
import gc
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
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


_SELDOM = 200_000
"""New containers between two searches; 700 by default, of which ten thousand files have many times as many."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Look for cycles seldom in a block that makes many values to keep, in all threads; memory stays bounded.

    Each search goes through what was made since the last ones, again and again: with a hundred thousand values, that
    is a third of the work with them.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _SELDOM) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def loading_without_collections() -> Iterator[None]:
    """Look for no cycles in a block that loads modules, and after it never among what has been made until then.

    Modules and their classes stay until the process ends, and nearly all of the garbage comes later. The documentation
    of `gc.freeze` names this order.
    """
    is_wanted = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if is_wanted:
            gc.enable()


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
