"""The ``.dist-info`` folder of a wheel, found among the names of its members (wheel format 1.0, :pep:`427`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

__all__ = ["SIGNATURES", "find_dist_info", "find_metadata"]

SIGNATURES = ("RECORD.jws", "RECORD.p7s")
"""The files of ``.dist-info`` that sign RECORD, and that RECORD doesn't list (:pep:`427`)."""

_EXPECTED = "a wheel, which has one"


def find_dist_info(path: Path | str, names: Iterable[str], *, expected: str = _EXPECTED) -> str:
    """Return the name of a wheel's one ``.dist-info`` folder; raise `InputError` when there is none, or several."""
    found = {folder for name in names if (folder := name.partition("/")[0]).endswith(".dist-info")}
    if len(found) != 1:
        listed = ", ".join(sorted(found))
        what = f"has several .dist-info folders: {listed}" if found else "has no .dist-info folder"
        raise InputError(path, what, expected=expected)
    return found.pop()


def find_metadata(path: Path, names: Collection[str], *, expected: str = "") -> str:
    """Return the name of the member that holds a wheel's core metadata; raise `InputError` when there is none."""
    member = f"{find_dist_info(path, names, expected=expected or _EXPECTED)}/METADATA"
    if member not in names:
        raise InputError(path, f"has no {member}", expected=expected or "a wheel")
    return member
