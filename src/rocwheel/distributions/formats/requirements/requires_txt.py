"""``requires.txt``, in which setuptools lists what an sdist requires."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["parse_requires_txt", "to_requires_dist"]

_SECTION = re.compile(r"\[([^:\]]*)(?::(.*))?\]")


def parse_requires_txt(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield extra, marker and requirement of each line; a section says which extra and marker its lines have."""
    extra = marker = ""
    for line in map(str.strip, text.splitlines()):
        section = _SECTION.fullmatch(line)
        if section:
            extra, marker = section[1], section[2] or ""
        elif line:
            yield extra, marker, line


def to_requires_dist(extra: str, marker: str, requirement: str) -> str:
    """Return a line of ``requires.txt`` as Requires-Dist of core metadata has it."""
    text, _, own = requirement.partition(";")
    parts = [f"({part.strip()})" for part in (own, marker) if part.strip()]
    parts += [f'extra == "{extra}"'] if extra else []
    return f"{text.strip()} ; {' and '.join(parts)}" if parts else text.strip()
