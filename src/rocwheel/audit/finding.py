"""Findings of an audit: the violated rule, the file, the evidence, and the remedy."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from rocwheel.audit.subject import Subject


class Severity(str, enum.Enum):
    """The severity of a finding. An error makes the audit fail."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Evidence(msgspec.Struct, frozen=True):
    """A violation of a rule: the file or distribution, the text, and a remedy if the rule's remedy doesn't apply.

    ``found`` completes a sentence whose subject is the file. ``facts`` distinguish this violation from others of the
    same rule in the same file, for example, by the name of a library. Facts are data rather than prose, and don't
    contain versions of other packages.
    """

    file: str
    found: str
    remedy: str = ""
    facts: tuple[str, ...] = ()
    severity: Severity | None = None
    """The severity of this violation, if it differs from the rule's severity."""


class Rule(msgspec.Struct, frozen=True):
    """A rule: its stable name, its requirement, the remedy for a violation, and the function that finds violations."""

    name: str
    severity: Severity
    demand: str
    remedy: str
    check: Callable[["Subject"], Iterator[Evidence]]


class Finding(msgspec.Struct, frozen=True):
    """A violation of a rule, as reported by the audit."""

    rule: str
    severity: Severity
    file: str
    """A wheel and its member (``a.whl!b/c.so``), a path, or a distribution's label."""
    found: str
    remedy: str
    distribution: str = ""
    """The name of the distribution. Empty for a file that belongs to no distribution."""
    path: str = ""
    """The file's path in site-packages. Empty for a finding about an entire distribution."""
    fingerprint: str = ""
    """A hash that stays the same across runs, machines, and package versions (`fingerprint`)."""
    facts: tuple[str, ...] = ()
    """The facts from the evidence: the details of ``found`` as data."""


def fingerprint(rule: str, distribution: str, path: str, facts: Iterable[str]) -> str:
    """Return 32 hexadecimal digits that identify a violation.

    The arguments must not contain versions or paths on disk.
    """
    joined = "\0".join([rule, distribution, path, *facts])
    return hashlib.sha256(joined.encode(errors="surrogateescape")).hexdigest()[:32]


def as_unicode(text: str) -> str:
    r"""Return text for JSON, with ``\xNN`` for each byte in a file name that isn't valid UTF-8."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")
