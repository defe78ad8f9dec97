"""Names of artifacts."""

from __future__ import annotations

import re

import pytest

from rocwheel.artifacts.model.names import ArtifactName, looks_like_artifact
from rocwheel.core.errors import InputError


def test_a_name_has_three_fields_between_two_underscores() -> None:
    assert ArtifactName.parse("amd-llvm_run_generic") == ArtifactName("amd-llvm", "run", "generic")


@pytest.mark.parametrize("text", ["blas_lib_gfx90a:xnack+", "blas_lib_gfx94X-dcgpu", "host-suite-sparse_dev_generic"])
def test_a_parsed_name_is_spelled_as_found(text: str) -> None:
    assert str(ArtifactName.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    ["blas_lib", "blas_lib_gfx_942", "_lib_generic", "blas__generic", "blas_lib_", "", "a b_lib_generic", "a/b_lib_x",
     "x'_lib_generic", ".blas_lib_generic"],
)  # fmt: skip
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        ArtifactName.parse(text)
    assert str(caught.value) == (
        f"{text}: is not an artifact name; expected {{name}}_{{component}}_{{target}} of letters, digits and '.+:~-', "
        "such as blas_lib_gfx942"
    )


def test_a_name_with_a_line_end_is_refused_on_one_line() -> None:
    with pytest.raises(InputError) as caught:
        ArtifactName.parse("blas_lib_generic\n")
    assert str(caught.value).startswith("blas_lib_generic\\n: is not an artifact name; expected ")


def test_the_error_names_the_file_that_bears_the_name() -> None:
    with pytest.raises(InputError, match=re.escape("artifacts/blas_lib.tar.xz: is not an artifact name")):
        ArtifactName.parse("blas_lib", "artifacts/blas_lib.tar.xz")


@pytest.mark.parametrize(
    ("target", "base"),
    [("generic", "generic"), ("gfx942", "gfx942"), ("gfx90a:xnack+", "gfx90a"), ("gfx90a:sramecc+:xnack-", "gfx90a")],
)
def test_the_base_target_has_no_features(target: str, base: str) -> None:
    assert ArtifactName("blas", "lib", target).base_target == base


def test_names_sort_by_name_then_component_then_target() -> None:
    texts = ["b_lib_gfx900", "a_run_generic", "b_dev_gfx900", "b_lib_gfx1030", "a_lib_generic"]
    assert [str(name) for name in sorted(map(ArtifactName.parse, texts))] == [
        "a_lib_generic", "a_run_generic", "b_dev_gfx900", "b_lib_gfx1030", "b_lib_gfx900",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "looks"), [("a_b_c", True), ("a b_ _c'", True), ("a_b", False), ("a_b_c_d", False), ("a__c", False)]
)
def test_what_the_reference_takes_for_a_name_looks_like_one(text: str, looks: bool) -> None:
    assert looks_like_artifact(text) is looks
