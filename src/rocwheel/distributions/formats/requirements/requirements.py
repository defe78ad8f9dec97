"""What distributions require: Requires-Dist read, judged by its marker, and followed through others (:pep:`508`)."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from rocwheel.core.messages import shortened
from rocwheel.distributions.formats.requirements.markers import marker_holds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "RequirementError",
    "applies",
    "asked_for",
    "follow_requirements",
    "is_refusing",
    "parse_requirement",
    "read_requirement",
    "read_specifier",
    "readable_requirements",
    "refusing_requirement",
]

_REFUSAL = "is.not.in.this.release"


_BRACKET = re.compile("[()]")
_MOST_NESTED = 32
"""Brackets within brackets; ``packaging`` calls itself for each, and markers of builds have three at most."""

_LONG_NUMBER = re.compile(r"\d{4001}")
"""Python makes numbers of 4,300 digits at most; ``packaging`` takes longer ones, and fails once it compares them."""
_TOO_LONG = "a number of more than 4,000 digits"


class RequirementError(ValueError):
    """A Requires-Dist that is malformed, or whose marker compares what can't be compared; the text says which."""


def read_requirement(text: str) -> Requirement:
    """Return a requirement, whatever its marker compares; raise `RequirementError`, with why, for text that is none."""
    if _nesting(text) > _MOST_NESTED:
        message = f"more than {_MOST_NESTED} brackets within one another"
        raise RequirementError(message)
    if _LONG_NUMBER.search(text):
        raise RequirementError(_TOO_LONG)
    try:
        return Requirement(text)
    except InvalidRequirement as e:
        raise RequirementError(str(e)) from e


def read_specifier(text: str) -> SpecifierSet:
    """Return the versions that a text allows, such as Requires-Python; raise `InvalidSpecifier` for any other text."""
    if _LONG_NUMBER.search(text):
        raise InvalidSpecifier(_TOO_LONG)
    return SpecifierSet(text)


def parse_requirement(text: str) -> Requirement:
    """Return a requirement whose marker can be judged; raise `RequirementError` for any other text."""
    try:
        requirement = read_requirement(text)
        applies(requirement)
    except RequirementError as e:
        message = f"a malformed Requires-Dist ({shortened(str(e))})"
        raise RequirementError(message) from e
    except UndefinedComparison as e:
        message = f"a Requires-Dist with a marker that can't be evaluated ({shortened(str(e))})"
        raise RequirementError(message) from e
    except UndefinedEnvironmentName as e:
        message = f"a Requires-Dist with a marker of lock files ({shortened(str(e.args[0]))})"
        raise RequirementError(message) from e
    if "\\" in _marker_text(text, requirement):
        message = "a malformed Requires-Dist (its marker has a backslash)"  # which packaging reads as Python does
        raise RequirementError(message)
    if not all(specifier.version for specifier in requirement.specifier):
        message = "a malformed Requires-Dist (no version after ===)"  # which packaging takes, and nothing can meet
        raise RequirementError(message)
    return requirement


def _marker_text(text: str, requirement: Requirement) -> str:
    """Return a requirement's text from the end of its URL, which may have any characters, or from the first ``;``."""
    return text.partition(requirement.url)[2] if requirement.url else text.partition(";")[2]


def _nesting(text: str) -> int:
    """Return how many brackets are open at most, those in quotes among them."""
    depth = most = 0
    for bracket in _BRACKET.findall(text):
        depth += 1 if bracket == "(" else -1
        most = max(most, depth)
    return most


def readable_requirements(texts: Iterable[str]) -> list[Requirement]:
    """Return the requirements that `parse_requirement` reads, without the others."""
    found = []
    for text in texts:
        with suppress(RequirementError):
            found.append(parse_requirement(text))
    return found


def applies(requirement: Requirement, extras: Iterable[str] = ("",), file_name: str = "") -> bool:
    """Return whether a requirement holds with any of the extras; ``""`` stands for no extra.

    With the ``file_name`` of a wheel, it holds if it does for some Python and platform that the wheel's tags name, and
    with any other file name, for some Python and platform at all. Without a file name, it is judged on this machine.
    """
    if requirement.marker is None:
        return True
    marker = requirement.marker
    try:
        return any(
            marker_holds(str(marker), extra, file_name) if file_name else marker.evaluate({"extra": extra})
            for extra in extras
        )
    except (UndefinedComparison, UndefinedEnvironmentName):
        raise
    except ValueError:
        # A version of this machine, such as its kernel's: earlier releases of packaging don't compare it as text.
        return True


def refusing_requirement(name: str, version: str, target: str, families: Iterable[str]) -> str:
    """Return a requirement of a public version that can't be met and says why: there is no code for a target.

    An installer would only warn about an extra that it doesn't know.
    """
    return f"{name}=={version}+{'.'.join([target, _REFUSAL, 'which.has', *families])}"


def is_refusing(requirement: Requirement) -> bool:
    """Return whether a requirement is meant never to be met, as those of `refusing_requirement` are."""
    return any(f".{_REFUSAL}" in specifier.version for specifier in requirement.specifier)


def asked_for(requirement: Requirement) -> list[tuple[str, str]]:
    """Return the name that a requirement asks for, normalised, once without an extra and once with each of its own."""
    name = str(canonicalize_name(requirement.name))
    return [(name, extra) for extra in ("", *map(canonicalize_name, requirement.extras))]


def follow_requirements(start: str, brought_by: Callable[[str, str], Iterable[tuple[str, str]]]) -> frozenset[str]:
    """Return the names of all that a distribution brings, directly or through others; its own name may be among them.

    ``brought_by`` returns what a name with an extra asks for directly, as `asked_for` does.
    """
    reached: set[tuple[str, str]] = set()
    waiting = [(start, "")]
    while waiting:
        brought = set(brought_by(*waiting.pop())) - reached
        waiting += brought
        reached |= brought
    return frozenset(name for name, _ in reached)
