"""Tests of `rocwheel.audit.report_files`."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import msgspec
import pytest

from rocwheel.audit.audit import audit
from rocwheel.audit.report_files import to_sarif
from rocwheel.audit.rules import ALL_RULES
from rocwheel.audit.settings import AuditSettings
from rocwheel.environment.tree import Tree, split_environments
from tests.audit.all_breaches import ALL_BREACHES
from tests.support.places import CACHE
from tests.support.trees import library, package, tree

SCHEMA = CACHE / "sarif-2.1.0.json"


def sarif(audited: Tree, **settings: Any) -> dict[str, Any]:
    return dict(
        json.loads(msgspec.json.encode(to_sarif(audit(split_environments(audited), AuditSettings(**settings)))))
    )


@pytest.mark.skipif(not SCHEMA.exists(), reason="needs the schema: run scripts/fetch_sarif_schema.sh")
@pytest.mark.parametrize("rule", ALL_BREACHES)
def test_findings_of_every_rule_conform_to_the_sarif_schema(rule: str) -> None:
    breach = ALL_BREACHES[rule]
    document = sarif(breach.audited, **breach.settings)
    jsonschema.Draft4Validator(json.loads(SCHEMA.read_text())).validate(document)
    assert {result["ruleId"] for result in document["runs"][0]["results"]} == {rule}


def test_every_rule_is_described_in_the_sarif_report() -> None:
    rules = sarif(tree((package(), [])))["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [rule.name for rule in ALL_RULES]


def test_a_folder_with_an_exclamation_mark_is_not_a_wheel() -> None:
    file = library("d!x/a.so", runpath="lib")
    (result,) = sarif(Tree((), (file,)), select=("run-path-relative",))["runs"][0]["results"]
    (location,) = result["locations"]
    assert (location["physicalLocation"]["artifactLocation"]["uri"], location["logicalLocations"]) == ("d%21x/a.so", [])
    assert result["message"]["text"].startswith("d!x/a.so searches 'lib' ")


def test_file_locations_are_uris() -> None:
    audited = tree((package(), [library("demo/a.so", runpath="lib")]))
    owner = msgspec.structs.replace(audited.distributions[0], source="my dist/a#1-1.0-py3-none-any.whl")
    files = tuple(msgspec.structs.replace(f, distribution=owner.source, source=f"{owner.source}!{f.path}")
                  for f in audited.files)  # fmt: skip
    (result,) = sarif(Tree((owner,), files), select=("run-path-relative",))["runs"][0]["results"]
    (location,) = result["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "my%20dist/a%231-1.0-py3-none-any.whl"
    assert location["logicalLocations"] == [{"fullyQualifiedName": "demo/a.so", "kind": "member"}]
