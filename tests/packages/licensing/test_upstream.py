"""What components were made of, by the SDK's manifest."""

from __future__ import annotations

import pytest

from rocwheel.artifacts.model.sdk_manifest import SdkManifest, SourcePackage, Submodule
from rocwheel.packages.licensing.component import Component
from rocwheel.packages.licensing.upstream import Upstream, upstream_of

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
        SourcePackage("librocrand1", "5.3.3-4", "amd64", ("rand_lib_generic",)),
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
