"""Matches paths against Ant-style patterns, as in artifact descriptors and recipes."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError, ProblemsError, RocwheelError

if TYPE_CHECKING:
    from collections.abc import Iterable


class PathPatterns:
    """Include and exclude patterns for relative paths. Excludes take precedence.

    Without include patterns, all paths match.

    In a pattern, ``*`` matches any characters within a segment, and ``?`` matches exactly one character. A segment
    ``**`` matches any number of segments: ``**/x`` is ``x`` at any depth, and ``x/**`` is ``x`` and everything below
    it. All other characters are literal and case-sensitive.
    """

    def __init__(self, include: Iterable[str] = (), exclude: Iterable[str] = ()) -> None:
        """Check the patterns, which are compiled on first use.

        Raises `ProblemsError` with each pattern that can never match.
        """
        self.include = tuple(include)
        self.exclude = tuple(exclude)
        problems = [problem for pattern in (*self.include, *self.exclude) if (problem := _problem(pattern))]
        if problems:
            subject = "path patterns"
            raise ProblemsError(subject, problems)

    @cached_property
    def _included(self) -> re.Pattern[str]:
        return _compile(self.include or ("**",))

    @cached_property
    def _excluded(self) -> re.Pattern[str]:
        return _compile(self.exclude)

    def matches(self, path: str) -> bool:
        """Return whether a ``/``-separated relative path is included and not excluded."""
        return self._included.fullmatch(path) is not None and self._excluded.fullmatch(path) is None


def translate_pattern(pattern: str) -> str:
    """Return a regular expression that is equivalent to a pattern when it matches the full path."""
    parts = pattern.split("/")
    segments = [part for part, before in zip(parts, ["", *parts], strict=False) if not part == before == "**"]
    if segments == ["**"]:
        return ".*"
    tail = ""
    if segments[-1] == "**":
        segments.pop()
        tail = "(?:/.*)?"
    folders = "".join("(?:.*/)?" if segment == "**" else f"{_translate_segment(segment)}/" for segment in segments[:-1])
    return folders + _translate_segment(segments[-1]) + tail


_WILDCARDS = {"*": "[^/]*", "?": "[^/]"}


def _translate_segment(segment: str) -> str:
    return "".join(_WILDCARDS.get(character) or re.escape(character) for character in segment)


def _compile(patterns: tuple[str, ...]) -> re.Pattern[str]:
    alternatives = "|".join(map(translate_pattern, patterns))
    return re.compile(alternatives if patterns else r"(?!)", re.DOTALL)


def _problem(pattern: str) -> RocwheelError | None:
    segments = pattern.split("/")
    if any(segment in {"", ".", ".."} for segment in segments):
        return InputError(repr(pattern), "can't match any path", expected="segments separated by single slashes")
    return None
