"""What components were made of, by the SDK's manifest."""

from __future__ import annotations

import msgspec
import pytest
from packageurl import PackageURL

from rocwheel.artifacts.sdk_files import SdkManifest, SourcePackage, Submodule
from rocwheel.packages.licensing.component import Component
from rocwheel.packages.licensing.upstream import Upstream, upstream_of, vendor_of

LLVM = Component("amd-llvm", "compiler/amd-llvm")
COMMIT = "89553ce3746eda74ade42557470d25e37c91b6f0"


def pinned(path: str = LLVM.project, url: str | None = None, commit: str | None = COMMIT) -> SdkManifest:
    return SdkManifest(submodules=(Submodule(path, url, commit),))


@pytest.mark.parametrize("url", ["https://github.com/ROCm/llvm-project.git", "https://github.com/rocm/LLVM-project/"])
def test_a_project_that_is_a_submodule_was_made_of_its_commit(url: str) -> None:
    expected = Upstream(COMMIT, (f"pkg:github/rocm/llvm-project@{COMMIT}",))
    assert upstream_of(LLVM, ["amd-llvm_lib_generic"], pinned(url=url)) == expected


@pytest.mark.parametrize("url", [None, "", "https://example.org/ROCm/llvm-project", "https://github.com/x", "http://["])
def test_a_repository_elsewhere_has_a_commit_and_no_package_url(url: str | None) -> None:
    assert upstream_of(LLVM, ["amd-llvm_lib_generic"], pinned(url=url)) == Upstream(COMMIT)


@pytest.mark.parametrize("manifest", [None, SdkManifest(), pinned("rocm-libraries"), pinned(commit=None)])
def test_what_the_manifest_does_not_tell_is_left_open(manifest: SdkManifest | None) -> None:
    assert upstream_of(LLVM, ["amd-llvm_lib_generic"], manifest) == Upstream()


def test_imported_files_were_made_of_the_packages_of_their_artifacts() -> None:
    packages = (
        SourcePackage("librocrand1", "5.3.3-4", "amd64", ("rand_lib_generic",), origin="Debian"),
        SourcePackage("librocrand-dev", "5.3.3-4", "amd64", ("rand_dev_generic",)),
        SourcePackage("libstdc++6", "12.2.0-14ubuntu1", "amd64", ("rand_lib_generic",)),
        SourcePackage("", "", "", ("rand_lib_generic",)),
    )
    found = upstream_of(Component("rand", "rand"), ["rand_lib_generic"], SdkManifest(debian_packages=packages))
    assert found == Upstream(
        "",
        ("pkg:deb/debian/librocrand1@5.3.3-4?arch=amd64", "pkg:deb/ubuntu/libstdc%2B%2B6@12.2.0-14ubuntu1?arch=amd64"),
    )


def test_the_version_of_the_only_package_is_that_of_the_component() -> None:
    manifest = SdkManifest(debian_packages=(SourcePackage("rccl", "2.1-1", "amd64", ("rccl_lib_generic",)),))
    assert upstream_of(Component("rccl", "rccl"), ["rccl_lib_generic"], manifest).version == "2.1-1"


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
def test_the_supplier_of_a_package_is_its_origin_or_its_maintainer(
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
def test_the_package_url_names_the_supplier_alone_that_is_known(package: SourcePackage, url: str) -> None:
    manifest = SdkManifest(debian_packages=(msgspec.structs.replace(package, artifacts=("x_lib_generic",)),))
    [found] = upstream_of(Component("x", "x"), ["x_lib_generic"], manifest).urls
    assert found == url
    assert PackageURL.from_string(found).name == "a"
