"""A finding: the broken rule, the file, the evidence, and the remedy."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from rocwheel.audit.subject import Subject


class Severity(str, enum.Enum):
    """The weight of a finding. An error makes the audit fail."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Evidence(msgspec.Struct, frozen=True):
    """One breach of a rule: the file or distribution, the text, and a remedy if the rule's remedy doesn't fit.

    ``found`` completes a sentence that begins with the file. ``facts`` tell this breach apart from other breaches of
    the rule in the same file, for example with the name of a library. Facts are data rather than prose, and contain no
    version of another package.
    """

    file: str
    found: str
    remedy: str = ""
    facts: tuple[str, ...] = ()
    severity: Severity | None = None
    """The severity of this breach, if it differs from the rule's."""


class Rule(msgspec.Struct, frozen=True):
    """A rule: its stable name, its demand, the remedy for a breach, and the function that finds breaches."""

    name: str
    severity: Severity
    demand: str
    remedy: str
    check: Callable[["Subject"], Iterator[Evidence]]


class Finding(msgspec.Struct, frozen=True):
    """A breach of a rule, as the audit reports it."""

    rule: str
    severity: Severity
    file: str
    """Wheel and member (``a.whl!b/c.so``), a path, or a distribution's label."""
    found: str
    remedy: str
    distribution: str = ""
    """The name of the distribution; empty for a file that belongs to no distribution."""
    path: str = ""
    """The file's path in site-packages; empty for a distribution as a whole."""
    fingerprint: str = ""
    """A hash that stays the same across runs, machines, and package versions (`fingerprint`)."""
    facts: tuple[str, ...] = ()
    """The facts of the evidence: the details of ``found`` as data."""


def fingerprint(rule: str, distribution: str, path: str, facts: Iterable[str]) -> str:
    """Return 32 hexadecimal digits for a breach. The arguments must contain no version and no path on a disk."""
    joined = "\0".join([rule, distribution, path, *facts])
    return hashlib.sha256(joined.encode(errors="surrogateescape")).hexdigest()[:32]


def as_unicode(text: str) -> str:
    r"""Return a text for JSON, with ``\xNN`` for each byte of a file name that is not UTF-8."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")
