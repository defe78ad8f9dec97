"""Tests of `rocwheel.frameworks.jax.checkout`."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.frameworks.jax.checkout import (
    JAX_BUILD,
    Checkout,
    SourceFile,
    Structure,
    find_structure,
    read_checkout,
    read_jax_build,
    run_git,
)
from tests.support.rocm_jax_checkout import RocmJaxCheckout, commit_all, git

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.rocm_jax_checkout import RocmJaxCheckout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout with one file, which git has to read again to know that it is clean."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "BUILD").write_text("one\n")
    commit_all(folder)
    os.utime(folder / "BUILD", (1, 1))
    return folder


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def configure(folder: Path, attribute: str, **settings: str) -> None:
    (folder / ".git/info").mkdir(exist_ok=True)
    (folder / ".git/info/attributes").write_text(f"* {attribute}\n")
    for name, value in settings.items():
        git(folder, "config", name.replace("__", "."), value)


@pytest.mark.parametrize("setting", ["clean", "process"])
@pytest.mark.parametrize("name", ["x", "a.b", ""])
def test_filters_of_the_checkout_are_not_run(checkout: Path, tmp_path: Path, name: str, setting: str) -> None:
    append(checkout / ".git/config", f'[filter "{name}"]\n\t{setting} = touch {tmp_path}/ran\n\trequired = true\n')
    configure(checkout, f"filter={name}")
    assert read_checkout(checkout).dirty == ()
    assert not (tmp_path / "ran").exists()


def test_filters_are_not_run_for_the_committed_bytes_of_changed_files(checkout: Path, tmp_path: Path) -> None:
    configure(checkout, "filter=x", filter__x__smudge=f"touch {tmp_path}/ran; cat", filter__x__required="true")
    (checkout / "BUILD").write_text("two\n")
    made = read_checkout(checkout)
    assert (made.dirty, made.committed.text("BUILD")) == (("BUILD",), "one\n")
    assert not (tmp_path / "ran").exists()


def test_a_filter_that_a_setting_of_git_can_not_name_is_refused(checkout: Path, tmp_path: Path) -> None:
    append(checkout / ".git/config", f'[filter "a=b"]\n\tclean = touch {tmp_path}/ran\n')
    configure(checkout, "filter=a=b")
    with pytest.raises(InputError, match="has a git configuration with the filter 'a=b'; expected a name without '='"):
        read_checkout(checkout)
    assert not (tmp_path / "ran").exists()


def test_a_commit_of_the_workspace_is_no_option_of_git(rocm_jax: RocmJaxCheckout, tmp_path: Path) -> None:
    (tmp_path / "out:jaxlib/rocm").mkdir(parents=True)
    rule = rocm_jax.workspace / "third_party/jax/workspace.bzl"
    rule.write_text(rule.read_text().replace(git(rocm_jax.jax, "rev-parse", "HEAD"), f"--output={tmp_path}/out"))
    commit_all(rocm_jax.folder)
    committed = read_checkout(rocm_jax.folder).committed
    with pytest.raises(InputError, match="jax: has no jaxlib/rocm/BUILD in commit --output="):
        read_jax_build(rocm_jax.jax, committed, find_structure(committed, "x"))
    assert list((tmp_path / "out:jaxlib/rocm").iterdir()) == []


def test_what_a_partial_clone_lacks_is_not_fetched(checkout: Path, tmp_path: Path) -> None:
    blob = git(checkout, "rev-parse", "HEAD:BUILD")
    (checkout / ".git/objects" / blob[:2] / blob[2:]).unlink()
    settings = {
        "core__repositoryFormatVersion": "1",
        "extensions__partialClone": "origin",
        "remote__origin__promisor": "true",
        "remote__origin__url": f"ext::touch {tmp_path}/ran",
        "protocol__ext__allow": "always",
    }
    configure(checkout, "text", **settings)
    assert run_git(checkout, "cat-file", "blob", "HEAD:BUILD").returncode == 128
    assert not (tmp_path / "ran").exists()


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
        InputError, match=r"xla: has no jaxlib/rocm/BUILD in commit [0-9a-f]{40}. Fetch the commit in jax_ro"
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
        InputError, match=r"has a jaxlib/rocm/BUILD to which the workspace's patch 1 doesn't apply \(error: "
    ):
        read(rocm_jax.jax, rocm_jax)


def checkout_of_structure(**changes: str | None) -> Checkout:
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
        pjrt_library="pjrt_c_api_gpu_plugin.so",
        jax="jax_rocm_plugin/third_party/jax/workspace.bzl",
    )


def test_an_unknown_tree_is_told_all_that_was_expected_and_where() -> None:
    with pytest.raises(ProblemsError) as raised:
        find_structure(Checkout({}), "folder")
    assert str(raised.value) == (
        "folder: isn't a checkout of rocm-jax or a fork: 5 problems\n"
        "  jax_rocm_plugin/.bazelrc: doesn't exist; expected a file with the configs rocm or rocm_base\n"
        "  jax_rocm_plugin/WORKSPACE: doesn't exist; expected a file with workspace(name = ...)\n"
        "  jax_rocm_plugin/pjrt/BUILD: doesn't exist; expected a file with one cc_binary with linkshared, which is "
        "the plugin\n"
        "  jax_rocm_plugin/jaxlib_ext/tools/BUILD: doesn't exist; expected a file with the inputs for the wheel "
        "with the extension modules\n"
        "  jax_rocm_plugin/third_party/jax/workspace.bzl: doesn't exist; expected a file with a rule that fetches "
        "@jax with patches"
    )


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        (".bazelrc", "build --jobs=1\n", "doesn't have the expected contents; expected the configs rocm or rocm_base"),
        ("WORKSPACE", "", "doesn't have the expected contents; expected workspace(name = ...)"),
        ("pjrt/BUILD", "cc_binary(", "isn't valid Starlark (line 1). Correct the file."),
        (
            "pjrt/BUILD",
            'cc_binary(name = "tool")\n',
            "doesn't have the expected contents; expected one cc_binary with linkshared, which is the plugin",
        ),
        (
            "third_party/jax/workspace.bzl",
            'git_repository(name = "xla")\n',
            "doesn't have the expected contents; expected a rule that fetches @jax with patches",
        ),
    ],
)
def test_a_file_of_another_kind_is_told(path: str, text: str, told: str) -> None:
    with pytest.raises(ProblemsError) as raised:
        find_structure(checkout_of_structure(**{path: text}), "x")
    (problem,) = raised.value.problems
    assert str(problem) == f"jax_rocm_plugin/{path}: {told}"
