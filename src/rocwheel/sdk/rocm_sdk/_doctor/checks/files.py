"""Compares the files of the installed packages with RECORD: whether they are there, their sizes, and their hashes."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from pathlib import Path

from ..._gpus.access import ERROR, Diagnosis
from ..._installing import overwriting_hint, reinstallation_hint
from ..._platform import this_platform
from ..._printing import listed
from ..._regular_file import NotAFileError
from ..._rights import opening_hint
from .installed import installed_packages
from .record import RECORD_ERRORS, read_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .record import Row

__all__ = ["check_files", "difference"]

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
    found = [(name, path, _fault(path, digest, size, deep)) for name, path, digest, size in rows]
    refused = {name: path for name, path, fault in found if fault == REFUSED}
    lacking = [name for name, _, fault in found if fault == ABSENT]
    wrong = [f"{name} ({fault})" for name, _, fault in found if fault not in ("", ABSENT, REFUSED)]
    if refused:
        text = f"{dist} has files that this user may not read: {listed([*refused])}"
        yield Diagnosis(ERROR, text, _opening(refused) or reinstallation_hint(extra))
    if lacking:
        yield Diagnosis(ERROR, f"{dist} lacks {listed(lacking)}", reinstallation_hint(extra))
    if wrong:
        text = f"{dist} has files that are not as installed: {listed(wrong)}"
        yield Diagnosis(ERROR, text, reinstallation_hint(extra))


def _opening(refused: dict[str, Path]) -> str:
    """Return the command that opens the folders in site-packages that files are in; none without ``chmod``."""
    if this_platform().is_windows:
        return ""
    depths = ((path, max(len(Path(name).parts) - 1, 0)) for name, path in refused.items())
    return opening_hint(*dict.fromkeys((path, *path.parents)[depth] for path, depth in depths))


ABSENT = "is absent"

REFUSED = "may not be read"

UNCHECKED = "its files can't be checked, and installers cannot remove them"


def _fault(path: Path, digest: str, size: str, deep: bool) -> str:
    """Return what is wrong with a file, empty when nothing is."""
    try:
        return difference(path, digest, size, deep)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except PermissionError:
        return REFUSED
    except (OSError, ValueError) as e:
        return f"can't be read: {getattr(e, 'strerror', None) or e}"


def difference(path: Path, digest: str, size: str, deep: bool) -> str:
    """Return how a file differs from what RECORD says, empty when it doesn't.

    Links have neither hash nor size: what they lead to is checked with its own package.
    """
    facts = path.stat() if digest or size else path.lstat()
    if stat.S_ISREG(facts.st_mode) and size and str(facts.st_size) != size:
        return f"{facts.st_size} {'byte' if facts.st_size == 1 else 'bytes'} instead of {size}"
    if (digest or size) and not stat.S_ISREG(facts.st_mode):
        return "not a file"
    if (digest or size) and not os.access(path, os.R_OK):
        return REFUSED
    return "other bytes" if deep and digest.startswith("sha256=") and digest != _hash_file(path) else ""


def _hash_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return "sha256=" + base64.urlsafe_b64encode(digest.digest()).decode().rstrip("=")
