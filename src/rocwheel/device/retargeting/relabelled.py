"""What is made when the files of a tree are offered to more GPUs."""

from __future__ import annotations

import re

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.reading import FileRange

__all__ = ["AddedFile", "NotRelabelledError", "RetargetedTree", "renamed"]


class NotRelabelledError(InputError):
    """A file whose code can't be offered to another GPU, though nothing is wrong with it."""


class AddedFile(msgspec.Struct, frozen=True):
    """A new file for a target: relabelled code, or what names it."""

    path: str
    origin: str
    """The path of the file that it was made of."""
    processor: str
    """Whose file the origin is."""
    agent: str
    """The processor that it is for."""
    content: FileRange


class RetargetedTree(msgspec.Struct, frozen=True):
    """What was made: new contents by path, new files, and why code in other files isn't offered."""

    edited: dict[str, FileRange]
    added: tuple[AddedFile, ...]
    refused: tuple[InputError, ...]
    lacking: dict[str, tuple[str, ...]] = {}
    """By processor, the files that leave it without code: theirs could not be offered to it."""
    warnings: tuple[str, ...] = ()
    """Which libraries could not be trimmed, and why."""


def renamed(path: str, processor: str, agent: str) -> str:
    """Return a path with ``agent`` wherever it names ``processor``; the same path if it names others."""
    return re.sub(rf"(?<![0-9a-zA-Z]){re.escape(processor)}(?![0-9a-zA-Z])", agent, path)
