"""Which packages a Debian package needs: its relation fields, deb-control(5), and versions, deb-version(7)."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Choice", "Relation", "compare_versions", "parse_choices"]

_RELATION = re.compile(r"\s*([^\s(\[<:]+)(?::[a-z0-9-]+)?\s*(?:\(\s*(<<|<=|=|>=|>>|<|>)\s*([^)\s]+)\s*\))?")
_ACCEPTED = {"<<": (-1,), "<=": (-1, 0), "<": (-1, 0), "=": (0,), ">=": (0, 1), ">": (0, 1), ">>": (1,)}
"""Per operator, which results of a comparison fit it; ``<`` and ``>`` are old names of ``<=`` and ``>=``."""

_Run = tuple[tuple[int, ...], tuple[int, str]]
"""Ranks of characters, and a number as its length and its digits: numbers may be longer than Python converts."""
_NOTHING: _Run = ((0,), (0, ""))


class Relation(msgspec.Struct, frozen=True):
    """A package of a relation field, such as ``libc6 (>= 2.38)``."""

    package: str
    operator: str = ""
    """Empty when any version will do."""
    version: str = ""

    def __str__(self) -> str:
        return f"{self.package} ({self.operator} {self.version})" if self.operator else self.package

    def accepts(self, version: str) -> bool:
        """Return whether a version of the package fits."""
        return not self.operator or compare_versions(version, self.version) in _ACCEPTED[self.operator]

    def is_met_by(self, package: str, version: str, provides: Iterable[Choice]) -> bool:
        """Return whether a package is the one that is asked for, or provides it.

        What it provides without a version meets no relation that asks for one.
        """
        if package == self.package and self.accepts(version):
            return True
        offers = (offer for choice in provides for offer in choice.relations if offer.package == self.package)
        return any(not self.operator or (offer.operator == "=" and self.accepts(offer.version)) for offer in offers)


class Choice(msgspec.Struct, frozen=True):
    """An entry of a relation field: packages of which any one will do."""

    relations: tuple[Relation, ...]

    def __str__(self) -> str:
        return " | ".join(map(str, self.relations))

    @property
    def names(self) -> str:
        """The packages, whatever their versions."""
        return " | ".join(relation.package for relation in self.relations)


def parse_choices(field: str) -> tuple[Choice, ...]:
    """Read a relation field: ``a (>= 1), b | c:any``. What is not a relation is left out."""
    choices = (Choice(tuple(_relations(entry.split("|")))) for entry in field.split(","))
    return tuple(choice for choice in choices if choice.relations)


def _relations(texts: Iterable[str]) -> Iterable[Relation]:
    for text in texts:
        if match := _RELATION.match(text):
            yield Relation(match[1], match[2] or "", match[3] or "")


def compare_versions(one: str, other: str) -> int:
    """Return -1, 0 or 1 as one version is lower than, equal to or higher than another, by the rules of dpkg.

    The epoch counts first, as a number, then what is before the last hyphen, then what is behind it.
    """
    for mine, its in zip(_version_parts(one), _version_parts(other), strict=True):
        if result := _compare_part(mine, its):
            return result
    return 0


def _version_parts(version: str) -> tuple[str, str, str]:
    epoch, colon, rest = version.partition(":")
    upstream, _, revision = (rest if colon else version).rpartition("-")
    return (epoch if colon else "0", upstream, revision) if upstream else (epoch if colon else "0", revision, "")


def _compare_part(one: str, other: str) -> int:
    """Compare runs of digits as numbers and what is between them by the order of its characters, alternately."""
    pairs = zip_longest(_runs(one), _runs(other), fillvalue=_NOTHING)
    return next(((mine > its) - (mine < its) for mine, its in pairs if mine != its), 0)


def _runs(part: str) -> list[_Run]:
    """Split ``1.2~a`` into pairs of what is not digits, as ranks, and the number that follows it."""
    found = re.findall(r"([^0-9]*)0*([0-9]*)", part)
    return [((*map(_rank, text), 0), (len(digits), digits)) for text, digits in found]


def _rank(character: str) -> int:
    """Return the rank of a character: a tilde before the end of the text, which is 0, letters before all others."""
    if character == "~":
        return -1
    return ord(character) if character.isascii() and character.isalpha() else ord(character) + 256
