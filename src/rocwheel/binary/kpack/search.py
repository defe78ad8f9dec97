"""The search for the kpack archives that a marker names, by the rules of AMD's runtime."""

from __future__ import annotations

import glob
import re
from pathlib import Path
from typing import NamedTuple

from rocwheel.binary.code_objects.target_id import parse_target_id
from rocwheel.binary.kpack.marker import PLACEHOLDER
from rocwheel.core.errors import InputError

__all__ = ["FoundFile", "find_archives", "leads_to", "target_at"]


class FoundFile(NamedTuple):
    """A file that a search path leads to, and the target that stands for the placeholder; empty without one."""

    path: Path
    target: str


def find_archives(folder: Path, search_path: str) -> tuple[FoundFile, ...]:
    """Return the files that a search path of a library in ``folder`` leads to, whatever their targets; in order.

    A path is relative to the folder that the library really is in, or absolute. The first `PLACEHOLDER` stands for any
    target id, with features or without; AMD's runtime takes a second one for what it is.
    """
    place = str(folder.resolve() / search_path)
    if PLACEHOLDER not in search_path:
        return (FoundFile(Path(place).resolve(), ""),) if Path(place).is_file() else ()
    found = glob.iglob("*".join(glob.escape(part) for part in place.split(PLACEHOLDER, 1)))  # noqa: PTH207
    matches = sorted((target, path) for path in found if (target := target_at(place, path)))
    return tuple(FoundFile(Path(path).resolve(), target) for target, path in matches if Path(path).is_file())


def leads_to(place: str, path: str) -> bool:
    """Return whether ``place`` stands for ``path``, with a target in its `PLACEHOLDER`."""
    return target_at(place, path) is not None


def target_at(place: str, path: str) -> str | None:
    """Return the target that makes ``path`` of ``place``, empty if it has no `PLACEHOLDER`; none for another path."""
    before, placeholder, behind = place.partition(PLACEHOLDER)
    if not placeholder:
        return "" if place == path else None
    match = re.fullmatch(f"{re.escape(before)}([^/]+){re.escape(behind)}", path)
    return match[1] if match and _is_target(match[1]) else None


def _is_target(text: str) -> bool:
    try:
        return parse_target_id(text).processor.startswith("gfx")
    except InputError:
        return False
