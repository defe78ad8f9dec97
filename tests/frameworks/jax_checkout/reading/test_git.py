"""No program that a checkout's own configuration names is run by reading it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax_checkout.reading.git import read_checkout, run_git
from rocwheel.frameworks.jax_checkout.reading.jax_source import read_jax_build
from rocwheel.frameworks.jax_checkout.reading.structure import find_structure
from tests.support.rocm_jax_checkout import commit_all, git

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
    with pytest.raises(InputError, match="jax: has no jaxlib/rocm/BUILD at --output="):
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
