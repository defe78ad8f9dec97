"""Where everything is: found, or everything that is missing told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import ProblemsError
from rocwheel.frameworks.jax_checkout.checkout import Checkout, SourceFile
from rocwheel.frameworks.jax_checkout.reading.git import read_checkout
from rocwheel.frameworks.jax_checkout.reading.structure import Structure, find_structure

if TYPE_CHECKING:
    from tests.support.rocm_jax_checkout import RocmJaxCheckout


def checkout(**changes: str | None) -> Checkout:
    texts = {
        ".bazelrc": "build:rocm --jobs=1\n",
        "WORKSPACE": 'workspace(name = "jax_rocm_plugin")\n',
        "pjrt/BUILD": 'cc_binary(name = "p.so", linkshared = True)\n',
        "jaxlib_ext/tools/BUILD.bazel": "",
        "third_party/jax/workspace.bzl": 'def repo():\n    git_repository(name = "jax", patches = [])\n',
        **changes,
    }
    return Checkout({f"jax_rocm_plugin/{path}": SourceFile(text) for path, text in texts.items() if text is not None})


def test_the_files_of_a_checkout_are_found(original: RocmJaxCheckout) -> None:
    found = find_structure(read_checkout(original.folder).committed, "x")
    assert found == Structure(
        bazelrc="jax_rocm_plugin/.bazelrc",
        workspace="jax_rocm_plugin/WORKSPACE",
        workspace_name="jax_rocm_plugin",
        pjrt="jax_rocm_plugin/pjrt/BUILD",
        pjrt_library="pjrt_c_api_gpu_plugin.so",
        plugin_tools="jax_rocm_plugin/jaxlib_ext/tools/BUILD.bazel",
        jax="jax_rocm_plugin/third_party/jax/workspace.bzl",
    )


def test_an_unknown_tree_is_told_all_that_was_expected_and_where() -> None:
    with pytest.raises(ProblemsError) as raised:
        find_structure(Checkout({}), "folder")
    assert str(raised.value) == (
        "folder: is no checkout of rocm-jax's kind: 5 problems\n"
        "  jax_rocm_plugin/.bazelrc: is not there; expected this file with the configs rocm or rocm_base\n"
        "  jax_rocm_plugin/WORKSPACE: is not there; expected this file with workspace(name = ...)\n"
        "  jax_rocm_plugin/pjrt/BUILD: is not there; expected this file with one cc_binary with linkshared, the "
        "plugin\n"
        "  jax_rocm_plugin/jaxlib_ext/tools/BUILD: is not there; expected this file with what the wheel of the "
        "extension modules takes\n"
        "  jax_rocm_plugin/third_party/jax/workspace.bzl: is not there; expected this file with a rule that fetches "
        "@jax with patches"
    )


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        (".bazelrc", "build --jobs=1\n", "is of another kind; expected the configs rocm or rocm_base"),
        ("WORKSPACE", "", "is of another kind; expected workspace(name = ...)"),
        ("pjrt/BUILD", "cc_binary(", "can't be read as Starlark (line 1). Mend it first."),
        (
            "pjrt/BUILD",
            'cc_binary(name = "tool")\n',
            "is of another kind; expected one cc_binary with linkshared, the plugin",
        ),
        (
            "third_party/jax/workspace.bzl",
            'git_repository(name = "xla")\n',
            "is of another kind; expected a rule that fetches @jax with patches",
        ),
    ],
)
def test_a_file_of_another_kind_is_told(path: str, text: str, told: str) -> None:
    with pytest.raises(ProblemsError) as raised:
        find_structure(checkout(**{path: text}), "x")
    (problem,) = raised.value.problems
    assert str(problem) == f"jax_rocm_plugin/{path}: {told}"
