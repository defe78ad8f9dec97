"""The GPUs of a machine, made of files that look like its ``/sys`` and ``/dev``."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.sdk.rocm_sdk._gpus import target_name
from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.machine import DetectedGpu, System, find_gpus, native_targets, survey_machine

NODES = "/sys/class/kfd/kfd/topology/nodes"
CPU = "cpu_cores_count 16\nsimd_count 0\ngfx_target_version 0\n"
MakeMachine = Callable[..., System]


def _gpu(version: int, *, minor: int = 128, cores: int = 0, device_id: int = 0x740C) -> str:
    return (
        f"cpu_cores_count {cores}\nsimd_count 416\nmem_banks_count 1\ngfx_target_version {version}\n"
        f"vendor_id 4098\ndevice_id {device_id}\ndrm_render_minor {minor}\nunique_id 11452395193812319281\n"
    )


def test_gpus_of_every_kind_are_found(make_machine: MakeMachine) -> None:
    machine = make_machine(
        CPU, _gpu(90010, device_id=0x740C), _gpu(110000, minor=129, device_id=0x744C), _gpu(100306, minor=130)
    )
    assert find_gpus(machine) == (
        DetectedGpu(1, "gfx90a", "data-center", 0x740C, "/dev/dri/renderD128"),
        DetectedGpu(2, "gfx1100", "desktop", 0x744C, "/dev/dri/renderD129"),
        DetectedGpu(3, "gfx1036", "integrated", 0x740C, "/dev/dri/renderD130"),
    )


def test_two_gpus_of_the_same_kind_are_both_found_but_give_one_native_target(make_machine: MakeMachine) -> None:
    machine = make_machine(CPU, _gpu(90402), _gpu(90402, minor=129))
    assert [gpu.node for gpu in find_gpus(machine)] == [1, 2]
    assert native_targets(machine) == ["gfx942"]


def test_nodes_are_ordered_by_number_not_by_name(make_machine: MakeMachine) -> None:
    machine = make_machine(*[CPU] * 2, *[_gpu(90006)] * 8, _gpu(100300))
    assert [gpu.node for gpu in find_gpus(machine)] == [2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_a_gpu_that_shares_its_node_with_cpu_cores_is_integrated_even_without_a_catalog_kind(
    make_machine: MakeMachine,
) -> None:
    assert find_gpus(make_machine(_gpu(90400, cores=24)))[0].kind == "integrated"


def test_a_machine_without_the_driver_has_no_gpu(make_machine: MakeMachine) -> None:
    assert find_gpus(make_machine()) == ()


@given(st.sampled_from([target.name for target in load_catalog().targets if not target.name.endswith("-strict")]))
def test_the_kfd_version_number_determines_the_target(name: str) -> None:
    major, minor, stepping = next(target.version for target in load_catalog().targets if target.name == name)
    assert target_name(major * 10000 + minor * 100 + stepping) == name


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({}, ["gfx1031", "gfx1036"], id="no override"),
        pytest.param({"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}, ["gfx1030", "gfx1030"], id="one version for all nodes"),
        pytest.param({"HSA_OVERRIDE_GFX_VERSION_1": "10.3.0"}, ["gfx1030", "gfx1036"], id="version of one node"),
        pytest.param(
            {"HSA_OVERRIDE_GFX_VERSION_1": "10.3.0", "HSA_OVERRIDE_GFX_VERSION": "11.0.0"},
            ["gfx1030", "gfx1100"],
            id="the node's version before that of all",
        ),
        pytest.param({"ROCM_BOOTSTRAP_DISABLE_DETECTION": "0"}, ["gfx1031", "gfx1036"], id="not disabled"),
        pytest.param({"HSA_OVERRIDE_GFX_VERSION": "9.0.10"}, ["gfx90a", "gfx90a"], id="stepping in decimal"),
        pytest.param(
            {"ROCM_BOOTSTRAP_FORCE_GFX_ARCH": "gfx942, gfx90a:xnack+", "HSA_OVERRIDE_GFX_VERSION": "10.3.0"},
            ["gfx942", "gfx90a:xnack+"],
            id="forced before all else",
        ),
        pytest.param(
            {"ROCM_BOOTSTRAP_DISABLE_DETECTION": "1", "ROCM_BOOTSTRAP_FORCE_GFX_ARCH": "gfx942"}, [], id="disabled"
        ),
        pytest.param({"ROCM_TARGET_LST": "etc/list", "HSA_OVERRIDE_GFX_VERSION": "10.3.0"}, ["gfx906"], id="a list"),
        pytest.param(
            {"ROCM_TARGET_LST": "etc/list", "ROCM_BOOTSTRAP_FORCE_GFX_ARCH": "gfx908"},
            ["gfx908"],
            id="forced before a list",
        ),
    ],
)
def test_environment_variables_replace_detection(
    make_machine: MakeMachine,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    environ: dict[str, str],
    expected: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {"/etc/list": "gfx000\ngfx906\n"}
    machine = make_machine(CPU, _gpu(100301), _gpu(100306), environ=environ, files=files)
    assert [gpu.target for gpu in find_gpus(machine)] == expected


def test_an_integrated_gpu_with_an_override_stays_integrated(make_machine: MakeMachine) -> None:
    machine = make_machine(_gpu(100301), _gpu(100306), environ={"HSA_OVERRIDE_GFX_VERSION": "10.3.0"})
    assert [(gpu.target, gpu.kind) for gpu in find_gpus(machine)] == [("gfx1030", "desktop"), ("gfx1030", "integrated")]


def test_a_card_with_an_override_to_an_integrated_gpu_is_not_called_integrated(make_machine: MakeMachine) -> None:
    machine = make_machine(_gpu(100301), environ={"HSA_OVERRIDE_GFX_VERSION": "10.3.6"})
    assert [(gpu.target, gpu.kind) for gpu in find_gpus(machine)] == [("gfx1036", "")]


@pytest.mark.parametrize(
    "value", ["gfx942;gfx90a", "gfx942:foo-", "gfx-", "gfx942:", "gfx942:xnack", "gfx942:xnack+:xnack-"]
)
def test_a_forced_name_that_is_not_a_target_id_is_an_error(make_machine: MakeMachine, value: str) -> None:
    message = f"{value!r} is not a GPU target; expected names such as gfx90a or gfx90a:xnack-"
    with pytest.raises(InputError, match=re.escape(message)):
        find_gpus(make_machine(environ={"ROCM_BOOTSTRAP_FORCE_GFX_ARCH": value}))


def test_a_forced_target_with_an_invalid_feature_is_reported_and_the_others_are_kept(
    make_machine: MakeMachine,
) -> None:
    machine = make_machine(environ={"ROCM_BOOTSTRAP_FORCE_GFX_ARCH": "gfx1030:xnack+,gfx90a:xnack+"})
    detection = survey_machine(machine)
    assert [gpu.target for gpu in detection.gpus] == ["gfx90a:xnack+"]
    assert " | ".join(map(str, detection.problems)) == (
        "ROCM_BOOTSTRAP_FORCE_GFX_ARCH: 'gfx1030:xnack+' sets xnack, which compilers don't accept for its processor; "
        "expected no features"
    )


def test_any_target_id_can_be_forced(make_machine: MakeMachine) -> None:
    names = "gfx942,gfx9-4-generic,gfx90a:sramecc+:xnack-,gfx90a:xnack-:sramecc+,gfx1250-strict"
    machine = make_machine(environ={"ROCM_BOOTSTRAP_FORCE_GFX_ARCH": names})
    assert ",".join(gpu.target for gpu in find_gpus(machine)) == names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("gfx906\n#gfx1030\n", ["gfx906"], id="a line turned off"),
        pytest.param("# cards\n\ngfx906  # the first\n gfx908\n", ["gfx906"], id="comments and blanks"),
        pytest.param("gfx906\r\ngfx90a:xnack+\r\n", ["gfx906", "gfx90a:xnack+"], id="lines of Windows"),
        pytest.param("gfx000\n", [], id="none"),
    ],
)
def test_a_target_list_is_read_up_to_comments_from_the_start_of_each_line(
    make_machine: MakeMachine, tmp_path: Path, text: str, expected: list[str]
) -> None:
    (tmp_path / "my.lst").write_text(text, newline="")
    machine = make_machine(environ={"ROCM_TARGET_LST": str(tmp_path / "my.lst")})
    assert [gpu.target for gpu in find_gpus(machine)] == expected


@pytest.mark.parametrize("text", ["", "#gfx906\n", "MI50\n"])
def test_a_list_without_a_target_is_an_error(make_machine: MakeMachine, tmp_path: Path, text: str) -> None:
    path = tmp_path / "my.lst"
    path.write_text(text)
    message = f"ROCM_TARGET_LST={path}: no line begins with a GPU target, such as gfx90a, or with gfx000 for the CPU"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        find_gpus(make_machine(environ={"ROCM_TARGET_LST": str(path)}))


def test_a_file_in_place_of_the_nodes_folder_is_an_error(make_machine: MakeMachine) -> None:
    machine = make_machine(files={NODES: ""})
    message = f"{NODES}: can't be listed (ENOTDIR), so there may be unknown GPUs"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        find_gpus(machine)


def test_wsl_detects_only_the_override(make_machine: MakeMachine) -> None:
    release = {"/proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2\n"}
    assert find_gpus(make_machine(files=release)) == ()
    machine = make_machine(files=release, environ={"HSA_OVERRIDE_GFX_VERSION": "11.0.0"})
    assert [gpu.target for gpu in find_gpus(machine)] == ["gfx1100"]


def test_an_override_in_wsl_does_not_hide_an_invalid_node(make_machine: MakeMachine) -> None:
    detection = survey_machine(
        make_machine("simd_count x\n", files={"/dev/dxg": ""}, environ={"HSA_OVERRIDE_GFX_VERSION": "11.0.0"})
    )
    assert (detection.gpus, len(detection.problems)) == ((), 1)


@pytest.mark.parametrize("version", [91600, 90016, 50000])
def test_a_number_that_corresponds_to_no_name_is_not_a_version(make_machine: MakeMachine, version: int) -> None:
    with pytest.raises(InputError, match=f"'gfx_target_version {version}' is not the version of a GPU"):
        find_gpus(make_machine(_gpu(version)))


def test_an_override_does_not_create_a_gpu(make_machine: MakeMachine) -> None:
    assert find_gpus(make_machine(CPU, environ={"HSA_OVERRIDE_GFX_VERSION": "10.3.0"})) == ()


@pytest.mark.parametrize("code", ["EPERM", "EACCES"])
def test_a_node_hidden_by_a_container_is_left_out(make_machine: MakeMachine, code: str) -> None:
    machine = make_machine(CPU, _gpu(90010), _gpu(90402), refused={f"{NODES}/1/properties": code})
    detection = survey_machine(machine)
    assert [gpu.target for gpu in detection.gpus] == ["gfx942"]
    assert detection.problems == ()


@pytest.mark.parametrize(("number", "target"), [(1, "gfx1030"), (2, "gfx1031")])
def test_an_override_counts_only_nodes_visible_in_the_container(
    make_machine: MakeMachine, number: int, target: str
) -> None:
    machine = make_machine(
        CPU,
        _gpu(90010),
        _gpu(100301),
        environ={f"HSA_OVERRIDE_GFX_VERSION_{number}": "10.3.0"},
        refused={f"{NODES}/1/properties": "EPERM"},
    )
    assert [(gpu.node, gpu.target) for gpu in find_gpus(machine)] == [(2, target)]


def test_a_node_that_cannot_be_read_is_an_error(make_machine: MakeMachine) -> None:
    message = f"{NODES}/1/properties: can't be read (EIO)"
    machine = make_machine(CPU, _gpu(90010), refused={f"{NODES}/1/properties": "EIO"})
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        find_gpus(machine)


@pytest.mark.parametrize(
    ("nodes", "environ", "message"),
    [
        pytest.param(
            ["simd_count 4\ngfx_target_version gfx90a\n"],
            {},
            f"{NODES}/0/properties: 'gfx_target_version gfx90a' is not a property; "
            "expected 'gfx_target_version' and a number",
            id="malformed number",
        ),
        pytest.param(
            ["simd_count\n"],
            {},
            f"{NODES}/0/properties: 'simd_count' is not a property; expected 'simd_count' and a number",
            id="no number",
        ),
        pytest.param(
            ["simd_count 256\ncpu_cores_count 0\n"],
            {},
            f"{NODES}/0/properties: a GPU without gfx_target_version, which Linux 5.13 and later provide; "
            "set HSA_OVERRIDE_GFX_VERSION to its version, such as 9.0.6",
            id="old kernel",
        ),
        pytest.param(
            [""],
            {},
            f"{NODES}/0/properties: is empty; expected properties that include 'simd_count' and a number",
            id="empty",
        ),
        pytest.param(
            ["\0\0\x7fgarbage" + "x" * 100],
            {},
            f"{NODES}/0/properties: begins with '\\x00\\x00\\x7fgarbagexxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'; "
            "expected properties that include 'simd_count' and a number",
            id="garbage",
        ),
        pytest.param(
            ["simd_count 4\ngfx_target_version 999999999\n"],
            {},
            f"{NODES}/0/properties: 'gfx_target_version 999999999' is not the version of a GPU; "
            "expected major * 10000 + minor * 100 + stepping, such as 90010 for gfx90a",
            id="absurd version",
        ),
        pytest.param(
            ["simd_count 4\ngfx_target_version 91900\n"],
            {},
            f"{NODES}/0/properties: 'gfx_target_version 91900' is not the version of a GPU; "
            "expected major * 10000 + minor * 100 + stepping, such as 90010 for gfx90a",
            id="minor version that no name can have",
        ),
        pytest.param(
            ["simd_count 4\ngfx_target_version -90010\n"],
            {},
            f"{NODES}/0/properties: 'gfx_target_version -90010' is not a property; "
            "expected 'gfx_target_version' and a number",
            id="negative version",
        ),
        pytest.param(
            ["simd_count " + "9" * 5000 + "\n"],
            {},
            f"{NODES}/0/properties: 'simd_count {'9' * 5000}' is not a property; expected 'simd_count' and a number",
            id="number without end",
        ),
        pytest.param(
            [_gpu(90006), _gpu(90010)],
            {"HSA_OVERRIDE_GFX_VERSION": "99.99.99"},
            "HSA_OVERRIDE_GFX_VERSION=99.99.99: expected major.minor.stepping, such as 10.3.0",
            id="absurd override, told once",
        ),
        pytest.param(
            [_gpu(90006)],
            {"HSA_OVERRIDE_GFX_VERSION": "gfx906"},
            "HSA_OVERRIDE_GFX_VERSION=gfx906: expected major.minor.stepping, such as 10.3.0",
            id="override that is no version",
        ),
        pytest.param(
            [],
            {"ROCM_BOOTSTRAP_FORCE_GFX_ARCH": "MI300"},
            "ROCM_BOOTSTRAP_FORCE_GFX_ARCH: 'MI300' is not a GPU target; "
            "expected names such as gfx90a or gfx90a:xnack-",
            id="forced name that is no target",
        ),
        pytest.param(
            [],
            {"ROCM_TARGET_LST": "/nowhere"},
            "ROCM_TARGET_LST=/nowhere: the file can't be read; correct the variable or unset it",
            id="list that is not there",
        ),
    ],
)
def test_invalid_input_is_an_error(
    make_machine: MakeMachine, nodes: list[str], environ: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        find_gpus(make_machine(*nodes, environ=environ))


def test_an_invalid_node_hides_no_other_node(make_machine: MakeMachine, caplog: pytest.LogCaptureFixture) -> None:
    machine = make_machine(CPU, "", _gpu(90010), "simd_count 4\ngfx_target_version 999999999\n")
    detection = survey_machine(machine)
    assert [gpu.node for gpu in detection.gpus] == [2]
    assert [problem.source for problem in detection.problems] == [f"{NODES}/1/properties", f"{NODES}/3/properties"]
    with caplog.at_level(logging.WARNING):
        assert native_targets(machine) == ["gfx90a"]
    assert caplog.messages == [str(problem) for problem in detection.problems]


def test_several_invalid_nodes_are_all_reported(make_machine: MakeMachine) -> None:
    message = (
        "GPUs: 2 problems\n"
        f"  {NODES}/0/properties: is empty; expected properties that include 'simd_count' and a number\n"
        f"  {NODES}/1/properties: is empty; expected properties that include 'simd_count' and a number"
    )
    with pytest.raises(ProblemsError, match=f"^{re.escape(message)}$"):
        find_gpus(make_machine("", ""))


def test_native_requires_a_gpu(make_machine: MakeMachine) -> None:
    message = (
        "native: no AMD GPU was found on this machine. "
        "To see why, run `rocwheel targets detect --check`, or specify the targets by name."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        native_targets(make_machine(CPU))


def test_a_relative_list_path_is_resolved_against_the_working_directory(
    make_machine: MakeMachine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.lst").write_text("gfx906\n")
    machine = System(tmp_path / "another machine", {"ROCM_TARGET_LST": "my.lst"}, "linux")
    assert [gpu.target for gpu in find_gpus(machine)] == ["gfx906"]


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux's /proc")
def test_a_file_that_opens_but_cannot_be_read_is_refused_with_the_kernel_error() -> None:
    assert System().refusal("/proc/self/mem") == "EIO"
    assert System().refusal("/proc/self/status") == ""


def test_a_missing_device_is_refused(tmp_path: Path) -> None:
    assert System(tmp_path).device_refusal("/dev/kfd") == "ENOENT"


def test_the_owner_of_a_file_is_reported_by_name_and_number() -> None:
    assert System().owner_group("/dev/null") == ("root", 0)


def test_this_process_is_in_its_own_group() -> None:
    assert System().has_group(os.getegid())
    assert not System().has_group(2**31 - 7)
    assert not System().is_member(2**31 - 7)
