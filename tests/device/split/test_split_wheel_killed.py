"""Splitting of wheels that is killed leaves only whole wheels, and the next run makes the set consistent."""

from __future__ import annotations

import signal
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.code_objects import parse_target_id
from rocwheel.device.split.split_unpacked import split_unpacked
from rocwheel.device.split.split_wheel import split_wheel
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.wheel_metadata import WheelSplitOrder
from rocwheel.wheels.sdist import SourceDate
from tests.support.command_line import rocwheel
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

FIRST = WheelSplitOrder(choice=SplitChoice())
SECOND = WheelSplitOrder(choice=SplitChoice(keep=(parse_target_id("gfx906"),)))
RUN = """
import os, signal
from pathlib import Path
import {module} as module
from rocwheel.binary.code_objects import parse_target_id
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.wheel_metadata import WheelSplitOrder
from rocwheel.device.split.split_{kind} import split_{kind}
from rocwheel.wheels.sdist import SourceDate
module.{name} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
order = WheelSplitOrder(choice=SplitChoice(keep=(parse_target_id("gfx906"),)))
split_{kind}(Path({source!r}), Path({output!r}), order, SourceDate())
"""
SPLITTING = "rocwheel.device.split"
MOMENTS = [
    ("rocwheel.wheels.writing", "WheelWriter.close"),
    (f"{SPLITTING}.split_wheel", "SplitWheels._write_host"),
    (f"{SPLITTING}.split_wheel", "EarlierSplit.remove_stale"),
]


def killed(module: str, name: str, kind: str, source: Path, output: Path) -> bool:
    script = RUN.format(module=module, name=name, kind=kind, source=str(source), output=str(output))
    return subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return make_wheel(tmp_path / "in", "demo", {"demo/libtwo.so": FIXTURES / "v22/libtwo.plain.so"})


@pytest.mark.parametrize(("module", "name"), MOMENTS)
def test_a_killed_split_leaves_only_complete_wheels_and_the_next_run_one_consistent_set(
    wheel: Path, tmp_path: Path, module: str, name: str
) -> None:
    output = tmp_path / "out"
    split_wheel(wheel, output, FIRST, SourceDate())
    assert killed(module, name, "wheel", wheel, output)
    for path in output.glob("*.whl"):
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
    for folder in (output, tmp_path / "fresh"):
        done = rocwheel("device", "split", wheel, "-t", "gfx906", "-q", "--output", folder)
        assert (done.returncode, done.stderr) == (0, "")
    made = {path.name: path.read_bytes() for path in output.iterdir()}
    assert made == {path.name: path.read_bytes() for path in (tmp_path / "fresh").iterdir()}


@pytest.mark.parametrize(("module", "name"), [*MOMENTS[:2], (f"{SPLITTING}.split_unpacked", "_unpack")])
def test_a_killed_split_of_a_folder_leaves_no_output(wheel: Path, tmp_path: Path, module: str, name: str) -> None:
    folder, output = tmp_path / "unpacked", tmp_path / "made/out"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    assert killed(module, name, "unpacked", folder, output)
    assert not output.exists()
    split_unpacked(folder, output, SECOND, SourceDate())
    assert [path.name for path in output.parent.iterdir()] == ["out"]
