"""Splitting and joining that are killed leave nothing, and the next run removes what was hidden."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.device.split.join_tree import join_tree
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from tests.support.fat_libraries import build_fat_library, make_bundle

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SPLIT = """
import os, signal
from pathlib import Path
from rocwheel.binary.kpack.write import KpackWriter
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.split_tree import SplitOrder, split_tree
KpackWriter.finish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
split_tree(Path({tree!r}), Path({output!r}), SplitOrder(choice=SplitChoice()))
"""
JOIN = """
import os, signal, shutil
from pathlib import Path
from rocwheel.device.split.join_tree import join_tree
shutil.copystat = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
join_tree(Path({host!r}), [Path({device!r})], Path({output!r}))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with a fat library."""
    build_fat_library(tmp_path / "tree/lib/libx.so", [make_bundle(0, "gfx906")])
    return tmp_path / "tree"


def killed(script: str) -> bool:
    return subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL


def test_a_killed_split_leaves_no_folder(tree: Path, tmp_path: Path) -> None:
    output = tmp_path / "made/out"
    assert killed(SPLIT.format(tree=str(tree), output=str(output)))
    assert not output.exists()
    split_tree(tree, output, SplitOrder(choice=SplitChoice()))
    assert [path.name for path in output.parent.iterdir()] == ["out"]


def test_a_killed_join_leaves_no_folder(tree: Path, tmp_path: Path) -> None:
    split_tree(tree, tmp_path / "out", SplitOrder(choice=SplitChoice()))
    host, device, output = tmp_path / "out/host", tmp_path / "out/gfx906", tmp_path / "made/fat"
    assert killed(JOIN.format(host=str(host), device=str(device), output=str(output)))
    assert not output.exists()
    join_tree(host, [device], output)
    assert [path.name for path in output.parent.iterdir()] == ["fat"]
