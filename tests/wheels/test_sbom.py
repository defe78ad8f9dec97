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


def test_a_bill_follows_the_published_schema() -> None:
    assert VALIDATOR.validate_str(render_bill(BILL).decode()) is None


def test_a_bill_names_what_a_distribution_is_made_of() -> None:
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
def test_packages_of_any_supplier_and_of_none_are_named(url: str) -> None:
    bill = BillOfMaterials(SUBJECT, (ARTIFACT, BillItem("c", "x", package_url=url)), 0)
    text = render_bill(bill).decode()
    assert VALIDATOR.validate_str(text) is None
    assert next(one for one in json.loads(text)["components"] if one["bom-ref"] == "c")["purl"] == url


@pytest.mark.parametrize("url", ["nonsense", "pkg:", "pkg:deb"])
def test_a_package_url_that_can_not_be_read_is_left_out(url: str) -> None:
    bill = BillOfMaterials(SUBJECT, (ARTIFACT, BillItem("c", "x", package_url=url)), 0)
    assert "purl" not in next(one for one in json.loads(render_bill(bill))["components"] if one["bom-ref"] == "c")


@settings(max_examples=examples(30), deadline=None)
@given(st.text(min_size=1), st.text(), st.text(min_size=1))
def test_any_text_gives_a_bill_of_the_schema(name: str, version: str, path: str) -> None:
    bill = BillOfMaterials(SUBJECT, (ARTIFACT, BillItem("c", name, version, license_files=(path,))), 0)
    text = render_bill(bill).decode()
    assert VALIDATOR.validate_str(text) is None
    assert name in {one["name"] for one in json.loads(text)["components"]}


def test_a_promoted_bill_has_the_new_version_of_the_distribution_alone() -> None:
    before = render_bill(BILL)
    after = promoted_bill(before, "7.0.0rc1", "7.0.0", "sboms/rocwheel.cdx.json")
    assert VALIDATOR.validate_str(after.decode()) is None
    assert b"rc1" not in after
    one, other = json.loads(before), json.loads(after)
    assert other["components"] == one["components"]
    assert other["metadata"]["component"]["version"] == "7.0.0"
    assert {"ref": "pkg:pypi/rocm-sdk-core@7.0.0", "dependsOn": ["a"]} in other["dependencies"]
    assert uuid.UUID(other["serialNumber"]) != uuid.UUID(one["serialNumber"])


def test_a_bill_of_another_version_stays_as_it_is() -> None:
    before = render_bill(BILL)
    assert promoted_bill(before, "6.0", "7.0.0", "x") == before


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"metadata": {"component": []}}', b'{"metadata": 1}', b"\xff"])
def test_what_is_no_bill_is_refused(data: bytes) -> None:
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


def test_the_wheel_that_was_changed_is_an_ancestor_with_its_record(tmp_path: Path) -> None:
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


def test_a_second_change_keeps_what_the_first_one_was(tmp_path: Path) -> None:
    once = changed(tmp_path / "one", render_bill(CHANGED_BILL_BILL), "first")[SBOM_NAME]
    pedigree = parsed(changed(tmp_path / "two", once, "second"))["metadata"]["component"]["pedigree"]
    assert (pedigree["notes"], pedigree["ancestors"][0]["pedigree"]["notes"]) == ("second", "first")


def test_a_distribution_of_another_name_is_named_and_made_of_the_same(tmp_path: Path) -> None:
    bill = parsed(changed(tmp_path, render_bill(CHANGED_BILL_BILL), name="rocm-x-device-gfx942"))
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


UNLICENSED_SUBJECT = BillItem("s", "rocm-sdk-core", made_of=("a",))
UNLICENSED_ARTIFACT = BillItem(
    "a", "base_lib_generic", sha256="0" * 64, properties={"rocwheel:files": "3"}, made_of=("b", "c")
)
PACKAGE = BillItem("p", "librocm-core1", package_url="pkg:deb/debian/librocm-core1@1?arch=amd64")
WITH_TEXT = BillItem("b", "rocm-core", license_files=("share/doc/rocm-core/LICENSE.md",))
WITHOUT = BillItem("c", "rocm_smi_lib", license="MIT")


def test_projects_without_a_text_are_found_and_artifacts_and_packages_need_none() -> None:
    bill = render_bill(BillOfMaterials(UNLICENSED_SUBJECT, (UNLICENSED_ARTIFACT, PACKAGE, WITH_TEXT, WITHOUT), 0))
    assert find_unlicensed(bill, "x") == ("rocm_smi_lib",)


def test_an_artifact_that_splitting_made_needs_no_text() -> None:
    made = BillItem("rand_lib_gfx1030", "rand_lib_gfx1030")
    project = BillItem("unsorted/", "unsorted")
    subject = BillItem("s", "rocm-sdk-libraries", made_of=("rand_lib_gfx1030", "unsorted/"))
    bill = render_bill(BillOfMaterials(subject, (made, project), 0))
    assert find_unlicensed(bill, "x") == ("unsorted",)


def test_a_bill_of_nothing_lacks_nothing() -> None:
    assert find_unlicensed(b"{}", "x") == ()


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b'{"components": 3}', b'{"components": [{}]}', b"[" * 100_000])
def test_what_is_no_bill_is_refused_of_unlicensed(data: bytes) -> None:
    with pytest.raises(InputError, match="x: isn't a bill of materials"):
        find_unlicensed(data, "x")


def test_names_with_markup_stay_text() -> None:
    data = json.dumps({"components": [{"name": "<script>\u0000"}]}).encode()
    assert find_unlicensed(data, "x") == ("<script>\x00",)
