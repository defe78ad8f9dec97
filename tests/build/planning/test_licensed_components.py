"""Tests of `rocwheel.build.planning.licensed_components`."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from rocwheel.artifacts.sdk_files import SdkManifest, SourcePackage, Submodule
from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.build.plan import PlannedComponent
from rocwheel.build.planning.licensed_components import Component, component_of, license_files, upstream_of, vendor_of
from rocwheel.build.recipe import load_recipe
from rocwheel.demo import SAMPLE_SDK
from tests.build.trees import file_entry

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.artifacts.catalog import Entry


@pytest.mark.parametrize(
    ("stage", "project"),
    [
        ("math-libs/BLAS/rocBLAS/stage", "math-libs/BLAS/rocBLAS"),
        ("third-party/sysdeps/linux/zlib/build/stage", "third-party/sysdeps/linux/zlib"),
        ("blas/stage", "blas"),
        ("stage", ""),
        ("build/stage", ""),
        ("", ""),
        ("somewhere/else", "somewhere/else"),
    ],
)
def test_a_project_is_named_after_its_source_folder(stage: str, project: str) -> None:
    entry = msgspec.structs.replace(file_entry("lib/libx.so", "blas_lib_generic"), stage=stage)
    assert component_of(entry) == Component("blas", project)


LLVM = Component("amd-llvm", "compiler/amd-llvm")
COMMIT = "89553ce3746eda74ade42557470d25e37c91b6f0"


def pinned(path: str = LLVM.project, url: str | None = None, commit: str | None = COMMIT) -> SdkManifest:
    return SdkManifest(submodules=(Submodule(path, url, commit),))


@pytest.mark.parametrize("url", ["https://github.com/ROCm/llvm-project.git", "https://github.com/rocm/LLVM-project/"])
def test_a_submodule_project_is_identified_by_its_commit(url: str) -> None:
    expected = (COMMIT, (f"pkg:github/rocm/llvm-project@{COMMIT}",))
    assert upstream_of(LLVM, ["amd-llvm_lib_generic"], pinned(url=url)) == expected


@pytest.mark.parametrize("url", [None, "", "https://example.org/ROCm/llvm-project", "https://github.com/x", "http://["])
def test_a_repository_outside_github_has_a_commit_but_no_package_url(url: str | None) -> None:
    assert upstream_of(LLVM, ["amd-llvm_lib_generic"], pinned(url=url)) == (COMMIT, ())


@pytest.mark.parametrize("manifest", [None, SdkManifest(), pinned("rocm-libraries"), pinned(commit=None)])
def test_information_missing_from_the_manifest_is_left_empty(manifest: SdkManifest | None) -> None:
    assert upstream_of(LLVM, ["amd-llvm_lib_generic"], manifest) == ("", ())


def test_imported_files_are_attributed_to_the_packages_of_their_artifacts() -> None:
    packages = (
        SourcePackage("librocrand1", "5.3.3-4", "amd64", ("rand_lib_generic",), origin="Debian"),
        SourcePackage("librocrand-dev", "5.3.3-4", "amd64", ("rand_dev_generic",)),
        SourcePackage("libstdc++6", "12.2.0-14ubuntu1", "amd64", ("rand_lib_generic",)),
        SourcePackage("", "", "", ("rand_lib_generic",)),
    )
    found = upstream_of(Component("rand", "rand"), ["rand_lib_generic"], SdkManifest(debian_packages=packages))
    assert found == (
        "",
        ("pkg:deb/debian/librocrand1@5.3.3-4?arch=amd64", "pkg:deb/ubuntu/libstdc%2B%2B6@12.2.0-14ubuntu1?arch=amd64"),
    )


def test_a_component_with_a_single_package_has_the_package_version() -> None:
    manifest = SdkManifest(debian_packages=(SourcePackage("rccl", "2.1-1", "amd64", ("rccl_lib_generic",)),))
    assert upstream_of(Component("rccl", "rccl"), ["rccl_lib_generic"], manifest)[0] == "2.1-1"


@pytest.mark.parametrize(
    ("origin", "maintainer", "version", "vendor"),
    [
        ("Debian", "", "1-1", "debian"),
        ("Advanced Micro Devices", "a <a@debian.org>", "1-1", "advanced micro devices"),
        ("", "Debian ROCm Team <debian-ai@lists.debian.org>", "1-1", "debian"),
        ("", "Ubuntu Developers <ubuntu-devel-discuss@lists.ubuntu.com>", "1-1", "ubuntu"),
        ("", "ROCm Libs Support <rocm-libs.support@amd.com>", "4.0.0.60002-115~22.04", "amd"),
        ("", "rocm-libs@amd.com", "1-1", "amd"),
        ("", "Somebody <a@notdebian.org>", "1-1", ""),
        ("", "Somebody <a@example.org>", "1-1ubuntu1", "ubuntu"),
        ("", "", "1-1", ""),
    ],
)
def test_the_vendor_of_a_package_is_its_origin_or_its_maintainer(
    origin: str, maintainer: str, version: str, vendor: str
) -> None:
    assert vendor_of(SourcePackage("a", version, "amd64", origin=origin, maintainer=maintainer)) == vendor


@pytest.mark.parametrize(
    ("package", "url"),
    [
        (SourcePackage("a", "1", "amd64", maintainer="A <a@amd.com>"), "pkg:deb/amd/a@1?arch=amd64"),
        (SourcePackage("a", "1", "amd64"), "pkg:deb/a@1?arch=amd64"),
        (SourcePackage("a", "1", "amd64", origin="Me/You & Co"), "pkg:deb/me%2Fyou%20%26%20co/a@1?arch=amd64"),
    ],
)
def test_the_package_url_names_only_a_known_vendor(package: SourcePackage, url: str) -> None:
    manifest = SdkManifest(debian_packages=(msgspec.structs.replace(package, artifacts=("x_lib_generic",)),))
    [found] = upstream_of(Component("x", "x"), ["x_lib_generic"], manifest)[1]
    assert found == url
    assert PackageURL.from_string(found).name == "a"


BLAS, SOLVER = "math-libs/BLAS/rocBLAS/stage", "math-libs/BLAS/rocSOLVER/stage"


def entry(path: str, artifact: str, stage: str) -> Entry:
    return msgspec.structs.replace(file_entry(path, artifact), stage=stage)


LIBRARY = entry("lib/librocblas.so.5", "blas_lib_generic", BLAS)
OWN_TEXT = entry("share/doc/rocblas/LICENSE.md", "blas_doc_generic", BLAS)
OTHER_TEXT = entry("share/doc/rocsolver/LICENSE.md", "blas_doc_generic", SOLVER)
README = entry("share/doc/rocblas/README.md", "blas_doc_generic", BLAS)
TREE = {one.path: one for one in (LIBRARY, OWN_TEXT, OTHER_TEXT, README)}


def test_a_package_gets_only_the_license_texts_of_its_contents() -> None:
    found = license_files([LIBRARY], TREE, load_recipe())
    assert found.texts == {"share/doc/rocblas/LICENSE.md": OWN_TEXT}
    assert found.components == (
        PlannedComponent(
            "blas",
            "math-libs/BLAS/rocBLAS",
            "BSD-3-Clause AND MIT",
            ("share/doc/rocblas/LICENSE.md",),
            ("blas_lib_generic",),
        ),
    )


def test_a_component_without_a_license_text_gets_no_text_of_another_component() -> None:
    lone = entry("lib/libhipblas.so.3", "blas_lib_generic", "math-libs/BLAS/hipBLAS/stage")
    found = license_files([lone], TREE, load_recipe())
    assert (found.texts, found.components[0].license_files) == ({}, ())


@pytest.mark.parametrize(
    ("table", "default", "expression"),
    [
        ({"rocBLAS": "0BSD", "blas": "MIT"}, None, "0BSD"),
        ({"BLAS/rocBLAS": "Zlib", "rocBLAS": "0BSD"}, None, "Zlib"),
        ({"blas": "mit"}, "NCSA", "MIT"),
        ({"BLAS": "MIT"}, "NCSA", "NCSA"),
        ({}, None, None),
    ],
)
def test_licenses_are_looked_up_by_project_then_artifact_then_default(
    table: dict[str, str], default: str | None, expression: str | None
) -> None:
    recipe = msgspec.structs.replace(load_recipe(), licenses=table, license=default)
    assert license_files([LIBRARY], TREE, recipe).components[0].license == expression


def test_files_added_by_the_sdk_build_belong_to_no_component() -> None:
    manifest = entry("share/therock/therock_manifest.json", "base_lib_generic", "base/aux-overlay/stage")
    assert license_files([manifest], TREE, load_recipe()).components == ()


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


def test_each_wheel_has_an_sbom_that_conforms_to_the_published_schema(dist: Path) -> None:
    wheels = sorted(dist.glob("*.whl"))
    assert len(wheels) == 7
    for wheel in wheels:
        assert VALIDATOR.validate_str(json.dumps(read_bill(wheel))) is None


def test_record_lists_the_sbom(dist: Path) -> None:
    with zipfile.ZipFile(wheel_of(dist, "rocm_sdk_libraries")) as archive:
        record = archive.read("rocm_sdk_libraries-7.0.0.dist-info/RECORD").decode()
    assert "\nrocm_sdk_libraries-7.0.0.dist-info/sboms/rocwheel.cdx.json,sha256=" in record


def test_an_sbom_lists_the_artifacts_of_the_wheel_with_their_hashes(dist: Path) -> None:
    bill = read_bill(wheel_of(dist, "rocm_sdk_device_gfx90a"))
    artifacts = {one["name"]: one["hashes"] for one in bill["components"] if "hashes" in one}
    assert sorted(artifacts) == [
        "blas_lib_gfx90a",
        "blas_lib_gfx90a:xnack+",
        "fft_lib_gfx90a",
        "fft_lib_gfx90a:xnack+",
    ]
    assert all(len(hashes[0]["content"]) == 64 for hashes in artifacts.values())


def test_an_sbom_lists_the_components_with_their_licenses(dist: Path) -> None:
    bill = read_bill(wheel_of(dist, "rocm_sdk_core"))
    licenses = {one["name"]: one["licenses"][0]["expression"] for one in bill["components"] if "licenses" in one}
    assert licenses["elfutils"] == "GPL-2.0-or-later OR LGPL-3.0-or-later"
    assert licenses["amd-llvm"] == "Apache-2.0 WITH LLVM-exception AND NCSA"
    assert licenses["rocm_sdk"] == "MIT"


def test_license_texts_referenced_in_an_sbom_are_in_the_wheel(dist: Path) -> None:
    for wheel in dist.glob("*.whl"):
        bill = read_bill(wheel)
        texts = [ref["url"] for one in bill["components"] for ref in one.get("externalReferences", ())]
        with zipfile.ZipFile(wheel) as archive:
            info = "-".join(wheel.name.split("-")[:2]) + ".dist-info"
            assert {text.replace("..", info, 1) for text in texts} <= set(archive.namelist())
