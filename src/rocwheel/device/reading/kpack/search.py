"""Where the archives are that a marker names: files, by the rules of AMD's runtime."""

from __future__ import annotations

import glob
import re
from pathlib import Path

from rocwheel.binary.code_objects.target_id import parse_target_id
from rocwheel.binary.kpack.marker import PLACEHOLDER
from rocwheel.foundation.errors import InputError

__all__ = ["find_archives", "leads_to"]


def find_archives(folder: Path, search_path: str) -> tuple[Path, ...]:
    """Return the files that a search path of a library in ``folder`` leads to, whatever their targets; in order.

    A path is relative to the folder that the library really is in, or absolute. `PLACEHOLDER` stands for any target id,
    with features or without, each time for the same one.
    """
    place = str(folder.resolve() / search_path)
    if PLACEHOLDER not in search_path:
        return (Path(place).resolve(),) if Path(place).is_file() else ()
    pattern = _place_pattern(place)
    found = glob.iglob("*".join(glob.escape(part) for part in place.split(PLACEHOLDER)))  # noqa: PTH207
    matches = sorted((match["target"], path) for path in found if (match := pattern.fullmatch(path)))
    return tuple(Path(path).resolve() for target, path in matches if _is_target(target) and Path(path).is_file())


def _place_pattern(place: str) -> re.Pattern[str]:
    """Return the pattern of the paths that ``place`` stands for, of which the group ``target`` is what they are for."""
    first, *others = (re.escape(part) for part in place.split(PLACEHOLDER))
    return re.compile(first + ("(?P<target>[^/]+)" + "(?P=target)".join(others) if others else ""))


def leads_to(place: str, path: str) -> bool:
    """Return whether ``place`` stands for ``path``, with a target in each `PLACEHOLDER`."""
    match = _place_pattern(place).fullmatch(path)
    return match is not None and (PLACEHOLDER not in place or _is_target(match["target"]))


def _is_target(text: str) -> bool:
    try:
        return parse_target_id(text).processor.startswith("gfx")
    except InputError:
        return False
