"""``python open_each.py``: open each library that standard input names, and say how it went.

Each is opened in a process of its own. It prints a line of JSON for each: what the loader says, or nothing.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys

_SECONDS = 60
_LONGEST = 1 << 16


def open_one(path: str) -> str:
    """Return what the loader says of a library, in a process that may crash; empty where it was opened."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _open_and_leave(path, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        said = answer.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return said if os.WIFEXITED(status) else f"signal {os.WTERMSIG(status)}"


def _open_and_leave(path: str, writer: int) -> None:
    said = ""
    signal.alarm(_SECONDS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    try:
        ctypes.CDLL(path, mode=os.RTLD_NOW)
    except OSError as e:
        said = str(e)
    os.write(writer, said.encode(errors="replace")[:_LONGEST])
    # Without running what libraries want done at the end: it belongs to programs that used them.
    os._exit(0)


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(open_one(line.rstrip("\n"))), flush=True)
