"""Tests of `rocwheel.wheels.sbom`."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.wheels.render_sbom import render_bill
from rocwheel.wheels.sbom import (
    SBOM_NAME,
    BillItem,
    BillOfMaterials,
    change_notes,
    changed_bill,
    find_unlicensed,
    promoted_bill,
)
from rocwheel.wheels.zip_directory import read_directory
from tests.support.example_counts import examples
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path


SUBJECT = BillItem(
    "pkg:pypi/rocm-sdk-core@7.0.0rc1",
    "rocm-sdk-core",
    "7.0.0rc1",
    "pkg:pypi/rocm-sdk-core@7.0.0rc1",
    "MIT",
    made_of=("a",),
)
ARTIFACT = BillItem("a", "base_lib_generic", sha256="0" * 64, properties={"rocwheel:files": "3"}, made_of=("c",))
COMPONENT = BillItem(
    "c", "rocm-core", "abc", "pkg:github/rocm/rocm-core@abc", "MIT OR 0BSD", ("share/doc/a b/LICENSE",)
)
BILL = BillOfMaterials(SUBJECT, (ARTIFACT, COMPONENT), 315532800)

VALIDATOR = JsonStrictValidator(SchemaVersion.V1_6)


def test_an_sbom_conforms_to_the_published_schema() -> None:
    assert VALIDATOR.validate_str(render_bill(BILL).decode()) is None


def test_an_sbom_lists_the_components_of_a_distribution() -> None:
    bill = json.loads(render_bill(BILL))
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/rocm-sdk-core@7.0.0rc1"
    assert bill["metadata"]["timestamp"] == "1980-01-01T00:00:00+00:00"
    assert bill["components"] == [
        {
            "bom-ref": "a",
            "hashes": [{"alg": "SHA-256", "content": "0" * 64}],
            "name": "base_lib_generic",
            "properties": [{"name": "rocwheel:files", "value": "3"}],
            "type": "library",
        },
        {
            "bom-ref": "c",
            "externalReferences": [{"type": "license", "url": "../licenses/share/doc/a%20b/LICENSE"}],
            "licenses": [{"expression": "MIT OR 0BSD"}],
            "name": "rocm-core",
            "purl": "pkg:github/rocm/rocm-core@abc",
            "type": "library",
            "version": "abc",
        },
    ]
    assert {"ref": "a", "dependsOn": ["c"]} in bill["dependencies"]


def test_the_same_values_give_the_same_bytes() -> None:
    assert render_bill(BILL) == render_bill(BILL)


@pytest.mark.parametrize(
    "url",
    [
        "pkg:deb/amd/rocblas@4.0.0.60002-115~22.04?arch=amd64",
        "pkg:deb/rocblas@4.0?arch=amd64",
        "pkg:deb/me%20%26%20co/a@1?arch=amd64",
    ],
)
def test_package_urls_with_any_supplier_or_without_a_supplier_are_kept(url: str) -> None:
    bill = BillOfMaterials(SUBJECT, (ARTIFACT, BillItem("c", "x", package_url=url)), 0)
    text = render_bill(bill).decode()
    assert VALIDATOR.validate_str(text) is None
    assert next(one for one in json.loads(text)["components"] if one["bom-ref"] == "c")["purl"] == url


@pytest.mark.parametrize("url", ["nonsense", "pkg:", "pkg:deb"])
def test_an_unreadable_package_url_is_left_out(url: str) -> None:
    bill = BillOfMaterials(SUBJECT, (ARTIFACT, BillItem("c", "x", package_url=url)), 0)
    assert "purl" not in next(one for one in json.loads(render_bill(bill))["components"] if one["bom-ref"] == "c")


@settings(max_examples=examples(30), deadline=None)
@given(st.text(min_size=1), st.text(), st.text(min_size=1))
def test_any_text_gives_an_sbom_that_conforms_to_the_schema(name: str, version: str, path: str) -> None:
    bill = BillOfMaterials(SUBJECT, (ARTIFACT, BillItem("c", name, version, license_files=(path,))), 0)
    text = render_bill(bill).decode()
    assert VALIDATOR.validate_str(text) is None
    assert name in {one["name"] for one in json.loads(text)["components"]}


def test_a_promoted_sbom_changes_only_the_version_of_the_distribution() -> None:
    before = render_bill(BILL)
    after = promoted_bill(before, "7.0.0rc1", "7.0.0", "sboms/rocwheel.cdx.json")
    assert VALIDATOR.validate_str(after.decode()) is None
    assert b"rc1" not in after
    one, other = json.loads(before), json.loads(after)
    assert other["components"] == one["components"]
    assert other["metadata"]["component"]["version"] == "7.0.0"
    assert {"ref": "pkg:pypi/rocm-sdk-core@7.0.0", "dependsOn": ["a"]} in other["dependencies"]
    assert uuid.UUID(other["serialNumber"]) != uuid.UUID(one["serialNumber"])


def test_an_sbom_of_another_version_is_unchanged() -> None:
    before = render_bill(BILL)
    assert promoted_bill(before, "6.0", "7.0.0", "x") == before


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"metadata": {"component": []}}', b'{"metadata": 1}', b"\xff"])
def test_an_invalid_sbom_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="sboms/x: isn't a bill of materials"):
        promoted_bill(data, "1", "2", "sboms/x")


INFO = "rocm_x-1.0.dist-info"
URL = "pkg:pypi/rocm-x@1.0"
CHANGED_BILL_ARTIFACT = BillItem("a", "base_lib_generic", sha256="0" * 64)
CHANGED_BILL_BILL = BillOfMaterials(
    BillItem(URL, "rocm-x", "1.0", URL, "MIT", made_of=("a",)), (CHANGED_BILL_ARTIFACT,), 315532800
)


def changed(folder: Path, data: bytes | None, notes: str = "changed", name: str = "") -> dict[str, bytes]:
    bills = {} if data is None else {f"{INFO}/{SBOM_NAME}": data}
    wheel = make_wheel(folder, "rocm-x", {"x.py": b"", **bills})
    return changed_bill(read_directory(wheel), INFO, notes, name=name)


def parsed(found: dict[str, bytes]) -> dict[str, Any]:
    assert VALIDATOR.validate_str(found[SBOM_NAME].decode()) is None
    bill: dict[str, Any] = json.loads(found[SBOM_NAME])
    return bill


def test_the_original_wheel_is_an_ancestor_with_the_hash_of_its_record(tmp_path: Path) -> None:
    bill = parsed(changed(tmp_path, render_bill(CHANGED_BILL_BILL), "rocwheel repair: changed x.so"))
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
    assert bill["components"] == json.loads(render_bill(CHANGED_BILL_BILL))["components"]


def test_a_second_change_keeps_the_record_of_the_first(tmp_path: Path) -> None:
    once = changed(tmp_path / "one", render_bill(CHANGED_BILL_BILL), "first")[SBOM_NAME]
    pedigree = parsed(changed(tmp_path / "two", once, "second"))["metadata"]["component"]["pedigree"]
    assert (pedigree["notes"], pedigree["ancestors"][0]["pedigree"]["notes"]) == ("second", "first")


def test_a_renamed_distribution_has_its_new_name_and_the_same_components(tmp_path: Path) -> None:
    bill = parsed(changed(tmp_path, render_bill(CHANGED_BILL_BILL), name="rocm-x-device-gfx942"))
    own, url = bill["metadata"]["component"], "pkg:pypi/rocm-x-device-gfx942@1.0"
    assert (own["name"], own["version"], own["purl"], own["bom-ref"]) == ("rocm-x-device-gfx942", "1.0", url, url)
    assert own["pedigree"]["ancestors"][0]["name"] == "rocm-x"
    assert {"ref": url, "dependsOn": ["a"]} in bill["dependencies"]


@pytest.mark.parametrize("data", [b"no bill", b"{}", b'{"metadata": {"component": {"name": "x"}}}'])
def test_an_invalid_sbom_is_kept_for_the_audit_but_dropped_from_a_renamed_wheel(tmp_path: Path, data: bytes) -> None:
    assert changed(tmp_path, data) == {SBOM_NAME: data}
    assert changed(tmp_path, data, name="other") == {}


def test_a_wheel_without_an_sbom_gets_no_sbom(tmp_path: Path) -> None:
    assert changed(tmp_path, None) == {}


def test_notes_list_at_most_twenty_files() -> None:
    notes = change_notes("rocwheel device prune", {"left out": [f"f{number}" for number in range(22)], "added": []})
    assert notes.startswith("rocwheel device prune: left out f0, f1, ")
    assert notes.endswith(", f19 and 2 more")


UNLICENSED_SUBJECT = BillItem("s", "rocm-sdk-core", made_of=("a",))
UNLICENSED_ARTIFACT = BillItem(
    "a", "base_lib_generic", sha256="0" * 64, properties={"rocwheel:files": "3"}, made_of=("b", "c")
)
PACKAGE = BillItem("p", "librocm-core1", package_url="pkg:deb/debian/librocm-core1@1?arch=amd64")
WITH_TEXT = BillItem("b", "rocm-core", license_files=("share/doc/rocm-core/LICENSE.md",))
WITHOUT = BillItem("c", "rocm_smi_lib", license="MIT")


def test_only_projects_need_a_license_text_and_missing_texts_are_found() -> None:
    bill = render_bill(BillOfMaterials(UNLICENSED_SUBJECT, (UNLICENSED_ARTIFACT, PACKAGE, WITH_TEXT, WITHOUT), 0))
    assert find_unlicensed(bill, "x") == ("rocm_smi_lib",)


def test_an_artifact_made_by_splitting_needs_no_license_text() -> None:
    made = BillItem("rand_lib_gfx1030", "rand_lib_gfx1030")
    project = BillItem("unsorted/", "unsorted")
    subject = BillItem("s", "rocm-sdk-libraries", made_of=("rand_lib_gfx1030", "unsorted/"))
    bill = render_bill(BillOfMaterials(subject, (made, project), 0))
    assert find_unlicensed(bill, "x") == ("unsorted",)


def test_an_empty_sbom_lacks_no_license_text() -> None:
    assert find_unlicensed(b"{}", "x") == ()


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b'{"components": 3}', b'{"components": [{}]}', b"[" * 100_000])
def test_an_invalid_sbom_is_refused_when_finding_missing_license_texts(data: bytes) -> None:
    with pytest.raises(InputError, match="x: isn't a bill of materials"):
        find_unlicensed(data, "x")


def test_names_with_markup_are_plain_text() -> None:
    data = json.dumps({"components": [{"name": "<script>\u0000"}]}).encode()
    assert find_unlicensed(data, "x") == ("<script>\x00",)
