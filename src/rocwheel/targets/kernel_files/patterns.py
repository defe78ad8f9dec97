"""The patterns of the table of kernel files, as regular expressions."""

from __future__ import annotations

import re
from functools import cache

from rocwheel.binary.code_objects import FEATURES, known_processors

__all__ = ["PathPattern", "compile_patterns", "processors_pattern"]

_PLACEHOLDER = re.compile(r"(\{[a-z_]+\}|\*)")
_FEATURE = rf"(?:[-_:](?:{'|'.join(FEATURES)})[-+p_])"
"""A feature of a target in a file name; where names can't hold signs, ``p`` stands for plus and ``_`` for minus."""


@cache
def processors_pattern() -> str:
    """Return the expression of every processor; of names that begin alike, the longest comes first."""
    return "|".join(map(re.escape, sorted(known_processors(), key=lambda name: (-len(name), name))))


@cache
def _placeholders() -> dict[str, str]:
    start, end = r"(?<![0-9a-zA-Z])", r"(?=[._/]|$)"
    processor = f"(?:{processors_pattern()})(?:[-_]strict)?"
    units = "(?:[0-9a-f]{2,3})?"
    return {
        "*": "[^/]*",
        "{target}": f"{start}(?P<target>{processor}){_FEATURE}*{end}",
        "{target_cu}": f"{start}(?P<target>{processor}){units}{end}",
        "{family}": f"{start}(?P<target>{processor}|gfx[0-9]+(?:x{{1,2}}|_[0-9]+)){_FEATURE}*{end}",
    }


class PathPattern:
    """A pattern of the table, ready to be matched against many paths."""

    def __init__(self, pattern: str) -> None:
        self._begin = re.split(r"[*{]", pattern, maxsplit=1)[0]
        self._expression = re.compile(f"(?:.*/)?{_translate(pattern)}", re.DOTALL)

    def match(self, path: str) -> re.Match[str] | None:
        """Return the match of a whole relative path; most paths are ruled out by looking for how the pattern begins."""
        return self._expression.fullmatch(path) if self._begin in path else None


def compile_patterns(patterns: tuple[str, ...]) -> tuple[PathPattern, ...]:
    """Return patterns of the table, ready to be matched."""
    return tuple(map(PathPattern, patterns))


def _translate(pattern: str) -> str:
    *folders, last = pattern.split("/")
    text = "".join("(?:.*?/)??" if segment == "**" else f"{_translate_segment(segment)}/" for segment in folders)
    return text + (".+" if last == "**" else _translate_segment(last))


def _translate_segment(segment: str) -> str:
    placeholders = _placeholders()
    return "".join(placeholders.get(part) or re.escape(part) for part in _PLACEHOLDER.split(segment))
