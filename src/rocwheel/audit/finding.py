"""What a check finds: a rule that is broken, where, by what evidence, and how to repair it."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from rocwheel.audit.subject import Subject


class Severity(str, enum.Enum):
    """How much a finding weighs: an error makes the audit fail."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Evidence(msgspec.Struct, frozen=True):
    """One breach of a rule: the file (or distribution), what was found, and the remedy if it isn't the rule's.

    ``found`` completes a sentence that begins with the file. ``facts`` are what sets this breach apart from others of
    the rule in this file, such as the name of a library: data rather than words, and no version of another package.
    """

    file: str
    found: str
    remedy: str = ""
    facts: tuple[str, ...] = ()
    severity: Severity | None = None
    """How much this breach weighs, if not as much as the rule says."""


class Rule(msgspec.Struct, frozen=True):
    """A rule: its stable name, what it demands, how to repair a breach, and the function that finds breaches."""

    name: str
    severity: Severity
    demand: str
    remedy: str
    check: Callable[["Subject"], Iterator[Evidence]]


class Finding(msgspec.Struct, frozen=True):
    """A breach of a rule, as it is reported."""

    rule: str
    severity: Severity
    file: str
    """Wheel and member (``a.whl!b/c.so``), a path, or a distribution's label."""
    found: str
    remedy: str
    distribution: str = ""
    """The name of the distribution; empty for a file that none owns."""
    path: str = ""
    """The file's path in site-packages; empty for a distribution as a whole."""
    fingerprint: str = ""
    """What stays the same from run to run, from machine to machine and from version to version (`fingerprint`)."""
    facts: tuple[str, ...] = ()
    """The evidence's: what ``found`` says, as data."""


def fingerprint(rule: str, distribution: str, path: str, facts: Iterable[str]) -> str:
    """Return 32 hexadecimal digits for a breach; the arguments must contain no version and no path on a disk."""
    joined = "\0".join([rule, distribution, path, *facts])
    return hashlib.sha256(joined.encode(errors="surrogateescape")).hexdigest()[:32]


def as_unicode(text: str) -> str:
    r"""Return a text with those bytes of file names that are not UTF-8 as ``\xNN``, as JSON can hold it."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")
