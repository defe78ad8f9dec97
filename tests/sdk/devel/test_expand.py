"""The tree appears whole or not at all, whichever processes expand it or are killed meanwhile."""

from __future__ import annotations

import csv
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.sdk.devel.trees import TREE, describe

if TYPE_CHECKING:
    from tests.sdk.installed import Installed, MakeEnvironment, MakeSet

pytestmark = pytest.mark.slow

KILLER = """
import os, signal, sys
from rocm_sdk._devel import get_devel_root
import rocm_sdk._devel.expand, tarfile, lzma
steps = int(sys.argv[1])
def count(event, arguments):
    global steps
    if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "fcntl.flock"):
        steps -= 1
        if steps < 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
get_devel_root()
"""
INTERRUPTER = """
import os, signal, sys
sys.argv = ["rocm-sdk", "init"]
def interrupt(event, arguments):
    if event == "os.link":
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(interrupt)
"""


def test_record_lists_the_tree_and_its_files_in_the_form_of_csv(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    with next(environment.site.glob("rocm_sdk_devel-*/RECORD")).open(newline="") as file:
        rows = list(csv.reader(file))
    assert {len(row) for row in rows} == {3}
    names = [row[0] for row in rows]
    assert len(names) == len(set(names))
    assert {"_rocm_sdk_devel", "_rocm_sdk_devel.partial", "_rocm_sdk_devel/include/hip/hip, runtime.h"} <= set(names)
    assert {f"_rocm_sdk_devel/{name}" for name in TREE} <= set(names)


def test_many_processes_at_once_all_succeed(environment: Installed) -> None:
    command = [str(environment.path / "bin/hipcc"), "--version"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(8)]
    outcomes = [(*process.communicate(), process.returncode) for process in processes]
    assert outcomes == [(f"script {environment.root}/bin --version\n".encode(), b"", 0)] * 8
    assert describe(environment.root) == TREE


def test_kill_at_any_step_leaves_what_the_next_process_finishes(environment: Installed) -> None:
    # Given a process that is killed after 1, 2, 3 ... system calls that change or open files
    stages = set()
    for steps in range(1, 400):
        done = environment.run("python", "-c", KILLER, str(steps), check=False)
        stages.add((environment.root.exists(), environment.root.with_suffix(".partial").exists()))
        if done.returncode == 0:
            break
        assert done.returncode == -9
        # Then the tree is either whole or absent
        assert not environment.root.exists() or describe(environment.root) == TREE
    assert steps > 40
    assert stages == {(False, False), (False, True), (True, False)}
    assert describe(environment.root) == TREE


@pytest.mark.parametrize(
    "call",
    [
        pytest.param("from rocm_sdk._cli import main; main()", id="rocm-sdk init"),
        pytest.param("from rocm_sdk_core._cli import hipcc; hipcc()", id="hipcc"),
    ],
)
def test_interrupt_while_expanding_ends_without_a_word_and_leaves_no_half_tree(
    environment: Installed, call: str
) -> None:
    command = [str(environment.python), "-c", INTERRUPTER + call]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    assert list(environment.site.glob("_rocm_sdk_devel*")) == []
    assert environment.run("rocm-sdk", "path", "--root").stdout == f"{environment.root}\n"


@pytest.mark.parametrize(
    ("tool", "steps"), [*(("pip", n) for n in (4, 9, 40)), *(("uv", n) for n in (2, 4, 6, 9, 12, 20, 40))]
)
def test_uninstall_after_a_kill_leaves_nothing(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str, steps: int
) -> None:
    environment = make_environment(make_set(), tool)
    before = environment.files()
    environment.install("rocm[devel]")
    killed = environment.run("python", "-c", KILLER, str(steps), check=False)
    assert killed.returncode == -9
    environment.uninstall("rocm-sdk-devel", "rocm-sdk-core", "rocm-sdk-libraries", "rocm")
    assert environment.files() == before
