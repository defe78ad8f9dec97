"""The stand-in for the kernel driver, and unmodified HIP runtimes under it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.code_objects import parse_target_id
from trials.gpus.forms import code_hashes, make_form
from trials.gpus.machines import write_machine
from trials.gpus.runtimes import RUNTIMES, ask, prepare, why_not
from trials.gpus.table import FEW_GPUS, Cell, fill, fill_machines

if TYPE_CHECKING:
    from pathlib import Path

DEBIAN_12 = RUNTIMES[0]
BUILT = RUNTIMES[1]._replace(chroot="", library="libc.so.6")
"""What can be built and preloaded here, whether there is a HIP or not."""
needs_gcc = pytest.mark.skipif(bool(why_not(BUILT)), reason=why_not(BUILT) or "gcc is there")
needs_hip = pytest.mark.skipif(bool(why_not(DEBIAN_12)), reason=why_not(DEBIAN_12) or "HIP is there")
pytestmark = [pytest.mark.slow, needs_gcc]

_LOADED = "5af90c71791d621dbf92921bad88bd9b2f8adcc1c38f7d60c9dc4e7f1974c5b2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the stand-in, the witness, and a machine with two GPUs."""
    made = tmp_path_factory.mktemp("standin")
    prepare(BUILT, made)
    write_machine(made / "two", [parse_target_id("gfx90a:sramecc+:xnack-"), parse_target_id("gfx1030")])
    return made


def run(folder: Path, *command: str, machine: str = "two") -> subprocess.CompletedProcess[str]:
    given = {"STANDIN_MACHINE": str(folder / machine)} if machine else {}
    words = ["env", f"LD_PRELOAD={folder / 'standin.so'}", *command]
    return subprocess.run(words, env={**os.environ, **given}, capture_output=True, text=True, check=False, timeout=120)


def python(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    return run(folder, sys.executable, "-I", "-S", "-c", program)


def test_programs_see_the_topology_and_the_devices(folder: Path) -> None:
    done = python(
        folder,
        "import os; print(open('/sys/class/kfd/kfd/topology/nodes/2/gpu_id').read(), end='');"
        "print(sorted(os.listdir('/sys/devices/virtual/kfd/kfd/topology/nodes')));"
        "print(os.readlink(f'/proc/self/fd/{os.open(\"/dev/dri/renderD129\", os.O_RDWR)}'))",
    )
    assert done.stdout == "4661\n['0', '1', '2']\n/memfd:standin:render:129 (deleted)\n"


def test_an_unknown_ioctl_fails_with_its_name_and_number(folder: Path) -> None:
    program = (
        "import os, fcntl\nkfd = os.open('/dev/kfd', os.O_RDWR)\n"
        "for number in (0x26, 0x82):\n"
        "    try: fcntl.ioctl(kfd, ord('K') << 8 | number, bytes(64))\n"
        "    except OSError as e: print(e.strerror)"
    )
    done = python(folder, program)
    assert done.stdout == "Invalid argument\nInvalid argument\n"
    assert done.stderr.splitlines() == [
        "standin: unsupported ioctl of /dev/kfd: AMDKFD_IOC_DBG_TRAP (0x26)",
        "standin: unsupported ioctl of /dev/kfd: 0x82, which Linux doesn't have",
    ]


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        ("", "standin: STANDIN_MACHINE names no folder"),
        ("none", "standin: STANDIN_MACHINE has no file gpus"),
    ],
)
def test_the_stand_in_refuses_to_run_without_a_machine(folder: Path, machine: str, reason: str) -> None:
    done = run(folder, "true", machine=machine)
    assert (done.returncode, done.stderr) == (3, f"{reason}\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts take root")
def test_the_stand_in_refuses_to_run_on_a_machine_with_a_real_device(folder: Path) -> None:
    script = f'mount -t tmpfs none /dev && : > /dev/kfd && LD_PRELOAD={folder / "standin.so"} "$0"'
    command = ["unshare", "--mount", "sh", "-c", script, "/bin/true"]
    environment = {**os.environ, "STANDIN_MACHINE": str(folder / "two")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"this machine allows no mounts: {done.stderr}")
    assert (done.returncode, done.stderr) == (
        3,
        "standin: this machine has a real /dev/kfd, so it needs no stand-in\n",
    )


@needs_hip
def test_the_witness_sees_the_code_object_that_hip_loads(folder: Path) -> None:
    machine = write_machine(folder / "one", [parse_target_id("gfx1030")])
    file = make_form("clang 16", folder / "files/plain")
    [answer] = ask(DEBIAN_12, folder, machine, [file])
    assert (answer.gpu, answer.status, [one.sha256 for one in answer.loaded]) == ("gfx1030", 0, [_LOADED])
    library = make_form("library of clang 16, two bundles", folder / "files/library")
    [answer] = ask(DEBIAN_12, folder, machine, [library])
    assert [one.sha256 for one in answer.loaded] == [_LOADED, _LOADED]
    assert answer.loaded[0].isa == "amdgcn-amd-amdhsa--gfx1030"
    assert code_hashes(file)[_LOADED] == "gfx1030"


@needs_hip
def test_hip_loads_the_code_that_runs_on_predicts(folder: Path) -> None:
    forms = (
        "clang 16",
        "clang 16, retargeted",
        "clang 16, the code object for gfx1030",
        "library of clang 16",
        "library of clang 16, two bundles",
        "library of clang 22, split, with its archives",
    )
    cells = list(fill(DEBIAN_12, folder, FEW_GPUS, forms))
    assert [cell.fault for cell in cells if not cell.agrees] == []
    assert [(cell.gpu, cell.taken) for cell in cells if cell.form == "clang 16, retargeted"] == [
        ("gfx900:xnack-", ""),
        ("gfx906:sramecc+:xnack-", "gfx906"),
        ("gfx90a:sramecc+:xnack+", "gfx90a:xnack+"),
        ("gfx1030", "gfx1030"),
        ("gfx1031", "gfx1031"),
        ("gfx1100", ""),
    ]


@needs_hip
def test_hip_takes_what_runs_on_says_on_a_machine_with_two_gpus(folder: Path) -> None:
    machines = [(parse_target_id("gfx1030"), parse_target_id("gfx1031"))]
    cells = list(fill_machines(DEBIAN_12, folder, machines, ("clang 16", "library of clang 16")))
    assert [cell.fault for cell in cells if not cell.agrees] == []
    assert [(cell.gpu, cell.form, cell.taken, cell.how) for cell in cells] == [
        ("gfx1030", "clang 16", "gfx1030", ""),
        ("gfx1030", "library of clang 16", "", "hipErrorNoBinaryForGpu"),
        ("gfx1031", "clang 16", "", "hipErrorNoBinaryForGpu"),
        ("gfx1031", "library of clang 16", "", "hipErrorNoBinaryForGpu"),
    ]


@pytest.mark.parametrize(
    ("taken", "said", "fault"),
    [
        ("gfx906", "gfx906", ""),
        ("", "", ""),
        ("", "gfx906", "the runtime refuses it (status 209); runs-on says gfx906 (the reason)"),
        ("gfx906", "", "the runtime takes gfx906; runs-on says that nothing runs (the reason)"),
    ],
)
def test_a_cell_agrees_if_both_choose_the_same_code(taken: str, said: str, fault: str) -> None:
    cell = Cell("HIP", "gfx906", "file", 0 if taken else 209, "", taken, said, "the reason")
    assert cell.fault == fault
