"""``rocwheel jax migrate`` as a user runs it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import as_user, needs_setpriv, rocwheel, run_json
from tests.support.rocm_jax_checkout import RocmJaxCheckout, make_rocm_jax_checkout

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

# The files get their names one after another; the process ends itself before one of them does.
KILLED = """
import os, pathlib, signal, sys
left, replace = int(sys.argv.pop(1)), pathlib.Path.replace
def rename(self, target):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)
pathlib.Path.replace = rename
from rocwheel.cli import main
main()
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> RocmJaxCheckout:
    return make_rocm_jax_checkout(tmp_path_factory.mktemp("original"))


@pytest.fixture
def checkout(original: RocmJaxCheckout, tmp_path: Path) -> Path:
    return shutil.copytree(original.folder, tmp_path / "rocm-jax")


def test_it_prints_a_patch_that_git_takes(original: RocmJaxCheckout, checkout: Path) -> None:
    printed = rocwheel("jax", "migrate", checkout, "--jax", original.jax)
    assert printed.returncode == 0, printed.stderr
    apply = ["git", "-C", str(checkout), "apply"]
    subprocess.run([*apply, "--check", "-"], input=printed.stdout, text=True, check=True)
    subprocess.run([*apply, "-"], input=printed.stdout, text=True, check=True, capture_output=True)
    again = rocwheel("jax", "migrate", checkout, "--jax", original.jax)
    assert (again.returncode, again.stdout) == (0, "")
    assert again.stderr.startswith(f"{checkout}: nothing to change\n")


def test_applying_tells_each_change_with_its_phase_and_reason(original: RocmJaxCheckout, checkout: Path) -> None:
    applied = rocwheel("jax", "migrate", checkout, "--jax", original.jax, "--phase", "1", "--apply")
    assert (applied.returncode, applied.stderr) == (0, "")
    assert applied.stdout.splitlines() == [
        (
            "phase 1: jax_rocm_plugin/.bazelrc: build.py wrote this file, from which every later build took every flag "
            "twice"
        ),
        (
            "phase 1: jax_rocm_plugin/.bazelrc: the fragment is imported last, and imports .bazelrc.user after its "
            "configs"
        ),
        "phase 1: jax_rocm_plugin/.bazelrc: the fragment has these configs",
        "phase 1: jax_rocm_plugin/rocm.bazelrc: what build.py put on the command line, as configs of Bazel",
        "phase 1: jax_rocm_plugin/rocm.toml: the build's settings, as .bazelrc, WORKSPACE and the builders had them",
    ]


def test_questions_are_told_with_their_places(checkout: Path) -> None:
    told = rocwheel("jax", "migrate", checkout).stderr
    assert "asks: jax_rocm_plugin/third_party/jax/workspace.bzl:7: where is the source of @jax? Its extension" in told
    assert "asks: jax_rocm_plugin/build/rocm/tools/build_wheels.py:10: what becomes of this call of build.py?" in told


def test_the_document_has_edits_questions_and_the_patch(checkout: Path) -> None:
    document = run_json("jax", "migrate", checkout, "--phase", "1", cwd=checkout)
    assert document["schema"] == "rocwheel.jax.migrate/1"
    assert (document["applied"], document["questions"]) == (False, [])
    assert {edit["phase"] for edit in document["edits"]} == {1}
    assert document["patch"].startswith("diff --git a/jax_rocm_plugin/.bazelrc b/jax_rocm_plugin/.bazelrc\n")


def test_a_dirty_checkout_is_refused(checkout: Path) -> None:
    (checkout / "README.md").write_text("mine\n")
    refused = rocwheel("jax", "migrate", checkout)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        f"error: {checkout}: is not clean: 1 problem\n"
        "  README.md: has changes that are not committed. Commit them, or restore the file.\n"
    )


@pytest.mark.parametrize("phase", ["0", "5", "two"])
def test_there_are_four_phases(checkout: Path, phase: str) -> None:
    assert rocwheel("jax", "migrate", checkout, "--phase", phase).returncode == 2


@pytest.mark.parametrize("files", [0, 1, 7])
def test_a_killed_run_leaves_whole_files_and_the_next_does_the_rest(
    original: RocmJaxCheckout, checkout: Path, tmp_path: Path, files: int
) -> None:
    whole = shutil.copytree(checkout, tmp_path / "whole")
    words = ["--jax", str(original.jax), "--apply", "--quiet"]
    assert rocwheel("jax", "migrate", whole, *words).returncode == 0
    command = [sys.executable, "-c", KILLED, str(files), "jax", "migrate", str(checkout), *words]
    killed = subprocess.run(command, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    status = ["git", "-C", str(checkout), "status", "--porcelain", "--untracked-files=no"]
    changed = subprocess.run(status, check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(changed) <= files
    assert rocwheel("jax", "migrate", checkout, *words).returncode == 0
    compared = subprocess.run(["diff", "-r", "--exclude=.git", checkout, whole], check=False, capture_output=True)
    assert compared.stdout == b""


@needs_setpriv
def test_a_folder_that_cannot_be_written_changes_nothing(original: RocmJaxCheckout, checkout: Path) -> None:
    (checkout / "jax_rocm_plugin").chmod(0o555)
    words = ["jax", "migrate", str(checkout), "--jax", str(original.jax), "--apply"]
    refused = rocwheel(*words, before=as_user(), environ={"HOME": os.devnull})
    (checkout / "jax_rocm_plugin").chmod(0o755)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "jax_rocm_plugin/rocm.toml: is in a folder that can't be written. Check its permissions." in refused.stderr
    assert "nothing was changed" in refused.stderr
    assert not (checkout / "jax_rocm_plugin/rocm_wheel").exists()
