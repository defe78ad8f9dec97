"""The files in a wheel that may hold device code, unpacked one at a time."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, TypeVar

from rocwheel.binary.kind import HEAD_SIZE, is_binary
from rocwheel.distributions.zip.reader import member_head, open_unpacked, read_directory
from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rocwheel.foundation.files.file_view import Data

__all__ = ["is_wheel", "read_members"]

Result = TypeVar("Result")


def is_wheel(path: Path) -> bool:
    """Return whether a file is a ZIP archive, as wheels are, rather than a binary with an archive behind it."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(HEAD_SIZE)
    return not is_binary(head) and zipfile.is_zipfile(path)


def read_members(
    wheel: Path, read: Callable[[Data, str], Result], *, limit: int
) -> Iterator[tuple[str, Result | InputError]]:
    """Yield the name of each binary in a wheel and what ``read`` makes of its bytes and its name in messages.

    A member that is damaged, that ``read`` refuses, or that unpacks to more than ``limit`` bytes comes with its error.
    Raises `InputError` for a damaged archive.
    """
    for member in read_directory(wheel):
        try:
            if not is_binary(member_head(member)):
                continue
            with open_unpacked(member, limit=limit) as (unpacked, _), unpacked.view() as data:
                result: Result | InputError = read(data, member.source)
        except InputError as e:
            result = e
        yield member.name, result
