"""Applies the selected rules to environments, and counts known findings separately."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.finding import Finding, Severity, fingerprint
from rocwheel.audit.rules import ALL_RULES
from rocwheel.audit.subject import Subject
from rocwheel.core.errors import InputError
from rocwheel.core.shown_names import shown
from rocwheel.environment.windows_files import WindowsFiles

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from rocwheel.audit.finding import Evidence, Rule
    from rocwheel.audit.settings import AuditSettings
    from rocwheel.environment.tree import Distribution, Environments, Tree

_ORDER = {severity: index for index, severity in enumerate(Severity)}


class AuditReport(msgspec.Struct, frozen=True):
    """The result of an audit. ``known`` is the number of findings that the baseline contains.

    ``idle_patterns`` are the path patterns in the settings that match no file, each with the name of its setting.
    """

    files: int
    libraries: int
    distributions: tuple[str, ...]
    rules: tuple[str, ...]
    findings: tuple[Finding, ...]
    known: int = 0
    idle_patterns: tuple[str, ...] = ()

    @property
    def errors(self) -> int:
        """The number of findings that make the audit fail."""
        return sum(finding.severity is Severity.ERROR for finding in self.findings)


def audit(environments: Environments, settings: AuditSettings, baseline: Collection[str] = ()) -> AuditReport:
    """Check each environment. Findings whose fingerprint is in ``baseline`` are treated as known.

    Raises `InputError` for patterns in ``select``, ``ignore``, and ``per-file-ignore`` that match no rule.
    """
    subjects = (Subject(environment, settings) for environment in environments.each)
    found = dict.fromkeys(finding for subject in subjects for finding in check(subject))
    fresh = [finding for finding in found if finding.fingerprint not in baseline]
    tree = environments.everything
    labels = tuple(owner.label for owner in tree.audited_distributions if owner.label)
    windows = {file.source for environment in environments.each for file, _ in WindowsFiles(environment).audited}
    return AuditReport(
        len(tree.audited),
        len(tree.loadable) + len(windows),
        labels,
        tuple(rule.name for rule in _checked_rules(settings)),
        tuple(sorted(fresh, key=_rank)),
        len(found) - len(fresh),
        settings.idle_patterns({*(file.path for file in tree.files), *labels}),
    )


def check(subject: Subject) -> tuple[Finding, ...]:
    """Return the distinct findings in one environment, errors first.

    Raises `InputError` for patterns in ``select``, ``ignore``, and ``per-file-ignore`` that match no rule.
    """
    check_patterns(subject.settings)
    rules = _checked_rules(subject.settings)
    return tuple(sorted(dict.fromkeys(_breaches(rules, subject)), key=_rank))


def _checked_rules(settings: AuditSettings) -> list[Rule]:
    return [rule for rule in ALL_RULES if settings.is_checked(rule.name)]


def _rank(finding: Finding) -> tuple[int, str, str, str]:
    return _ORDER[finding.severity], finding.rule, finding.file, finding.found


def _breaches(rules: Iterable[Rule], subject: Subject) -> Iterator[Finding]:
    owners = {name: owner for owner in subject.tree.distributions for name in (owner.label, owner.source)}
    for rule in rules:
        for evidence in rule.check(subject):
            file = subject.tree.by_source.get(evidence.file)
            owner = subject.tree.owners.get(file.distribution) if file else owners.get(evidence.file)
            if not subject.settings.is_ignored_at(rule.name, file.path if file else evidence.file):
                yield _finding(rule, evidence, file.path if file else "", owner, subject.tree)


def _finding(rule: Rule, evidence: Evidence, path: str, owner: Distribution | None, tree: Tree) -> Finding:
    name = owner.name if owner else ""
    # Users know the URL. The name of the temporary file is different in every run.
    facts = tuple(map(shown, evidence.facts))
    lasting = fingerprint(rule.name, name, _unversioned(path, tree), (_unversioned(fact, tree) for fact in facts))
    remedy = shown(evidence.remedy or rule.remedy)
    severity = evidence.severity or rule.severity
    return Finding(rule.name, severity, shown(evidence.file), shown(evidence.found), remedy, name, path, lasting, facts)


def _unversioned(text: str, tree: Tree) -> str:
    """Return text without the versions in the names of wheels and metadata folders."""
    for owner in tree.distributions:
        if owner.dist_info:
            text = text.replace(owner.label, owner.name).replace(owner.dist_info, f"{owner.name}.dist-info")
    return text


def check_patterns(settings: AuditSettings) -> None:
    """Raise `InputError` for patterns in ``select``, ``ignore``, and ``per-file-ignore`` that match no rule."""
    names = [rule.name for rule in ALL_RULES]
    at_files = (pattern for patterns in settings.per_file_ignore.values() for pattern in patterns)
    for pattern in (*settings.select, *settings.ignore, *at_files):
        alone = msgspec.structs.replace(settings, select=(pattern,), ignore=())
        if not any(alone.is_checked(name) for name in names):
            found = f"{pattern!r} matches no rule"
            nearest = difflib.get_close_matches(pattern, names, n=3)
            expected = f"a rule such as {', '.join(nearest)}" if nearest else "a rule name, or a pattern for rule names"
            msg = "audit rules"
            raise InputError(msg, found, expected=expected, remedy="To list the rules, run 'rocwheel audit --rules'.")
