"""What is taken out of files with device code, by which rule, and how it appears: all files, or none."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import WorkError, write_error
from rocwheel.core.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.core.reading import Data

__all__ = ["ExtractedCode", "MatchRule", "placed", "staging", "suffix_of"]

_SUFFIXES = {b"BC\xc0\xde": ".bc", b"\x03\x02\x23\x07": ".spv"}
"""What other code than code objects begins with: LLVM bitcode and SPIR-V, little-endian."""


class MatchRule(str, Enum):
    """Which entry of a bundle is the one for a target."""

    EXACT = "exact"
    """The one of that id."""
    STOCK = "stock"
    """The one that an unmodified runtime loads on such a GPU."""
    EXTENDED = "extended"
    """The one that a runtime with the distributions' extended compatibility rule loads."""


class ExtractedCode(msgspec.Struct, frozen=True):
    """Code that was written to ``path``: from which bundle, for which target, and its size in bytes.

    ``found_in`` is the file, or the member of a static library, in which it was.
    """

    path: str
    bundle: int
    target: str
    size: int
    found_in: str


@contextmanager
def staging(dest_dir: Path, name: str) -> Iterator[Path]:
    """Make a folder in ``dest_dir`` for files that are not whole yet; it goes with the block.

    An error leaves no folder that wasn't there.
    """
    made = [folder for folder in (dest_dir, *dest_dir.parents) if not folder.exists()]
    stack = ExitStack()
    try:
        dest_dir.mkdir(parents=True, exist_ok=True)
        folder = stack.enter_context(scratch_folder(dest_dir / name))
    except OSError as e:
        raise write_error(dest_dir, e) from e
    try:
        with stack:
            yield folder
    except BaseException:
        with suppress(OSError):
            for created in made:
                created.rmdir()
        raise


def placed(codes: Sequence[ExtractedCode], folder: Path, dest_dir: Path) -> tuple[ExtractedCode, ...]:
    """Move the files from ``folder`` to their places in ``dest_dir``, once it is clear that nothing else is there.

    Raises `WorkError` where something else is, and when a file can't be moved.
    """
    moves = {Path(code.path): dest_dir / Path(code.path).relative_to(folder) for code in codes}
    for path in moves.values():
        if path.exists() and not path.is_file():
            raise WorkError(path, "is not a regular file, so it can't be replaced", remedy="Name another folder.")
    try:
        for old, new in moves.items():
            new.parent.mkdir(parents=True, exist_ok=True)
            old.replace(new)
    except OSError as e:
        raise write_error(dest_dir, e) from e
    return tuple(msgspec.structs.replace(code, path=str(moves[Path(code.path)])) for code in codes)


def suffix_of(head: Data) -> str:
    """Return the suffix of a file of code that begins with ``head``."""
    return _SUFFIXES.get(bytes(head[:4]), ".co")
