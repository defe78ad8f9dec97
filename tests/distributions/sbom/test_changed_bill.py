"""Bills of materials of wheels that were made from finished ones."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from rocwheel.distributions.sbom.bill import SBOM_NAME, BillItem, BillOfMaterials
from rocwheel.distributions.sbom.changed_bill import change_notes, changed_bill
from rocwheel.distributions.sbom.render import render_bill
from rocwheel.distributions.zip.directory import read_directory
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

INFO = "rocm_x-1.0.dist-info"
URL = "pkg:pypi/rocm-x@1.0"
ARTIFACT = BillItem("a", "base_lib_generic", sha256="0" * 64)
BILL = BillOfMaterials(BillItem(URL, "rocm-x", "1.0", URL, "MIT", made_of=("a",)), (ARTIFACT,), 315532800)
VALIDATOR = JsonStrictValidator(SchemaVersion.V1_6)


def changed(folder: Path, data: bytes | None, notes: str = "changed", name: str = "") -> dict[str, bytes]:
    bills = {} if data is None else {f"{INFO}/{SBOM_NAME}": data}
    wheel = make_wheel(folder, "rocm-x", {"x.py": b"", **bills})
    return changed_bill(read_directory(wheel), INFO, notes, name=name)


def parsed(found: dict[str, bytes]) -> dict[str, Any]:
    assert VALIDATOR.validate_str(found[SBOM_NAME].decode()) is None
    bill: dict[str, Any] = json.loads(found[SBOM_NAME])
    return bill


def test_the_wheel_that_was_changed_is_an_ancestor_with_its_record(tmp_path: Path) -> None:
    bill = parsed(changed(tmp_path, render_bill(BILL), "rocwheel repair: changed x.so"))
    [wheel] = tmp_path.glob("*.whl")
    record = hashlib.sha256(members(wheel)[f"{INFO}/RECORD"]).hexdigest()
    assert bill["metadata"]["component"]["pedigree"] == {
        "ancestors": [
            {
                "licenses": [{"expression": "MIT"}],
                "name": "rocm-x",
                "properties": [{"name": "rocwheel:record-sha256", "value": record}],
                "purl": URL,
                "type": "library",
                "version": "1.0",
            }
        ],
        "notes": "rocwheel repair: changed x.so",
    }
    assert bill["components"] == json.loads(render_bill(BILL))["components"]


def test_a_second_change_keeps_what_the_first_one_was(tmp_path: Path) -> None:
    once = changed(tmp_path / "one", render_bill(BILL), "first")[SBOM_NAME]
    pedigree = parsed(changed(tmp_path / "two", once, "second"))["metadata"]["component"]["pedigree"]
    assert (pedigree["notes"], pedigree["ancestors"][0]["pedigree"]["notes"]) == ("second", "first")


def test_a_distribution_of_another_name_is_named_and_made_of_the_same(tmp_path: Path) -> None:
    bill = parsed(changed(tmp_path, render_bill(BILL), name="rocm-x-device-gfx942"))
    own, url = bill["metadata"]["component"], "pkg:pypi/rocm-x-device-gfx942@1.0"
    assert (own["name"], own["version"], own["purl"], own["bom-ref"]) == ("rocm-x-device-gfx942", "1.0", url, url)
    assert own["pedigree"]["ancestors"][0]["name"] == "rocm-x"
    assert {"ref": url, "dependsOn": ["a"]} in bill["dependencies"]


@pytest.mark.parametrize("data", [b"no bill", b"{}", b'{"metadata": {"component": {"name": "x"}}}'])
def test_what_is_no_bill_stays_for_the_audit_and_is_none_of_another_name(tmp_path: Path, data: bytes) -> None:
    assert changed(tmp_path, data) == {SBOM_NAME: data}
    assert changed(tmp_path, data, name="other") == {}


def test_a_wheel_without_a_bill_gets_none(tmp_path: Path) -> None:
    assert changed(tmp_path, None) == {}


def test_notes_name_twenty_files() -> None:
    notes = change_notes("rocwheel device prune", {"left out": [f"f{number}" for number in range(22)], "added": []})
    assert notes.startswith("rocwheel device prune: left out f0, f1, ")
    assert notes.endswith(", f19 and 2 more")
