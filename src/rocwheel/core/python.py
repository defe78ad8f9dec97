"""Controls the running Python: how it runs modules, its UTF-8 mode, and its garbage collection."""

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
"""A replacement for ``python -P -m``, which was added in Python 3.11.

With only ``-m``, the working directory comes first in the module search path.
"""


def module_command(python: str | Path, module: str) -> list[str]:
    """Return a command that runs ``module`` like ``python -m``, but never loads it from the working directory."""
    return [str(python), "-c", _PROGRAM, module]


def as_typed(command: Sequence[str]) -> str:
    """Return a command for a message, with ``python -m`` instead of the result of `module_command`."""
    python, *words = command
    if words[:2] == ["-c", _PROGRAM]:
        words[:2] = ["-m"]
    return " ".join([python, *words])


_SELDOM = 200_000
"""The number of new containers between two collections.

The default is 700. Ten thousand files create many times that number.
"""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage less often in a block that creates many long-lived values, in all threads.

    Memory use stays bounded.

    Each collection scans the values that were created since the last collections. With a hundred thousand values, that
    takes a third of the time.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _SELDOM) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def loading_without_collections() -> Iterator[None]:
    """Don't collect garbage in a block that loads modules.

    Later collections ignore all values that exist at the end of the block.

    Modules and their classes live until the process ends, and nearly all garbage is created later. The documentation of
    `gc.freeze` recommends this order.
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
    """Restart the program in Python's UTF-8 mode (:pep:`540`) if it decodes file names as ASCII.

    This happens in the C locale if Python's own workarounds are turned off. Names in wheels, RECORD, and artifacts are
    UTF-8. With ASCII, a file would have one name on disk and a different name in lists. Printed text keeps its
    encoding. This function returns if no restart is needed or if Python can't be started.
    """
    if codecs.lookup(sys.getfilesystemencoding()).name != "ascii" or not sys.executable:
        return
    printed = {"PYTHONIOENCODING": sys.stdout.encoding} if sys.stdout else {}
    # With several -X utf8 options, the first one counts.
    words = [sys.executable, "-X", "utf8", *sys.orig_argv[1:]]
    with suppress(OSError):
        os.execve(sys.executable, words, {**printed, **os.environ})  # noqa: S606 (the words of this process)
