"""Members of a wheel that are found by the name of their target, and so get no code for others by an edit."""

from __future__ import annotations

import posixpath
from collections import Counter
from typing import TYPE_CHECKING

from rocwheel.core.messages import count
from rocwheel.targets.kernel_files.classify import processors_of_name
from rocwheel.wheels.zip_directory import read_directory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rocwheel.targets.retarget_pairs import TargetPair

__all__ = ["find_named_members"]


def find_named_members(wheel: Path, pairs: Sequence[TargetPair]) -> tuple[str, ...]:
    """Return a line for each folder of archives or kernel files that a retargeted wheel has for its old targets alone.

    Another target's files belong to a device wheel of its own, which an edit of one wheel can't make.
    Raises `InputError` for a file that is no wheel.
    """
    processors = {pair.code.processor for pair in pairs}
    found: Counter[tuple[str, str]] = Counter()
    for member in read_directory(wheel):
        for target in processors_of_name(member.name) & processors:
            found[posixpath.dirname(member.name), target] += 1
    return tuple(_line(wheel, folder, target, number) for (folder, target), number in sorted(found.items()))


def _line(wheel: Path, folder: str, target: str, number: int) -> str:
    files = f"{count(number, 'file')} for {target} {'is' if number == 1 else 'are'} offered to no other GPU"
    remedy = "Retarget the folder that the wheel is built from."
    return f"{wheel}: {folder}: {files}: libraries look them up by name. {remedy}"
