"""Ctrl-C at any moment of ``rocm-sdk init`` ends it with one line, and leaves what the next run finishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.sdk.devel.trees import TREE, describe
from tests.support.record_check import record_faults

if TYPE_CHECKING:
    from tests.sdk.installed import Installed

pytestmark = pytest.mark.slow

LINE = "rocm-sdk: interrupted; the next run starts over\n"

_AFTER_THE_MOVE = """
import pathlib
from rocm_sdk._cli import main
replace = pathlib.Path.replace
def interrupted(path, target):
    done = replace(path, target)
    if target.name == "_rocm_sdk_devel":
        raise KeyboardInterrupt
    return done
pathlib.Path.replace = interrupted
main(["init"])
"""


def test_record_still_lists_a_tree_interrupted_right_after_its_creation(environment: Installed) -> None:
    """An uninstall would leave all of it."""
    done = environment.run("python", "-c", _AFTER_THE_MOVE, check=False)
    assert (done.returncode, done.stderr) == (130, LINE)
    assert describe(environment.root) == TREE
    assert record_faults(environment.site) == []
    environment.uninstall("rocm-sdk-devel")
    assert not environment.root.exists()


_AT_A_STEP = """
import os, signal, sys
from rocm_sdk._cli import main
import argparse, lzma, tarfile, rocm_sdk._commands, rocm_sdk._devel_expansion
steps = int(sys.argv[1])
def count(event, arguments):
    global steps
    if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.utime"):
        steps -= 1
        if steps == 0:
            os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(count)
main(["init"])
"""


def test_an_interrupt_at_any_step_leaves_a_whole_tree_or_no_tree(environment: Installed) -> None:
    environment.install("rocm-sdk-device-gfx906")
    ends = set()
    for steps in range(1, 400):
        done = environment.run("python", "-c", _AT_A_STEP, str(steps), check=False)
        assert (done.returncode, done.stderr) in [(130, LINE), (0, "")], steps
        whole = environment.root.exists()
        assert record_faults(environment.site) == [], steps
        assert not whole or describe_without_devices(environment) == TREE, steps
        ends.add((done.returncode, whole))
        if done.returncode == 0:
            break
    assert steps > 50
    assert ends == {(130, False), (130, True), (0, True)}
    assert [path.name for path in (environment.site / "rocm_sdk_devel").glob("[!_]*")] == []


def describe_without_devices(environment: Installed) -> dict[str, str]:
    return {path: what for path, what in describe(environment.root).items() if "gfx906" not in path}
