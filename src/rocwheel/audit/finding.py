"""What a check finds: a rule that is broken, where, by what evidence, and how to mend it."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from rocwheel.audit.subject import Subject

__all__ = ["Evidence", "Finding", "Rule", "Severity"]


class Severity(str, enum.Enum):
    """How much a finding weighs: an error makes the audit fail."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Evidence(msgspec.Struct, frozen=True):
    """One breach of a rule: the file (or distribution), what was found, and the remedy where it isn't the rule's."""

    file: str
    found: str
    remedy: str = ""


class Rule(msgspec.Struct, frozen=True):
    """A rule: its stable name, what it demands, how to mend a breach, and the function that looks for breaches."""

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

    @property
    def fingerprint(self) -> str:
        """What stays the same from run to run and from machine to machine: rule, place inside the package, evidence."""
        place = self.file.rpartition("/")[2] if "!" not in self.file else self.file.partition("!")[2]
        return hashlib.sha256("\0".join([self.rule, place, self.found]).encode()).hexdigest()[:32]
