"""The audit: every selected rule over one tree, with known findings set apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.finding import Finding, Rule, Severity
from rocwheel.audit.rules import ALL_RULES
from rocwheel.audit.subject import Subject
from rocwheel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection

    from rocwheel.audit.configuration import Configuration
    from rocwheel.audit.tree import Tree

__all__ = ["AuditReport", "audit"]

_ORDER = {severity: index for index, severity in enumerate(Severity)}


class AuditReport(msgspec.Struct, frozen=True):
    """The outcome of an audit; ``known`` counts the findings that the baseline holds."""

    files: int
    libraries: int
    distributions: tuple[str, ...]
    rules: tuple[str, ...]
    findings: tuple[Finding, ...]
    known: int = 0

    @property
    def errors(self) -> int:
        """How many findings make the audit fail."""
        return sum(finding.severity is Severity.ERROR for finding in self.findings)


def audit(tree: Tree, configuration: Configuration, baseline: Collection[str] = ()) -> AuditReport:
    """Check ``tree``; findings whose fingerprint is in ``baseline`` are counted as known.

    Raises `InputError` for patterns in ``select``, ``ignore`` and ``per-file-ignore`` that fit no rule.
    """
    _check_patterns(configuration)
    rules = [rule for rule in ALL_RULES if configuration.is_checked(rule.name)]
    subject = Subject(tree, configuration)
    found = [finding for rule in rules for finding in _breaches(rule, subject)]
    fresh = sorted(
        (finding for finding in found if finding.fingerprint not in baseline),
        key=lambda finding: (_ORDER[finding.severity], finding.rule, finding.file, finding.found),
    )
    labels = tuple(owner.label for owner in tree.audited_distributions if owner.label)
    names = tuple(rule.name for rule in rules)
    return AuditReport(len(tree.audited), len(tree.loadable), labels, names, tuple(fresh), len(found) - len(fresh))


def _breaches(rule: Rule, subject: Subject) -> list[Finding]:
    places = {file.source: file.path for file in subject.tree.audited}
    return [
        Finding(rule.name, rule.severity, evidence.file, evidence.found, evidence.remedy or rule.remedy)
        for evidence in rule.check(subject)
        if not subject.configuration.is_ignored_at(rule.name, places.get(evidence.file, evidence.file))
    ]


def _check_patterns(configuration: Configuration) -> None:
    names = [rule.name for rule in ALL_RULES]
    at_files = (pattern for patterns in configuration.per_file_ignore.values() for pattern in patterns)
    for pattern in (*configuration.select, *configuration.ignore, *at_files):
        alone = msgspec.structs.replace(configuration, select=(pattern,), ignore=())
        if not any(alone.is_checked(name) for name in names):
            found = f"{pattern!r} fits no rule"
            msg = "audit rules"
            raise InputError(msg, found, expected=f"one of {', '.join(names)}")
