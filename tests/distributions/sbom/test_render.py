"""Bills of materials as CycloneDX 1.6, judged by its published schema."""

from __future__ import annotations

import json
import uuid

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.distributions.sbom.bill import BillItem, BillOfMaterials
from rocwheel.distributions.sbom.promoted_bill import promoted_bill
from rocwheel.distributions.sbom.render import render_bill
from tests.support.example_counts import examples

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
    with pytest.raises(InputError, match="sboms/x: is no bill of materials"):
        promoted_bill(data, "1", "2", "sboms/x")
