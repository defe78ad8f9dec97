"""Tests of `rocwheel.audit.unresolved`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.audit.unresolved import find_unresolved, folders_with, host_hint
from tests.support.breaches import one
from tests.support.trees import find, library, package, tree

if TYPE_CHECKING:
    from rocwheel.environment.tree import Tree


OTHER = (package("other"), [library("other/libo.so"), library("other/libp.so")])


def uses(*requires: str, needed: tuple[str, ...] = ("libo.so",)) -> list[tuple[str, str, str]]:
    user = library("demo/a.so", *needed, runpath="$ORIGIN/../other")
    subject = Subject(tree((package(requires=requires), [user]), OTHER), AuditSettings())
    return [(use.file.path, use.name, use.provider) for use in subject.undeclared_uses]


def test_using_a_library_from_a_package_that_is_not_required_is_undeclared() -> None:
    assert uses() == [("demo/a.so", "libo.so", "other")]


def test_using_a_library_from_a_required_package_is_declared() -> None:
    assert uses("other==1.0") == []


def test_only_the_first_use_of_each_package_is_reported() -> None:
    assert uses(needed=("libp.so", "libo.so")) == [("demo/a.so", "libp.so", "other")]


def subject_of(*files: object, **settings: object) -> Subject:
    return Subject(tree((package(), list(files))), AuditSettings(**settings))  # type: ignore[arg-type]


def test_a_library_in_no_package_is_unresolved() -> None:
    (found,) = find_unresolved(subject_of(library("demo/a.so", "libnowhere.so.1")), "unresolved-library")
    assert (found.words, found.facts) == ("needs libnowhere.so.1", ("libnowhere.so.1", "demo/a.so"))


def test_a_library_declared_as_opened_by_name_is_not_unresolved() -> None:
    subject = subject_of(library("demo/a.so"), dlopen={"demo/a.so": ("libnowhere.so.1",)})
    assert list(find_unresolved(subject, "unresolved-library")) == []


def test_a_library_missing_from_a_context_package_is_reported_once_per_user() -> None:
    context = package("other", is_context=True)
    users = [library(f"demo/{name}.so", "libo.so", runpath="$ORIGIN/../other") for name in "ab"]
    audited = tree((package(), users), (context, [library("other/libo.so", "libnowhere.so.1")]))
    (found,) = find_unresolved(Subject(audited, AuditSettings()), "unresolved-library")
    assert (found.user.path, found.words) == ("demo/a.so", "loads other/libo.so, which needs libnowhere.so.1")


def test_folders_of_an_assumed_sdk_are_named_if_no_package_has_the_library() -> None:
    subject = subject_of(library("demo/a.so", "libamdhip64.so.7"))
    assert folders_with(subject, "libamdhip64.so.7") == ["_rocm_sdk_core/lib"]
    assert folders_with(subject, "libnowhere.so.1") == []


@pytest.mark.parametrize(
    ("run_path", "hint"),
    [
        ("$ORIGIN:$ORIGIN/lib", ""),
        ("$ORIGIN:/opt/rocm/lib", " (the file finds the library only on hosts that have it in /opt/rocm/lib)"),
        ("/a:/b:/c:/d:/e", " (the file finds the library only on hosts that have it in /a, /b, /c or 2 more folders)"),
    ],
    ids=["none", "one", "many"],
)
def test_a_hint_names_the_host_folders_in_the_run_path(run_path: str, hint: str) -> None:
    assert host_hint(library("demo/a.so", runpath=run_path)) == hint


RULE = "unresolved-library"
NVIDIA = ("nvidia-cublas-cu12", "nvidia-cuda-runtime-cu12", "nvidia-nccl-cu12; extra == 'x'", "numpy")
RUN_PATH = "$ORIGIN/../nvidia/cublas/lib:$ORIGIN/../nvidia/cuda_runtime/lib:$ORIGIN"


def test_libraries_expected_from_one_required_package_are_one_finding() -> None:
    files = [
        library(f"demo/{name}.so", "libcublas.so.12", "libcublasLt.so.12", runpath=RUN_PATH) for name in ("a", "b")
    ]
    (finding,) = find(one(*files, owner=package(requires=NVIDIA)), select=(RULE,))
    need = "2 files need 2 libraries from that package: libcublas.so.12, libcublasLt.so.12"
    assert finding.file == "demo-1.0-py3-none-manylinux_2_17_x86_64.whl"
    assert finding.found == f"requires nvidia-cublas-cu12, which isn't given, and {need}"
    assert (finding.remedy, finding.severity.value) == ("Add it with --with, or use --with-requirements.", "warning")


@pytest.mark.parametrize(
    ("name", "run_path", "required", "packages"),
    [
        ("libnvToolsExt.so.1", RUN_PATH, NVIDIA, "nvidia-cublas-cu12 or nvidia-cuda-runtime-cu12"),
        ("libcudart.so.12", RUN_PATH, NVIDIA, "nvidia-cuda-runtime-cu12"),
        ("libcudart.so.12", "$ORIGIN/../nvidia/cuda_runtime/lib", NVIDIA, "nvidia-cuda-runtime-cu12"),
        ("libshiboken6.abi3.so.6.12", "$ORIGIN/../shiboken6", ("shiboken6==6.12",), "shiboken6"),
        ("libtorch_cpu.so", None, ("torch", "numpy"), "torch"),
        ("libc10_cuda.so", "$ORIGIN/../torch/lib", ("torch", "numpy"), "torch"),
        ("libc10_cuda.so", None, ("torch", "numpy"), "torch"),
        ("libcudart.so.13", None, ("torch", "numpy"), "torch"),
        ("libtorch_cpu.so", "/opt/torch/lib", ("torch", "numpy"), "torch"),
        ("libx.so.1", "$ORIGIN/../nvidia", ("nvidia-cublas", "nvidia-cufft"), ""),
        ("libx.so.1", "$ORIGIN", NVIDIA, ""),
        ("libx.so.1", "$ORIGIN/../../numpy", NVIDIA, ""),
        ("libnccl.so.2", "$ORIGIN/../nvidia/nccl/lib", NVIDIA, ""),
        ("libcublas.so.12", RUN_PATH, ("numpy",), ""),
    ],
)
def test_a_library_is_attributed_to_a_package_by_run_path_or_name(
    name: str, run_path: str | None, required: tuple[str, ...], packages: str
) -> None:
    audited = one(library("demo/a.so", name, runpath=run_path), owner=package(requires=required))
    (finding,) = find(audited, select=(RULE,))
    assert finding.found.startswith(
        f"requires {packages}, which isn't given" if packages else f"needs {name}, which no given package contains"
    )


def test_in_a_closed_set_a_missing_requirement_is_an_error() -> None:
    audited = one(library("demo/a.so", "libcublas.so.12", runpath=RUN_PATH), owner=package(requires=NVIDIA))
    (finding,) = find(audited, select=(RULE,), closed=True)
    assert finding.severity.value == "error"


def test_a_library_missing_from_a_given_package_is_reported_for_its_user() -> None:
    user = library("demo/a.so", "libcublas.so.12", runpath=RUN_PATH)
    cublas = package("nvidia-cublas-cu12", is_context=True)
    audited = tree((package(requires=("nvidia-cublas-cu12",)), [user]), (cublas, []))
    (finding,) = find(audited, select=(RULE,))
    assert finding.path == "demo/a.so"
    assert finding.found.startswith("needs libcublas.so.12, but neither the packages")


def test_files_that_ignore_the_rule_are_not_counted() -> None:
    files = [library(f"demo/{name}.so", "libcublas.so.12", runpath=RUN_PATH) for name in ("a", "b")]
    audited = one(*files, owner=package(requires=NVIDIA))
    (finding,) = find(audited, select=(RULE,), per_file_ignore={"demo/b.so": (RULE,)})
    assert "1 file needs 1 library" in finding.found


def test_an_sdk_library_is_attributed_to_the_required_sdk_package() -> None:
    user = library("_rocm_sdk_libraries/lib/librocsolver.so.0", "librocm-openblas.so.0.3")
    owner = package("rocm-sdk-libraries", requires=("rocm-sdk-core==7.0",))
    (finding,) = find(one(user, owner=owner), select=(RULE,))
    expected = (
        "requires rocm-sdk-core, which isn't given, and 1 file needs 1 library from that package: "
        "librocm-openblas.so.0.3"
    )
    assert (finding.found, finding.remedy) == (expected, "Add it with --with, or use --with-requirements.")


def lacking_torch() -> Tree:
    """Two files of the audited wheel load one of torch, given as context, whose own requirement is not given."""
    lib = "torch/lib"
    torch = package("torch", is_context=True, requires=("nvidia-cublas-cu12",))
    loaded = library(f"{lib}/libtorch.so", "libcublas.so.12", runpath="$ORIGIN/../../nvidia/cublas/lib")
    users = [library(f"demo/{name}.so", "libtorch.so", runpath="$ORIGIN/../torch/lib") for name in ("a", "b")]
    return tree((package(requires=("torch",)), users), (torch, [loaded]))


def test_a_context_requirement_is_reported_for_the_package_that_loads_it() -> None:
    (finding,) = find(lacking_torch(), select=(RULE,))
    assert (finding.file, finding.distribution) == ("demo-1.0-py3-none-manylinux_2_17_x86_64.whl", "demo")
    need = "1 file needs 1 library from that package: libcublas.so.12"
    assert finding.found == f"loads files of torch, which requires nvidia-cublas-cu12, which isn't given, and {need}"


def test_if_a_file_is_ignored_the_next_file_with_the_same_finding_is_reported() -> None:
    assert len(find(lacking_torch(), select=(RULE,), per_file_ignore={"demo/a.so": (RULE,)})) == 1
    assert find(lacking_torch(), select=(RULE,), per_file_ignore={"demo/*.so": (RULE,)}) == []


def test_another_missing_library_does_not_change_the_fingerprint() -> None:
    prints = set()
    for names in (["libcublas.so.12"], ["libcublas.so.12", "libcublasLt.so.12"]):
        audited = one(library("demo/a.so", *names, runpath=RUN_PATH), owner=package(requires=NVIDIA))
        (finding,) = find(audited, select=(RULE,))
        prints.add(finding.fingerprint)
    assert len(prints) == 1
