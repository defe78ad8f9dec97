"""Refusing wheels in a folder to prune: a copy of one would keep the code that was to go."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rocwheel.binary.kind import is_binary
from rocwheel.core.errors import InputError
from rocwheel.device.editing.fates import Fate, FileCode, file_fate, read_file_code
from rocwheel.wheels.zip_directory import read_directory
from rocwheel.wheels.zip_reader import ZipMember, member_head, open_unpacked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rocwheel.binary.code_objects import TargetId

__all__ = ["refuse_wheels"]

_MEMBER_MAGIC = b"PK\x03\x04"
"""The signature of a member's header, with which an archive begins (APPNOTE.TXT 4.3.7)."""


def refuse_wheels(paths: Iterable[Path], keep: Sequence[TargetId]) -> Iterator[InputError]:
    """Yield an error for each wheel with device code, or kernel files for targets other than those to ``keep``.

    Wheels that can't be read are errors as well. Other wheels can be copied as they are.
    """
    for path in paths:
        if path.suffix != ".whl" or path.is_symlink() or not _begins_like_a_wheel(path):
            continue
        try:
            if any(_is_pruned(member, keep) for member in read_directory(path)):
                remedy = "Prune it by itself: rocwheel device prune WHEEL --keep TARGETS -o FOLDER"
                yield InputError(path, "a wheel with device code in a folder", expected="unpacked files", remedy=remedy)
        except InputError as e:
            yield e


def _begins_like_a_wheel(path: Path) -> bool:
    """Return whether a file begins like a ZIP archive, of which the end may have been cut off."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_MEMBER_MAGIC)) == _MEMBER_MAGIC


def _is_pruned(member: ZipMember, keep: Sequence[TargetId]) -> bool:
    """Return whether a member has device code to look through, or is for other targets by its name."""
    if not is_binary(member_head(member)):
        return file_fate(PurePosixPath(member.name), FileCode(), keep) is Fate.DROPPED
    with open_unpacked(member) as (unpacked, _), unpacked.view() as data:
        return bool(read_file_code(data, member.source).targets)
