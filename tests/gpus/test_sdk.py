"""Selection of packages, and Debian's rocminfo, on machines that the stand-in presents: all see the same GPUs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.code_objects import parse_target_id
from tests.support.sample_sdk import sample_dist
from trials.gpus.machines import write_machine
from trials.gpus.runtimes import RUNTIMES, prepare, why_not

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["sample_dist"]

BUILT = RUNTIMES[1]._replace(chroot="", library="libc.so.6")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not(BUILT)), reason=why_not(BUILT) or "gcc is there"),
]
needs_rocminfo = pytest.mark.skipif(
    bool(why_not(RUNTIMES[0])) or shutil.which("rocminfo") is None, reason="no rocminfo of Debian 12"
)

MACHINES = {
    "one card": "gfx1030",
    "two different cards": "gfx90a:sramecc+:xnack- gfx1030",
    "a processor's GPU and a card": "gfx1035 gfx1030",
    "no package": "gfx1013:xnack-",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the stand-in and each machine."""
    made = tmp_path_factory.mktemp("standin")
    prepare(BUILT, made)
    for name, gpus in MACHINES.items():
        write_machine(made / name, list(map(parse_target_id, gpus.split())))
    return made


def run(folder: Path, machine: str, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    given = {"STANDIN_MACHINE": str(folder / machine), "LD_PRELOAD": str(folder / "standin.so"), **variables}
    words = ["env", *(f"{name}={value}" for name, value in given.items()), *command]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)


@needs_rocminfo
@pytest.mark.parametrize(
    ("machine", "variables", "seen", "detected"),
    [
        ("one card", {}, ["gfx1030"], ["gfx1030"]),
        ("two different cards", {}, ["gfx90a", "gfx1030"], ["gfx90a", "gfx1030"]),
        # Packages are for the machine, not for one process.
        ("two different cards", {"ROCR_VISIBLE_DEVICES": "1"}, ["gfx1030"], ["gfx90a", "gfx1030"]),
        ("a processor's GPU and a card", {}, ["gfx1035", "gfx1030"], ["gfx1035", "gfx1030"]),
        (
            "a processor's GPU and a card",
            {"HSA_OVERRIDE_GFX_VERSION": "10.3.0"},
            ["gfx1030", "gfx1030"],
            ["gfx1030", "gfx1030"],
        ),
    ],
)
def test_rocminfo_and_the_detection_see_the_gpus_of_the_machine(
    folder: Path, machine: str, variables: dict[str, str], seen: list[str], detected: list[str]
) -> None:
    told = run(folder, machine, "rocminfo", **variables).stdout
    assert re.findall(r"^  Name: +(gfx\w+)", told, re.MULTILINE) == seen
    found = run(folder, machine, sys.executable, "-m", "rocwheel", "targets", "detect", **variables).stdout
    assert [line.split()[0] for line in found.splitlines()] == detected


@needs_rocminfo
def test_the_agent_enumerator_reads_the_topology(folder: Path) -> None:
    told = run(folder, "two different cards", "rocm_agent_enumerator").stdout
    assert told.split() == ["gfx000", "gfx90a", "gfx1030"]  # the first is the processor


@pytest.mark.parametrize(
    ("machine", "chosen"),
    [("one card", {"gfx1030"}), ("two different cards", {"gfx90a", "gfx1030"})],
)
def test_pip_chooses_the_packages_for_the_gpus_of_the_machine(
    folder: Path, sample_dist: Path, machine: str, chosen: set[str]
) -> None:
    done = run(folder, machine, *_pip(sample_dist))
    [line] = [line for line in done.stdout.splitlines() if line.startswith("Would install")]
    assert {word.split("-")[3] for word in line.split() if "-device-" in word} == chosen


def test_pip_says_that_no_package_serves_the_gpu_of_the_machine(folder: Path, sample_dist: Path) -> None:
    done = run(folder, "no package", *_pip(sample_dist))
    assert done.returncode == 1
    assert "this.release.has.no.packages.for.the.gpus.found.gfx1013" in done.stdout + done.stderr


def _pip(dist: Path) -> list[str]:
    words = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-index"]
    return [*words, "--no-build-isolation", "--find-links", str(dist), "rocm[device]"]


def test_programs_see_the_module_and_the_device_files(folder: Path) -> None:
    program = (
        "import os; print(sorted(os.listdir('/dev/dri')), os.path.exists('/dev/kfd'),"
        "os.access('/dev/dri/renderD129', os.R_OK | os.W_OK), open('/sys/module/amdgpu/initstate').read(),"
        "os.path.isdir('/sys/class/kfd/kfd/topology/nodes/2'), os.path.exists('/dev/dri/renderD140'))"
    )
    done = run(folder, "two different cards", sys.executable, "-I", "-S", "-c", program)
    assert done.stdout == "['renderD128', 'renderD129'] True True live\n True False\n"
