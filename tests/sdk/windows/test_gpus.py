"""The GPUs of Windows, as AMD's clinfo and hipInfo list them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.sdk.rocm_sdk._gpu_access import survey_access
from rocwheel.sdk.rocm_sdk._gpus import survey_gpus
from rocwheel.sdk.rocm_sdk._system import System

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.sdk.windows.windows_side import WindowsSite

CLINFO = "C:\\Windows\\System32\\clinfo.exe"
HIPINFO = "C:\\Program Files\\AMD\\ROCm\\7.1\\bin\\hipInfo.exe"
DEVICE = """\
  Device Type:                                   CL_DEVICE_TYPE_{kind}
  Vendor ID:                                     1002h
  Board name:                                    AMD Radeon(TM) 8060S Graphics
  Device Topology:                               PCI[ B#194, D#0, F#0 ]
  Max compute units:                             20
  Name:                                          {name}
  Vendor:                                        Advanced Micro Devices, Inc.
"""
HEAD = """\
Number of platforms:                             1
  Platform Profile:                              FULL_PROFILE
  Platform Version:                              OpenCL 2.1 AMD-APP (3652.0)
  Platform Name:                                 AMD Accelerated Parallel Processing
  Platform Vendor:                               Advanced Micro Devices, Inc.

  Platform Name:                                 AMD Accelerated Parallel Processing
Number of devices:                               2
"""


class Machine(System):
    """Windows, on which programs print what they are said to, and others are absent."""

    def __init__(self, printed: Mapping[str, str], **variables: str) -> None:
        super().__init__(environ=variables, platform="win32")
        self.printed = printed

    def output(self, program: str) -> str | None:
        """Return what is printed."""
        return self.printed.get(program)


def clinfo(*names: str, kind: str = "GPU") -> str:
    return HEAD + "".join(DEVICE.format(kind=kind, name=name) for name in names)


def targets(machine: Machine) -> list[str]:
    gpus, problems = survey_gpus(machine)
    assert problems == []
    return [gpu.target for gpu in gpus]


def test_gpus_are_those_listed_by_clinfo_in_the_system_folder() -> None:
    assert targets(Machine({CLINFO: clinfo("gfx1151", "gfx1100")})) == ["gfx1151", "gfx1100"]


def test_integrated_gpus_are_marked() -> None:
    gpus, _ = survey_gpus(Machine({CLINFO: clinfo("gfx1151", "gfx1010:xnack-")}))
    assert [(gpu.target, gpu.integrated) for gpu in gpus] == [("gfx1151", True), ("gfx1010:xnack-", False)]


def test_the_system_folder_comes_from_the_variable() -> None:
    assert targets(Machine({"D:\\Win\\System32\\clinfo.exe": clinfo("gfx1100")}, SystemRoot="D:\\Win")) == ["gfx1100"]


def test_devices_other_than_amd_gpus_are_left_out() -> None:
    text = clinfo("gfx1100", kind="CPU") + clinfo("NVIDIA GeForce RTX 4090") + clinfo("gfx1201")
    assert targets(Machine({CLINFO: text})) == ["gfx1201"]


@pytest.mark.parametrize("printed", [{}, {CLINFO: clinfo()}], ids=["no clinfo", "no device"])
def test_hip_info_from_the_hip_sdk_is_used_if_clinfo_lists_nothing(printed: dict[str, str]) -> None:
    text = "device#                           0\nName:                   AMD Radeon\ngcnArchName:       gfx1100\n"
    machine = Machine({**printed, HIPINFO: text}, HIP_PATH="C:\\Program Files\\AMD\\ROCm\\7.1\\")
    assert targets(machine) == ["gfx1100"]


def test_an_invalid_target_name_is_reported_with_the_program_that_printed_it() -> None:
    gpus, [problem] = survey_gpus(Machine({CLINFO: clinfo("gfx!")}))
    assert gpus == []
    assert str(problem) == f"{CLINFO}: 'gfx!' is not a GPU target; expected names such as gfx90a or gfx90a:xnack-"


def test_variables_take_precedence_over_programs() -> None:
    printed = {CLINFO: clinfo("gfx1100")}
    assert targets(Machine(printed, ROCM_BOOTSTRAP_FORCE_GFX_ARCH="gfx1030,gfx1201")) == ["gfx1030", "gfx1201"]
    assert targets(Machine(printed, ROCM_BOOTSTRAP_DISABLE_DETECTION="1")) == []


def findings(machine: Machine, *, require_gpu: bool = False) -> list[tuple[str, str, str]]:
    return [tuple(one) for one in survey_access(machine, require_gpu=require_gpu)[1]]  # type: ignore[misc]


def test_a_machine_with_a_gpu_has_no_findings() -> None:
    assert findings(Machine({CLINFO: clinfo("gfx1100")}), require_gpu=True) == []


def test_a_machine_without_the_driver_is_told_what_to_install() -> None:
    assert findings(Machine({})) == [
        (
            "note",
            f"no AMD GPU was found: {CLINFO}, a part of AMD's graphics driver, can't be run",
            "Install AMD Software: Adrenalin Edition",
        )
    ]


def test_a_missing_required_gpu_is_an_error() -> None:
    assert findings(Machine({CLINFO: clinfo()}), require_gpu=True) == [
        ("note", f"no AMD GPU was found: {CLINFO} lists no GPU", ""),
        (
            "error",
            "a GPU is required, but none was found",
            "clinfo.exe lists the GPUs that the graphics driver finds",
        ),
    ]


def test_a_variable_that_replaces_detection_is_reported() -> None:
    assert findings(Machine({}, ROCM_BOOTSTRAP_FORCE_GFX_ARCH="gfx1100")) == [
        (
            "note",
            "ROCM_BOOTSTRAP_FORCE_GFX_ARCH=gfx1100 overrides the GPUs that the driver lists",
            "Remove the variable ROCM_BOOTSTRAP_FORCE_GFX_ARCH",
        )
    ]


@pytest.mark.slow
def test_a_program_that_fails_gives_no_output() -> None:
    assert System(platform="win32").output("/bin/false") is None
    assert System(platform="win32").output("/nowhere/clinfo.exe") is None


def test_windows_packages_are_chosen_for_the_gpus_that_clinfo_lists(site: WindowsSite) -> None:
    select = site.load("rocm_sdk._select").select
    chosen = select(Machine({CLINFO: clinfo("gfx1151")}))
    assert (chosen.families, chosen.explanation) == (("gfx1151",), "gfx1151 chosen for the GPUs found: gfx1151")
    other = select(Machine({CLINFO: clinfo("gfx1100")}))
    assert (other.families, other.explanation) == (
        (),
        "this release has no packages for the GPUs found: gfx1100",
    )


@pytest.mark.parametrize("sdk", [".", "sdk", "..\\sdk", "\\sdk", "C:sdk"])
def test_a_relative_sdk_path_runs_no_program_in_the_working_directory(sdk: str) -> None:
    assert targets(Machine({f"{sdk}\\bin\\hipInfo.exe": "gcnArchName: gfx1100\n"}, HIP_PATH=sdk)) == []
