"""Which components a package has files of, and which licence texts come with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.packages.licensing.licensed import license_files
from rocwheel.packages.plan import PlannedComponent
from rocwheel.packages.recipe.load import load_recipe
from tests.packages.trees import file_entry

if TYPE_CHECKING:
    from rocwheel.artifacts.catalog import Entry

BLAS, SOLVER = "math-libs/BLAS/rocBLAS/stage", "math-libs/BLAS/rocSOLVER/stage"


def entry(path: str, artifact: str, stage: str) -> Entry:
    return msgspec.structs.replace(file_entry(path, artifact), stage=stage)


LIBRARY = entry("lib/librocblas.so.5", "blas_lib_generic", BLAS)
OWN_TEXT = entry("share/doc/rocblas/LICENSE.md", "blas_doc_generic", BLAS)
OTHER_TEXT = entry("share/doc/rocsolver/LICENSE.md", "blas_doc_generic", SOLVER)
README = entry("share/doc/rocblas/README.md", "blas_doc_generic", BLAS)
TREE = {one.path: one for one in (LIBRARY, OWN_TEXT, OTHER_TEXT, README)}


def test_a_package_gets_the_texts_of_what_it_holds_and_no_others() -> None:
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


def test_a_component_without_a_text_gets_none_of_another_one() -> None:
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
def test_the_longest_end_of_a_project_counts_then_the_artifact_then_the_default(
    table: dict[str, str], default: str | None, expression: str | None
) -> None:
    recipe = msgspec.structs.replace(load_recipe(), licenses=table, license=default)
    assert license_files([LIBRARY], TREE, recipe).components[0].license == expression


def test_what_the_build_of_the_sdk_adds_is_of_no_component() -> None:
    manifest = entry("share/therock/therock_manifest.json", "base_lib_generic", "base/aux-overlay/stage")
    assert license_files([manifest], TREE, load_recipe()).components == ()
