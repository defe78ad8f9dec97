"""``.bazelrc`` files (Bazel's documentation, "Write bazelrc files"): what configs say, and lines taken out."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["RcLine", "config_options", "environment", "rc_lines", "without_lines"]

_VALUE_OPTIONS = {"--repo_env", "--action_env", "--config", "--copt", "--host_copt", "--define", "--cxxopt"}
_LOGICAL = re.compile(r"(?:[^\n\\]|\\.?)*\n?", re.DOTALL)
_ENVIRONMENT = re.compile(r"--(?:repo|action)_env=(\w+)=(.*)", re.DOTALL)


class RcLine(msgspec.Struct, frozen=True):
    """A line with what follows a backslash at its end: its command, such as ``build:rocm``, and its options."""

    text: str
    command: str = ""
    options: tuple[str, ...] = ()

    @property
    def config(self) -> str:
        """The config that the line belongs to, empty for none."""
        return self.command.partition(":")[2]


def rc_lines(text: str) -> Iterator[RcLine]:
    """Yield the lines; comments, blank lines and what no shell could part have no command."""
    for match in _LOGICAL.finditer(text):
        if match[0]:
            command, *options = _words(match[0]) or [""]
            yield RcLine(match[0], command, tuple(_joined(options)))


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line.replace("\\\n", " "), comments=True)
    except ValueError:
        return []


def _joined(words: list[str]) -> Iterator[str]:
    """Yield options with their values after ``=``, where they are words of their own."""
    rest = iter(words)
    for word in rest:
        yield f"{word}={next(rest, '')}" if word in _VALUE_OPTIONS else word


def config_options(text: str) -> dict[str, list[str]]:
    """Return the options of each config, in their order."""
    options: dict[str, list[str]] = {}
    for line in rc_lines(text):
        if line.config:
            options.setdefault(line.config, []).extend(line.options)
    return options


def environment(options: list[str]) -> dict[str, str]:
    """Return the variables that options set for repositories and actions; the last of each name counts."""
    return {match[1]: match[2] for option in options if (match := _ENVIRONMENT.fullmatch(option))}


def without_lines(text: str, is_dropped: Callable[[RcLine], bool]) -> str:
    """Return a text without some lines, the comments that stand for them alone, and the blank lines between."""
    blocks = re.split(r"(\n\s*\n)", text)
    kept: list[str] = []
    for block, gap in zip(blocks[::2], [*blocks[1::2], ""], strict=False):
        lines = list(rc_lines(block))
        rest = [line for line in lines if not is_dropped(line)]
        if len(rest) == len(lines):
            kept.append(block + gap)
        elif any(line.command for line in rest):
            kept.append("".join(line.text for line in rest).rstrip("\n") + gap)
    return "".join(kept).rstrip("\n") + "\n"
