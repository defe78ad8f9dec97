"""Groups findings for display: findings of one rule with the same text about many files become a single line."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.finding import Finding, Severity
from rocwheel.audit.rules import ALL_RULES
from rocwheel.audit.rules.needed_libraries import NOT_PROVIDED
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Line(msgspec.Struct, frozen=True):
    """The text of one finding, or of several findings that differ only in their files."""

    text: str
    findings: tuple[Finding, ...]
    remedy: str


class Group(msgspec.Struct, frozen=True):
    """The lines for one rule, severity, and remedy. Lines that cover the most files come first."""

    severity: Severity
    rule: str
    remedy: str
    lines: tuple[Line, ...]


def group_findings(findings: Iterable[Finding]) -> list[Group]:
    """Return the findings in groups: errors first, and then sorted by rule."""
    by_rule: dict[tuple[Severity, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        by_rule[finding.severity, finding.rule].append(finding)
    severities = list(Severity)
    ordered = sorted(by_rule, key=lambda kind: (severities.index(kind[0]), kind[1]))
    return [group for severity, rule in ordered for group in _groups(severity, rule, by_rule[severity, rule])]


_MOST_REMEDIES = 3
"""The maximum number of different remedies for a rule. If there are more, the rule's own remedy replaces them."""


def _groups(severity: Severity, rule: str, findings: Iterable[Finding]) -> list[Group]:
    general = next(one.remedy for one in ALL_RULES if one.name == rule)
    alike: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        alike[_subject(finding)].append(finding)
    if rule in _ON_FOLDERS and len(alike) > _MOST_FOLDERS:
        alike = {rule: [finding for group in alike.values() for finding in group]}
    lines = sorted((_line(group, general) for group in alike.values()), key=_rank)
    by_remedy: dict[str, list[Line]] = defaultdict(list)
    is_general = len({line.remedy for line in lines}) > _MOST_REMEDIES
    for line in lines:
        by_remedy[general if is_general else line.remedy].append(line)
    return [Group(severity, rule, remedy, tuple(_brief(group))) for remedy, group in by_remedy.items()]


def _rank(line: Line) -> tuple[int, str]:
    return -len(line.findings), line.text


_ON_LIBRARIES = frozenset({"unresolved-library", "unreachable-library", "inherited-run-path", "unresolved-dlopen"})
"""Rules whose findings have a library's name as their first fact."""

_MOST_FOLDERS = 3
_ON_FOLDERS = {
    "run-path-absolute": "search absolute folders on the host, such as {}",
    "run-path-build-folder": "search folders on the build machine, such as {}",
    "run-path-dead": "search folders that can't exist after installation, such as {}",
    "run-path-eaten-origin": "have entries from which a shell or make has removed $ORIGIN, such as {}",
    "run-path-relative": "search folders relative to the working folder of the process, such as {}",
    "run-path-repeated": "list folders more than once, such as {}",
    "run-path-wrong-depth": "have entries for a different folder depth, such as {}",
}
"""Rules about run paths, with the text for files that list many folders. The first fact of a finding is a folder."""


def _subject(finding: Finding) -> str:
    """Return the key that all findings on one line share."""
    is_on_library = finding.rule in _ON_LIBRARIES and finding.path
    return finding.facts[0] if is_on_library and finding.facts else finding.found


def _line(findings: Sequence[Finding], general: str) -> Line:
    remedies = {finding.remedy for finding in findings}
    remedy = remedies.pop() if len(remedies) == 1 else general
    files = {finding.file for finding in findings}
    if len(files) == 1:
        return Line(_sentence(findings[0].file, _shortened(findings[0].found)), tuple(findings), remedy)
    noun = "file" if any(finding.path for finding in findings) else "package"
    who, rule = count(len(files), noun), findings[0].rule
    if rule in _ON_FOLDERS and len({finding.found for finding in findings}) > 1:
        folders = Counter(fact for finding in findings for fact in finding.facts)
        folder = min(folders, key=lambda one: (-folders[one], one))
        return Line(f"{who} {_ON_FOLDERS[rule].format(repr(folder))}", tuple(findings), remedy)
    texts = Counter(_shortened(_HOSTS.sub("", _THROUGH.sub("", finding.found))) for finding in findings)
    text = min(texts, key=lambda one: (-texts[one], one))
    return Line(_sentence(who, in_plural(text)), tuple(findings), remedy)


def _sentence(who: str, found: str) -> str:
    return f"{who}: {found}" if found[:1].isdigit() else f"{who} {found}"


_THROUGH = re.compile(r"^loads \S+, which ")
_HOSTS = re.compile(r" \(the file finds the library only on hosts that have it in .*\)")


def _shortened(found: str) -> str:
    return found.replace(f", but {NOT_PROVIDED}", ", which nothing provides")


def _brief(lines: Iterable[Line]) -> Iterable[Line]:
    """Yield lines. If the text after the semicolon is the same as on the previous line, omit it."""
    last = ""
    for line in lines:
        text, mark, rest = line.text.partition("; ")
        yield msgspec.structs.replace(line, text=text) if mark and rest == last else line
        last = rest


_IRREGULAR = {"has": "have", "is": "are", "was": "were", "does": "do", "doesn't": "don't", "carries": "carry"}
_SIBILANT = re.compile(r"(?<=x)es$|(?<=ss|ch|sh)es$")
_ARTICLE = re.compile(r"^an? (\w+)")
_OWN = re.compile(r"(?<!but )\bits\b")


def in_plural(found: str) -> str:
    """Return the text about one file in the plural form, to complete a sentence about several files.

    >>> in_plural("needs liba.so, but its run path doesn't lead there")
    "need liba.so, but their run paths don't lead there"
    """
    if found[:1].isdigit():
        return found
    verb, space, rest = found.partition(" ")
    plain = _SIBILANT.sub("", verb)
    verb = _IRREGULAR.get(verb) or (plain if plain != verb else verb.removesuffix("s"))
    rest = rest.replace("its run path doesn't lead", "their run paths don't lead")
    rest = _ARTICLE.sub(r"\1s", rest) if verb == "are" else rest
    return f"{verb}{space}{_OWN.sub('their', rest)}"
