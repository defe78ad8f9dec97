"""Asks the dynamic loader of a chroot which libraries it finds for files.

A program of its own, so that it may run with more rights and lock itself in: ``python trace.py ROOT`` reads lines that
are each a JSON list of paths inside ``ROOT``, and answers with a line: a JSON object of what `ask` returns for each.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["LOADER", "ask", "unmet"]

LOADER = "/lib64/ld-linux-x86-64.so.2"

_ENVIRONMENT = {"LD_TRACE_LOADED_OBJECTS": "1", "LD_DEBUG": "files"}
_LISTED = re.compile(r"\t(\S.*?) => (.+?)(?: \(0x[0-9a-f]+\))?")
_ASKED = re.compile(r".*\tfile=(.+) \[\d+\];  needed by (.+) \[\d+\].*")


def ask(path: str) -> dict[str, object]:
    """Return where the loader found libraries, by name, and each search that failed: who asked, and for which name.

    The variable does what ``ld.so --list`` does, but goes on where a library is missing. For a file that the loader
    refuses nothing is found.
    """
    done = subprocess.run([LOADER, path], env=_ENVIRONMENT, input=b"", capture_output=True, check=False)
    listed = [match.groups() for line in _lines(done.stdout) if (match := _LISTED.fullmatch(line))]
    absent = {name for name, place in listed if place == "not found"}
    return {
        "found": {name: place for name, place in listed if place != "not found"},
        "missing": sorted({(asker, name) for asker, name in unmet(_lines(done.stderr)) if name in absent}),
    }


def unmet(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each search in the output of ``LD_DEBUG=files`` that maps no file: who asked, and for which name."""
    search: tuple[str, str] | None = None
    for line in lines:
        if match := _ASKED.fullmatch(line):
            if search is not None:
                yield search
            search = match[2], match[1]
        elif line.endswith("generating link map"):
            search = None
    if search is not None:
        yield search


def _lines(output: bytes) -> list[str]:
    return output.decode(errors="surrogateescape").splitlines()


if __name__ == "__main__":
    os.chroot(sys.argv[1])
    os.chdir("/")
    for request in sys.stdin:
        print(json.dumps({path: ask(path) for path in json.loads(request)}), flush=True)
