"""Names of files are UTF-8, whatever the locale: Python is started again where it takes them for ASCII."""

from __future__ import annotations

import codecs
import os
import sys
from contextlib import suppress

__all__ = ["start_in_utf8_mode"]


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
