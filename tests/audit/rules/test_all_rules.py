"""The rules as a whole: each has a breach, a row in the documentation, and a name of words."""

from __future__ import annotations

import re

from rocwheel.audit.finding import Severity
from rocwheel.audit.rules import ALL_RULES
from scripts.site_hooks import with_rules
from tests.audit.all_breaches import ALL_BREACHES
from tests.support.breaches import one
from tests.support.places import ROOT
from tests.support.trees import find, library


def test_every_rule_has_a_breach_in_these_tests() -> None:
    assert set(ALL_BREACHES) == {rule.name for rule in ALL_RULES}


def test_findings_are_sorted_by_severity() -> None:
    audited = one(library("demo/a.so", runpath="/opt/rocm/lib", executable_stack=True, build_id=None))
    assert [finding.severity for finding in find(audited)] == [Severity.ERROR, Severity.WARNING, Severity.NOTE]


def test_the_documentation_lists_every_rule_once_with_an_anchor() -> None:
    page = with_rules((ROOT / "docs/audit-rules.md").read_text())
    shown = re.findall(r'^\| <a id="([a-z-]+)"></a>`\1` \| (\w+) \|', page, re.MULTILINE)
    assert sorted(shown) == sorted((rule.name, rule.severity.value) for rule in ALL_RULES)


def test_rule_names_are_lowercase_words_with_hyphens() -> None:
    assert all(rule.name.replace("-", "").isalpha() and rule.name == rule.name.lower() for rule in ALL_RULES)
