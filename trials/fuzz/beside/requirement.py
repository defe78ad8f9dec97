"""What distlib reads of a requirement (:pep:`508`), held against what rocwheel has of it by `packaging`.

Each takes texts that the other refuses, and they differ over spellings that the PEP has not: only what both read is
compared. Markers are judged by hand where nothing about them is in doubt: versions of Python as numbers, and names of
systems and machines, which no reader takes for versions, as text.
"""

from __future__ import annotations

import re
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Any

from distlib.util import parse_requirement
from packaging.specifiers import Specifier

from trials.fuzz.harness import require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from packaging.requirements import Requirement

__all__ = ["compare_requirement", "judge_marker", "read_marker"]

_PLAIN = re.compile("[ -~]*")
_VERSIONS = {"python_version", "python_full_version"}
_NAMES = {"os_name", "sys_platform", "platform_system", "platform_machine", "implementation_name", "extra"}
_NUMBERS = re.compile(r"'[0-9]{1,9}(?:\.[0-9]{1,9})*'")
_WORDS = re.compile("'(?:linux|win32|darwin|Linux|Windows|Darwin|posix|nt|cpython|x86_64|AMD64|arm64|x)'")
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def compare_requirement(own: Requirement, text: str) -> None:
    """Require that distlib, if it reads the text, reads the same name, extras, versions and address."""
    theirs = _read(text)
    if theirs is not None:
        found = (own.name, own.extras, _versions(own.specifier), own.url)
        # Of several spellings of one version, packaging keeps one.
        known = set(own.specifier)
        kept = {one for one in theirs.constraints or () if one in found[2] or Specifier("".join(one)) not in known}
        other = (theirs.name, set(theirs.extras or ()), kept, theirs.url)
        require(found == other, f"{found}, distlib has {other}")


def _versions(specifiers: Iterable[Specifier]) -> set[tuple[str, str]]:
    return {(one.operator, one.version) for one in specifiers}


def read_marker(text: str) -> Any:
    """Return the marker of a requirement as distlib has it; none where there is none, or distlib doesn't read it."""
    theirs = _read(text)
    return theirs and theirs.marker


def _read(text: str) -> Any:
    # `===` takes any text up to a blank: by packaging that with commas, too.
    if not _PLAIN.fullmatch(text) or "===" in text:
        return None
    try:
        return parse_requirement(text)
    except (SyntaxError, IndexError, ValueError):
        return None


def judge_marker(marker: Any, environment: Mapping[str, str]) -> bool | None:
    """Return whether a marker as distlib has it holds in an environment; none where that is in doubt."""
    if isinstance(marker, str):
        return None
    word, left, right = (marker[key] for key in ("op", "lhs", "rhs"))
    if word not in {"and", "or"}:
        return _compare(word, left, right, environment)
    sides = judge_marker(left, environment), judge_marker(right, environment)
    return None if None in sides else (all if word == "and" else any)(sides)


def _compare(word: str, left: Any, right: Any, environment: Mapping[str, str]) -> bool | None:
    if not isinstance(left, str) or not isinstance(right, str) or word not in _ORDERS:
        return None
    right = right.replace('"', "'")
    if left in _VERSIONS and _NUMBERS.fullmatch(right):
        return _ORDERS[word](_numbers(environment[left]), _numbers(right.strip("'")))
    if left in _NAMES and _WORDS.fullmatch(right) and word in {"==", "!="}:
        return _ORDERS[word](environment[left], right.strip("'"))
    return None


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version without zeros at its end, which change nothing."""
    return tuple(map(int, re.sub(r"(?:\.0+)+$", "", version).split(".")))
