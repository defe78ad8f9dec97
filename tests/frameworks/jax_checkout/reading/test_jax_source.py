"""The BUILD file of ``@jax``: from a clone, patched as the workspace does, or from Bazel's own copy."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax_checkout.reading.git import read_checkout
from rocwheel.frameworks.jax_checkout.reading.jax_source import read_jax_build
from rocwheel.frameworks.jax_checkout.reading.structure import JAX_BUILD, find_structure
from tests.support.rocm_jax_checkout import RocmJaxCheckout, commit_all

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path, rocm_jax: RocmJaxCheckout) -> str:
    committed = read_checkout(rocm_jax.folder).committed
    return read_jax_build(folder, committed, find_structure(committed, "x"))


def test_a_clone_is_read_at_the_commit_with_the_patches(rocm_jax: RocmJaxCheckout, tmp_path: Path) -> None:
    clone = shutil.copytree(rocm_jax.jax, tmp_path / "clone")
    (clone / JAX_BUILD).write_text("later\n")
    commit_all(clone)
    text = (rocm_jax.jax / JAX_BUILD).read_text()
    assert read(clone, rocm_jax) == text.replace("//visibility:private", "//visibility:public")


def test_patches_are_applied_with_the_folders_that_the_workspace_strips(rocm_jax: RocmJaxCheckout) -> None:
    patch = rocm_jax.workspace / "third_party/jax/0001-Expose-rocm-targets.patch"
    patch.write_text(patch.read_text().replace("a/jaxlib", "jaxlib").replace("b/jaxlib", "jaxlib"))
    rule = rocm_jax.workspace / "third_party/jax/workspace.bzl"
    rule.write_text(rule.read_text().replace('        patch_args = ["-p1"],\n', ""))
    commit_all(rocm_jax.folder)
    assert "//visibility:public" in read(rocm_jax.jax, rocm_jax)


def test_a_folder_without_git_is_read_as_it_is(rocm_jax: RocmJaxCheckout, tmp_path: Path) -> None:
    (tmp_path / "external" / JAX_BUILD).parent.mkdir(parents=True)
    (tmp_path / "external" / JAX_BUILD).write_text("patched\n")
    assert read(tmp_path / "external", rocm_jax) == "patched\n"


def test_a_clone_without_the_commit_is_refused(rocm_jax: RocmJaxCheckout) -> None:
    with pytest.raises(
        InputError, match=r"xla: has no jaxlib/rocm/BUILD at [0-9a-f]{40}. Fetch the commit that jax_ro"
    ):
        read(rocm_jax.xla, rocm_jax)


def test_a_folder_without_the_file_is_refused(rocm_jax: RocmJaxCheckout, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"jaxlib/rocm/BUILD: can't be read .* expected JAX's source. Check --jax."):
        read(tmp_path, rocm_jax)


def test_patches_that_do_not_fit_are_refused(rocm_jax: RocmJaxCheckout) -> None:
    patch = rocm_jax.workspace / "third_party/jax/0001-Expose-rocm-targets.patch"
    patch.write_text(patch.read_text().replace("private", "other"))
    commit_all(rocm_jax.folder)
    with pytest.raises(
        InputError, match=r"has a jaxlib/rocm/BUILD that patch 1 of the workspace doesn't fit \(error: "
    ):
        read(rocm_jax.jax, rocm_jax)
