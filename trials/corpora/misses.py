"""Libraries of published wheels that the loader can't open for want of another, of which the audit says nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trials.corpora.auditing import findings_of
from trials.corpora.files import find
from trials.corpora.opening import is_library, open_libraries
from trials.corpora.row import Difference, Row
from trials.corpora.wheels import local_wheels, unpack_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["find_misses", "misses_of"]

_ABSENT = re.compile(r"(\S+): cannot open shared object file")


def find_misses() -> Row:
    """Open each library of the wheels for Linux, and ask the audit about those that can't be opened."""
    files = 0
    found: list[Difference] = []
    for wheel, folder in unpack_all(local_wheels("linux")):
        paths = [path for path in sorted(find("elf", [folder])) if is_library(path)]
        files += len(paths)
        found += misses_of(wheel, folder, paths)
    return Row("misses", files, files, tuple(sorted(found)))


def misses_of(wheel: Path, folder: Path, paths: list[Path]) -> Iterator[Difference]:
    """Yield the libraries that are absent when a wheel's are opened, and that no finding of its audit names."""
    name = "-".join(wheel.name.split("-")[:2])
    said = zip(paths, open_libraries(paths), strict=True)
    absent = [(path, match[1]) for path, text in said if (match := _ABSENT.match(text))]
    told = [one.text for one in findings_of(wheel)] if absent else []
    for path, library in absent:
        if not any(library in text for text in told):
            yield Difference("misses", f"{name}!{path.relative_to(folder)}", "ld.so", library, "is absent")
