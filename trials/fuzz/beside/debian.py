"""What python-debian reads of relations and versions of Debian packages, held against what rocwheel reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from debian.deb822 import PkgRelation
from debian.debian_support import NativeVersion

from trials.fuzz.harness import require

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.artifacts.deb import Alternatives

__all__ = ["compare_order", "compare_relations"]

# The policy's spelling: what is not a relation rocwheel leaves out, and python-debian returns as it stands.
_VERSION = r"[0-9][A-Za-z0-9.+:~-]*"
_NAME = "[a-z0-9][a-z0-9+.-]*"
_RELATION = (
    rf"\s*{_NAME}(?::[a-z0-9][a-z0-9-]*)?(?:\s*\(\s*(?:<<|<=|=|>=|>>|<|>)\s*{_VERSION}\s*\))?"
    r"(?:\s*\[[a-z0-9! -]*[a-z0-9]\])?(?:\s*<[a-z0-9.! -]+>)?\s*"
)
_FIELD = re.compile(rf"{_RELATION}(?:[,|]{_RELATION})*", re.ASCII)
_ORDERED = re.compile(r"(?:[0-9]{1,9}:)?[0-9][A-Za-z0-9.+~-]*", re.ASCII)
_LONGEST = 300
"""Characters: for more, python-debian's patterns may take more than linear time."""


def compare_order(order: int, one: str, other: str) -> None:
    """Require that two versions, if they are such by the policy, have the order that python-debian gives them."""
    if not all(len(text) <= _LONGEST and _ORDERED.fullmatch(text) and text[-1] != "-" for text in (one, other)):
        return
    mine, its = NativeVersion(one), NativeVersion(other)
    theirs = (mine > its) - (mine < its)
    require(order == theirs, f"the order of {one!r} and {other!r} is {order}, python-debian has {theirs}")


def compare_relations(choices: Iterable[Alternatives], field: str) -> None:
    """Require that a field of relations, if it is one by the policy, has the packages and versions of python-debian."""
    if len(field) > _LONGEST or not _FIELD.fullmatch(field):
        return
    own = [[(one.package, one.operator, one.version) for one in choice.relations] for choice in choices]
    theirs = [
        [(one["name"], *(one["version"] or ("", ""))) for one in relations]
        for relations in PkgRelation.parse_relations(field)
    ]
    require(own == theirs, f"{own}, python-debian has {theirs}")
