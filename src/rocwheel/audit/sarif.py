"""Findings as SARIF 2.1.0 (OASIS), for code scanning services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import rocwheel
from rocwheel.audit.finding import as_unicode
from rocwheel.audit.rules import ALL_RULES
from rocwheel.core.remote_placeholders import place_of
from rocwheel.stores.urls import is_url

if TYPE_CHECKING:
    from rocwheel.audit.audit import AuditReport
    from rocwheel.audit.finding import Finding, Rule

__all__ = ["to_sarif"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_PAGE = "https://rocwheel.readthedocs.io/audit/"


def to_sarif(report: AuditReport) -> dict[str, Any]:
    """Return one run with the checked rules and a result for each finding; places are URLs, relative URIs, or paths."""
    rules = [rule for rule in ALL_RULES if rule.name in report.rules]
    index = {rule.name: number for number, rule in enumerate(rules)}
    driver = {
        "name": "rocwheel",
        "version": rocwheel.__version__,
        "informationUri": _PAGE,
        "rules": [_rule(rule) for rule in rules],
    }
    results = [_result(finding, index[finding.rule]) for finding in report.findings]
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.demand},
        "help": {"text": rule.remedy},
        "helpUri": f"{_PAGE}#{rule.name}",
        "defaultConfiguration": {"level": rule.severity.value},
    }


def _split(file: str) -> tuple[str, str]:
    """Return a wheel and its member, or a path alone: folders may have any name."""
    stem, mark, member = file.partition(".whl!")
    return (f"{stem}.whl", member) if mark else (file, "")


def _result(finding: Finding, index: int) -> dict[str, Any]:
    archive, member = _split(finding.file)
    logical = [{"fullyQualifiedName": as_unicode(member), "kind": "member"}] if member else []
    place = place_of(archive)
    uri = place if is_url(place) else quote(place, errors="surrogateescape")
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.severity.value,
        "message": {"text": as_unicode(f"{member or archive} {finding.found}. {finding.remedy}")},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}}, "logicalLocations": logical}],
        "partialFingerprints": {"rocwheel/3": finding.fingerprint},
    }
