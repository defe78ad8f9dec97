"""Compares the files of the installed packages with RECORD: whether they are there, their sizes, and their hashes."""

from __future__ import annotations

import base64
import hashlib
import stat

from ..._gpus.access import ERROR, Diagnosis
from ..._installing import overwriting_hint, reinstallation_hint
from ..._printing import listed
from ..._regular_file import NotAFileError
from .installed import installed_packages
from .record import RECORD_ERRORS, read_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .record import Row

__all__ = ["check_files"]

BLOCK = 1 << 20


def check_files(*, deep: bool = False) -> list[Diagnosis]:
    """Return an error for each package that lacks files or has others than it was installed with.

    ``deep`` reads every file and compares hashes too.
    """
    return [diagnosis for dist, extra, _ in installed_packages() for diagnosis in _check_package(dist, extra, deep)]


def _check_package(dist: str, extra: str, deep: bool) -> Iterator[Diagnosis]:
    fault = ""
    try:
        rows = read_inside(dist)
        fault = "" if rows else f"RECORD of {dist} is empty: {UNCHECKED}"
    except FileNotFoundError:
        fault = f"{dist} has no RECORD: {UNCHECKED}"
    except NotAFileError as e:
        fault = f"RECORD of {dist} can't be read ({e}); remove it before you install again"
    except RECORD_ERRORS as e:
        fault = f"RECORD of {dist} can't be read ({e})"
    if fault:
        yield Diagnosis(ERROR, fault, overwriting_hint(extra))
        return
    yield from _compare(dist, extra, rows, deep)


def _compare(dist: str, extra: str, rows: list[Row], deep: bool) -> Iterator[Diagnosis]:
    lacking, wrong = [], []
    for name, path, digest, size in rows:
        fault = _fault(path, digest, size, deep)
        if fault == ABSENT:
            lacking.append(name)
        elif fault:
            wrong.append(f"{name} ({fault})")
    if lacking:
        yield Diagnosis(ERROR, f"{dist} lacks {listed(lacking)}", reinstallation_hint(extra))
    if wrong:
        text = f"{dist} has files that are not as installed: {listed(wrong)}"
        yield Diagnosis(ERROR, text, reinstallation_hint(extra))


ABSENT = "is absent"

UNCHECKED = "its files can't be checked, and installers cannot remove them"


def _fault(path: Path, digest: str, size: str, deep: bool) -> str:
    """Return what is wrong with a file, empty when nothing is.

    Links have neither hash nor size: what they lead to is checked with its own package.
    """
    try:
        facts = path.stat() if digest or size else path.lstat()
        if stat.S_ISREG(facts.st_mode) and size and str(facts.st_size) != size:
            return f"{facts.st_size} {'byte' if facts.st_size == 1 else 'bytes'} instead of {size}"
        if (digest or size) and not stat.S_ISREG(facts.st_mode):
            return "not a file"
        if deep and digest.startswith("sha256=") and digest != _hash_file(path):
            return "other bytes"
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except (OSError, ValueError) as e:
        return f"can't be read: {getattr(e, 'strerror', None) or e}"
    return ""


def _hash_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return "sha256=" + base64.urlsafe_b64encode(digest.digest()).decode().rstrip("=")
