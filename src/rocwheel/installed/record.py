"""RECORD compared with the files that it lists (:pep:`376`, :pep:`427`)."""

from __future__ import annotations

import base64
from collections import Counter
from typing import TYPE_CHECKING

from rocwheel.installed.dist_info import SIGNATURES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.installed.tree import Distribution, InstalledFile

__all__ = ["has_hash", "record_problems"]

_UNHASHED = ("RECORD", *SIGNATURES)
_WEAK = ("md5", "sha1")


def record_problems(owner: Distribution, files: Iterable[InstalledFile]) -> Iterator[str]:
    """Compare the RECORD of a wheel with its members."""
    rows = {entry.path: entry for entry in owner.record}
    members = {file.member: file for file in files}
    for path, count in Counter(entry.path for entry in owner.record).items():
        if count > 1:
            yield f"RECORD lists {path} {count} times"
    for path in sorted(rows.keys() - members.keys()):
        yield f"RECORD lists {path}, which is absent"
    for path, file in members.items():
        if path.rpartition("/")[2] in _UNHASHED and path.startswith(owner.dist_info):
            continue
        if path not in rows:
            yield f"RECORD doesn't list {path}"
        elif not has_hash(file, rows[path].hash):
            yield f"RECORD has another hash for {path}"
        elif (algorithm := rows[path].hash.partition("=")[0]) in _WEAK:
            yield f"RECORD has a {algorithm} hash for {path}, where sha256 is the least"
        elif rows[path].size not in {"", str(file.size)}:
            yield f"RECORD has the size {rows[path].size} for {path}, which has {file.size} bytes"


def has_hash(file: InstalledFile, text: str) -> bool:
    """Tell whether a file has the hash that RECORD tells, as ``algorithm=digest``."""
    algorithm, _, value = text.partition("=")
    # A hash by another algorithm is not compared: both pip and uv write and read this one.
    if file.sha256 is None or algorithm != "sha256":
        return True
    return value == base64.urlsafe_b64encode(file.sha256).rstrip(b"=").decode()
