"""The bills of materials of wheels that are built."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from rocwheel.demo.demo import SAMPLE_SDK
from rocwheel.packages.job import BuildJob, PlanJob

if TYPE_CHECKING:
    from pathlib import Path

VALIDATOR = JsonStrictValidator(SchemaVersion.V1_6)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sboms")
    BuildJob(PlanJob(SAMPLE_SDK), folder).run()
    return folder / "dist"


def read_bill(wheel: Path) -> dict[str, Any]:
    name, version = wheel.name.split("-")[:2]
    with zipfile.ZipFile(wheel) as archive:
        data: dict[str, Any] = json.loads(archive.read(f"{name}-{version}.dist-info/sboms/rocwheel.cdx.json"))
    return data


def wheel_of(dist: Path, name: str) -> Path:
    return next(dist.glob(f"{name}-*.whl"))


def test_each_wheel_has_a_bill_that_follows_the_published_schema(dist: Path) -> None:
    wheels = sorted(dist.glob("*.whl"))
    assert len(wheels) == 7
    for wheel in wheels:
        assert VALIDATOR.validate_str(json.dumps(read_bill(wheel))) is None


def test_record_lists_the_bill(dist: Path) -> None:
    with zipfile.ZipFile(wheel_of(dist, "rocm_sdk_libraries")) as archive:
        record = archive.read("rocm_sdk_libraries-7.0.0.dist-info/RECORD").decode()
    assert "\nrocm_sdk_libraries-7.0.0.dist-info/sboms/rocwheel.cdx.json,sha256=" in record


def test_a_bill_names_the_artifacts_of_the_wheel_with_their_hashes(dist: Path) -> None:
    bill = read_bill(wheel_of(dist, "rocm_sdk_device_gfx90a"))
    artifacts = {one["name"]: one["hashes"] for one in bill["components"] if "hashes" in one}
    assert sorted(artifacts) == [
        "blas_lib_gfx90a",
        "blas_lib_gfx90a:xnack+",
        "fft_lib_gfx90a",
        "fft_lib_gfx90a:xnack+",
    ]
    assert all(len(hashes[0]["content"]) == 64 for hashes in artifacts.values())


def test_a_bill_names_the_components_with_their_licences(dist: Path) -> None:
    bill = read_bill(wheel_of(dist, "rocm_sdk_core"))
    licences = {one["name"]: one["licenses"][0]["expression"] for one in bill["components"] if "licenses" in one}
    assert licences["elfutils"] == "GPL-2.0-or-later OR LGPL-3.0-or-later"
    assert licences["amd-llvm"] == "Apache-2.0 WITH LLVM-exception AND NCSA"
    assert licences["rocm_sdk"] == "MIT"


def test_a_text_that_a_bill_refers_to_is_in_the_wheel(dist: Path) -> None:
    for wheel in dist.glob("*.whl"):
        bill = read_bill(wheel)
        texts = [ref["url"] for one in bill["components"] for ref in one.get("externalReferences", ())]
        with zipfile.ZipFile(wheel) as archive:
            info = "-".join(wheel.name.split("-")[:2]) + ".dist-info"
            assert {text.replace("..", info, 1) for text in texts} <= set(archive.namelist())
