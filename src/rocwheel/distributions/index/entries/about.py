"""What the page of a project shows people about a distribution: summary, GPUs, and what its extras install."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.core.decoding import decode_json
from rocwheel.distributions.formats.requirements.requirements import (
    RequirementError,
    asked_for,
    is_refusing,
    parse_requirement,
)
from rocwheel.distributions.formats.requirements.requires_txt import parse_requires_txt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from packaging.metadata import RawMetadata
    from packaging.requirements import Requirement

__all__ = ["DECLARED_TARGETS", "About", "describe", "read_requires_txt"]

DECLARED_TARGETS = "rocm_targets.json"
"""The file in a wheel's ``.dist-info`` that lists the GPU targets which it has code for."""

_EXTRA = re.compile("[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_OF_EXTRA = re.compile(r"""\bextra\s*==\s*["']([^"']*)["']""")
_TARGET = re.compile(r"[a-z0-9-]+(?::[a-z]+[+-])*", re.ASCII)
_LONGEST_SUMMARY = 512


class About(msgspec.Struct, frozen=True, array_like=True):
    """What a distribution says; all is empty where it says nothing that can be read."""

    summary: str = ""
    targets: tuple[str, ...] = ()
    """GPU target ids, such as ``gfx90a:xnack+``."""
    requires: dict[str, tuple[tuple[str, str], ...]] = {}
    """Names and extras that each extra asks for, normalised; ``""`` stands for no extra. None that can't be met."""


class _Declared(msgspec.Struct, frozen=True):
    rocm_targets: tuple[str, ...] = ()


def describe(metadata: RawMetadata, declared: bytes = b"", requires: Iterable[tuple[str, str]] = ()) -> About:
    """Return what core metadata say, the file of `DECLARED_TARGETS`, and pairs of extra and requirement from elsewhere.

    Whatever is malformed is left out: an index lists a distribution all the same.
    """
    rows = [*_requirements(metadata), *requires]
    return About(
        summary=metadata.get("summary", "")[:_LONGEST_SUMMARY],
        targets=_targets(declared),
        requires=_by_extra(metadata.get("provides_extra", ()), rows),
    )


def read_requires_txt(text: str) -> Iterator[tuple[str, str]]:
    """Yield extra and requirement of each line of setuptools' ``requires.txt``: a section is an extra and a marker."""
    return ((extra, requirement) for extra, _, requirement in parse_requires_txt(text))


def _requirements(metadata: RawMetadata) -> Iterator[tuple[str, str]]:
    for text in metadata.get("requires_dist", ()):
        for extra in _OF_EXTRA.findall(text.partition(";")[2]) or [""]:
            yield extra, text


def _by_extra(extras: Iterable[str], rows: Iterable[tuple[str, str]]) -> dict[str, tuple[tuple[str, str], ...]]:
    found: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    refused = set()
    for extra in extras:
        found[canonicalize_name(extra)] = []
    for name, text in rows:
        extra = canonicalize_name(name)
        requirement = _parse(text)
        if requirement and is_refusing(requirement):
            refused.add(extra)
        elif requirement:
            found[extra] += asked_for(requirement)
    return {
        extra: tuple(dict.fromkeys(names))
        for extra, names in found.items()
        if extra not in refused and (not extra or _EXTRA.fullmatch(extra))
    }


def _parse(text: str) -> Requirement | None:
    try:
        return parse_requirement(text)
    except RequirementError:
        return None


def _targets(declared: bytes) -> tuple[str, ...]:
    try:
        targets = decode_json(declared, _Declared).rocm_targets if declared else ()
    except msgspec.DecodeError:
        return ()
    return tuple(filter(_TARGET.fullmatch, targets))
