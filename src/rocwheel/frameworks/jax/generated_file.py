"""Generated text files that show whether they were edited by hand."""

from __future__ import annotations

import difflib
import hashlib
import re
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import WorkError, read_error
from rocwheel.core.reading import read_regular
from rocwheel.core.writing import atomic_file

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["GeneratedFile", "HandEditedError", "refuse_edited"]

_SEAL = re.compile(r"\A# (?P<note>.*) sha256 of what follows: (?P<digest>[0-9a-f]{64})\n")


class HandEditedError(WorkError):
    """A file was edited by hand, or made by something else, and so is not overwritten."""


class GeneratedFile(msgspec.Struct, frozen=True):
    """A text file in a language whose comments begin with ``#``; ``note`` says what makes it, in one line."""

    note: str
    body: str

    @property
    def text(self) -> str:
        """The file's text: a first line that seals the rest by its SHA-256."""
        return f"# {self.note} sha256 of what follows: {_digest(self.body)}\n{self.body}"

    def write(self, path: Path, *, force: bool = False) -> str:
        """Write the file and return the unified diff from the old text; write nothing if the diff is empty.

        Raises `HandEditedError` when the file there was edited, or made by something else, unless ``force``; and
        `WorkError` when it can't be written.
        """
        if not force:
            refuse_edited(path)
        diff = self.diff(path)
        if diff or not path.exists():
            with atomic_file(path.resolve() if path.is_symlink() else path) as target:
                target.write(self.text.encode())
        return diff

    def diff(self, path: Path) -> str:
        """Return the unified diff from the text at ``path``; raise `WorkError` when it can't be read."""
        lines = difflib.unified_diff(
            (_read(path) or "").splitlines(), self.text.splitlines(), f"{path} (before)", str(path), lineterm=""
        )
        return "".join(f"{line}\n" for line in lines)


def refuse_edited(path: Path) -> None:
    """Raise `HandEditedError` when the file there was edited, or made by something else."""
    old = _read(path)
    if old is not None and not _is_intact(old):
        found = "was edited by hand, or made by something else"
        remedy = "Put the changes elsewhere, or give --force to lose them."
        raise HandEditedError(path, found, remedy=remedy)


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _is_intact(text: str) -> bool:
    seal = _SEAL.match(text)
    return seal is not None and seal["digest"] == _digest(text[seal.end() :])


def _read(path: Path) -> str | None:
    try:
        return read_regular(path).decode(errors="replace")
    except FileNotFoundError:
        return None
    except OSError as e:
        raise read_error(path, e, remedy="Choose another file.", kind=WorkError) from e
