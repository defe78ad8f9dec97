"""Which parts of a distribution come without a licence text, by its bill of materials."""

from __future__ import annotations

import json

import pytest

from rocwheel.core.errors import InputError
from rocwheel.distributions.sbom.bill import BillItem, BillOfMaterials
from rocwheel.distributions.sbom.render import render_bill
from rocwheel.distributions.sbom.unlicensed import find_unlicensed

SUBJECT = BillItem("s", "rocm-sdk-core", made_of=("a",))
ARTIFACT = BillItem("a", "base_lib_generic", sha256="0" * 64, properties={"rocwheel:files": "3"}, made_of=("b", "c"))
PACKAGE = BillItem("p", "librocm-core1", package_url="pkg:deb/debian/librocm-core1@1?arch=amd64")
WITH_TEXT = BillItem("b", "rocm-core", license_files=("share/doc/rocm-core/LICENSE.md",))
WITHOUT = BillItem("c", "rocm_smi_lib", license="MIT")


def test_projects_without_a_text_are_found_and_artifacts_and_packages_need_none() -> None:
    bill = render_bill(BillOfMaterials(SUBJECT, (ARTIFACT, PACKAGE, WITH_TEXT, WITHOUT), 0))
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
def test_what_is_no_bill_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="x: is no bill of materials"):
        find_unlicensed(data, "x")


def test_names_with_markup_stay_text() -> None:
    data = json.dumps({"components": [{"name": "<script>\u0000"}]}).encode()
    assert find_unlicensed(data, "x") == ("<script>\x00",)
