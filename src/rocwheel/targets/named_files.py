"""Files that are for one target, by their names: ``Kernels.so-000-gfx90a-xnack+.hsaco``, ``library/gfx942/x.co``."""

from __future__ import annotations

import re
from functools import cache

from rocwheel.binary.machine import known_processors
from rocwheel.binary.target_id import FEATURES, TargetId, parse_target_id

__all__ = ["targets_in_path"]


@cache
def _pattern() -> re.Pattern[str]:
    """Find a processor and its features; MIOpen glues the number of compute units to it: ``gfx90878``."""
    processors = "|".join(map(re.escape, sorted(known_processors(), key=len, reverse=True)))
    features = f"(?:[-:](?:{'|'.join(FEATURES)})[+-])*"
    return re.compile(rf"(?<![0-9a-z])({processors})({features})(?=\d{{2,3}}(?![0-9a-z])|(?![0-9a-z]))")


def targets_in_path(path: str) -> tuple[TargetId, ...]:
    """Return the targets that a relative path names, each once; none for files that are for any."""
    found = (match[1] + re.sub(r"-(?=[sx])", ":", match[2]) for match in _pattern().finditer(path.replace("\\", "/")))
    return tuple(dict.fromkeys(parse_target_id(text, source=path) for text in found))
