"""The results of comparing files with what was written about them."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Fault", "FaultKind", "SubjectKind", "Verified"]

SubjectKind = Literal["build", "wheel", "sdist", "checksums", "index", "environment"]
FaultKind = Literal["missing", "extra", "changed", "damaged", "unlisted", "link"]
"""A file that is missing, is there and should not be, has other bytes, can't be read, is not listed, is a symlink."""


class Fault(msgspec.Struct, frozen=True):
    """A file that is not what is written of it."""

    kind: FaultKind
    place: str
    """The file, by its path; a member of a wheel as ``WHEEL!MEMBER``."""
    found: str
    """What is there, such as a SHA-256 in hexadecimal digits, or what can't be done with it."""
    expected: str = ""
    """What is written of it."""

    @property
    def text(self) -> str:
        """The fault in a line."""
        text = f"{self.place}: {self.found}"
        return f"{text}; expected {self.expected}" if self.expected else text


class Verified(msgspec.Struct, frozen=True):
    """One thing that was verified."""

    path: str
    kind: SubjectKind
    files: int
    """Files, or members of a wheel, that were compared."""
    size: int
    """Their bytes."""
    faults: tuple[Fault, ...] = ()
    unchecked: int = 0
    """Files of which nothing is written that could be compared, or that lie elsewhere."""
