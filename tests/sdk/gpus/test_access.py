"""Whether a user can reach the GPUs of a machine, tested through `rocwheel.targets.machine.check_machine`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.targets.machine import Diagnosis, check_machine

if TYPE_CHECKING:
    from pathlib import Path

GPU = "simd_count 416\ngfx_target_version 90010\ndrm_render_minor 128\n"
DEVICES = {"/dev/kfd": "", "/dev/dri/renderD128": ""}
NODES = "/sys/class/kfd/kfd/topology/nodes"
RULES = (
    """printf '%s\\n' 'KERNEL=="kfd", GROUP="render", MODE="0660"' 'KERNEL=="renderD*", GROUP="render", MODE="0660"'"""
    " | sudo tee --append /etc/udev/rules.d/70-amdgpu.rules && sudo udevadm control --reload && sudo udevadm trigger"
)
CARD = {
    "/sys/bus/pci/devices/0000:03:00.0/vendor": "0x1002\n",
    "/sys/bus/pci/devices/0000:03:00.0/class": "0x030000\n",
    "/sys/module/amdgpu/initstate": "live\n",
}
NO_GPU = (
    "note",
    "no AMD GPU was found: neither /sys/class/kfd/kfd/topology/nodes nor /sys/bus/pci/devices shows one",
    "lspci -d 1002: lists AMD devices",
)
MakeMachine = Callable[..., Any]


def _findings(machine: Any) -> list[tuple[str, str, str]]:
    return [(finding.level, finding.text, finding.remedy) for finding in check_machine(machine).findings]


def test_a_machine_with_working_devices_has_no_findings(make_machine: MakeMachine) -> None:
    report = check_machine(make_machine(GPU, files=DEVICES))
    assert (report.gpus, report.findings, report.usable) == (("gfx90a",), (), True)


def test_a_machine_without_a_gpu_passes_with_a_note(make_machine: MakeMachine) -> None:
    report = check_machine(make_machine())
    assert report.findings == (Diagnosis(*NO_GPU),)
    assert report.usable


@pytest.mark.parametrize(
    ("files", "remedy"),
    [
        pytest.param({}, "sudo modprobe amdgpu && sudo udevadm trigger", id="on the host"),
        pytest.param(
            {"/.dockerenv": ""}, "Start the container with --device=/dev/kfd --device=/dev/dri.", id="in a container"
        ),
    ],
)
def test_missing_devices_are_errors(make_machine: MakeMachine, files: dict[str, str], remedy: str) -> None:
    assert _findings(make_machine(GPU, files=files)) == [
        ("error", "/dev/kfd does not exist", remedy),
        ("error", "/dev/dri/renderD128 does not exist", remedy),
    ]


@pytest.mark.parametrize(
    ("changes", "files", "text", "remedy"),
    [
        pytest.param(
            {},
            {},
            "/dev/kfd can't be opened by ada, who is not in its group render",
            "sudo usermod --append --groups render ada, then log in again",
            id="not in the group",
        ),
        pytest.param(
            {"member_groups": {109}},
            {},
            "/dev/kfd can't be opened by ada, who is not in its group render yet",
            "Log out and in again, or: newgrp render",
            id="in the group from the next login on",
        ),
        pytest.param(
            {},
            {"/run/.containerenv": ""},
            "/dev/kfd can't be opened by ada, who is not in its group render",
            "Start the container with --group-add 109.",
            id="in a container",
        ),
        pytest.param(
            {"session_groups": {109}},
            {},
            "/dev/kfd can't be opened by ada, even though the process is in its group render",
            "sudo chmod g+rw /dev/kfd",
            id="group without permission",
        ),
        pytest.param(
            {"owners": {"/dev/kfd": 65534}},
            {"/run/.containerenv": ""},
            "/dev/kfd can't be opened by ada, who has no group from the host",
            "Start the container with --group-add keep-groups.",
            id="rootless container",
        ),
        pytest.param(
            {"owners": {"/dev/kfd": 4711}},
            {"/run/.containerenv": "", "/proc/sys/kernel/overflowgid": "4711\n"},
            "/dev/kfd can't be opened by ada, who has no group from the host",
            "Start the container with --group-add keep-groups.",
            id="rootless container, another overflow group",
        ),
        pytest.param(
            {"owners": {"/dev/kfd": 65534}, "session_groups": {65534}},
            {"/run/.containerenv": ""},
            "/dev/kfd can't be opened by ada, even though the process has groups from the host",
            "On the host, add the user to the group that this command shows: ls -l /dev/kfd",
            id="rootless container with the groups of the host",
        ),
        pytest.param(
            {"owners": {"/dev/kfd": 0}},
            {"/.dockerenv": ""},
            "/dev/kfd can't be opened by ada: only root has access",
            f"On the host: {RULES}",
            id="no udev rule on the host of a container",
        ),
        pytest.param(
            {"owners": {"/dev/kfd": 0}},
            {},
            "/dev/kfd can't be opened by ada: only root has access",
            RULES,
            id="no udev rule",
        ),
    ],
)
def test_a_device_without_permission_is_reported_with_the_command_that_grants_it(
    make_machine: MakeMachine, changes: dict[str, Any], files: dict[str, str], text: str, remedy: str
) -> None:
    machine = make_machine(GPU, files={**DEVICES, **files}, refused={"/dev/kfd": "EACCES"})
    for name, value in changes.items():
        setattr(machine, name, value)
    assert _findings(machine) == [("error", text, remedy)]


def test_the_suggested_udev_rules_cover_both_devices_and_extend_existing_rules(
    make_machine: MakeMachine, tmp_path: Path
) -> None:
    machine = make_machine(GPU, files=DEVICES, refused={"/dev/dri/renderD128": "EACCES"})
    machine.owners["/dev/dri/renderD128"] = 0
    [(_, text, remedy)] = _findings(machine)
    assert text == "/dev/dri/renderD128 can't be opened by ada: only root has access"
    rules = tmp_path / "70-amdgpu.rules"
    rules.write_text("# mine\n")
    commands = remedy.partition(" && ")[0].replace("sudo tee", "tee").replace("/etc/udev/rules.d", str(tmp_path))
    subprocess.run(["sh", "-c", commands], check=True, capture_output=True)
    assert rules.read_text().splitlines() == [
        "# mine",
        'KERNEL=="kfd", GROUP="render", MODE="0660"',
        'KERNEL=="renderD*", GROUP="render", MODE="0660"',
    ]


def test_a_kubernetes_pod_is_a_container(make_machine: MakeMachine) -> None:
    machine = make_machine(GPU, environ={"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    assert {finding.remedy for finding in check_machine(machine).findings} == {
        "Start the container with --device=/dev/kfd --device=/dev/dri."
    }


def test_a_device_not_passed_to_the_container_is_an_error(make_machine: MakeMachine) -> None:
    machine = make_machine(GPU, files=DEVICES, environ={"container": "podman"}, refused={"/dev/kfd": "EPERM"})
    remedy = "Start the container with --device=/dev/kfd --device=/dev/dri."
    assert _findings(machine) == [("error", "/dev/kfd can't be opened (EPERM)", remedy)]


def test_a_card_without_the_driver_is_an_error(make_machine: MakeMachine) -> None:
    card = {"vendor": "0x1002\n", "class": "0x030000\n"}
    files = {f"/sys/bus/pci/devices/0000:03:00.0/{name}": text for name, text in card.items()}
    text = f"PCI shows 0000:03:00.0 from AMD, but there is no GPU in {NODES}: the kernel driver is not loaded"
    assert _findings(make_machine(files=files)) == [("error", text, "sudo modprobe amdgpu")]


def test_a_card_that_the_driver_does_not_list_is_an_error(make_machine: MakeMachine) -> None:
    files = {
        "/sys/bus/pci/devices/0000:c1:00.0/vendor": "0x1002\n",
        "/sys/bus/pci/devices/0000:c1:00.0/class": "0x120000\n",
        "/sys/module/amdgpu/initstate": "live\n",
    }
    text = f"PCI shows 0000:c1:00.0 from AMD, but there is no GPU in {NODES}: the kernel driver has no KFD node for it"
    assert _findings(make_machine(files=files)) == [("error", text, "dmesg | grep -i kfd")]


@pytest.mark.parametrize(
    ("vendor", "kind"),
    [pytest.param("0x10de", "0x030000", id="card of another vendor"), pytest.param("0x1002", "0x040300", id="audio")],
)
def test_other_pci_devices_are_not_gpus(make_machine: MakeMachine, vendor: str, kind: str) -> None:
    folder = "/sys/bus/pci/devices/0000:03:00.0"
    machine = make_machine(files={f"{folder}/vendor": vendor, f"{folder}/class": kind})
    assert _findings(machine) == [NO_GPU]


def test_nodes_that_the_kernel_hides_are_reported(make_machine: MakeMachine) -> None:
    machine = make_machine(GPU, GPU, files=DEVICES, refused={f"{NODES}/1/properties": "EPERM"})
    assert _findings(machine) == [
        (
            "note",
            "the kernel hides KFD node 1 from this process",
            "Request GPUs when you start the job, for example, with the scheduler's --gpus option.",
        )
    ]


def test_a_card_with_a_hidden_node_is_not_a_driver_error(make_machine: MakeMachine) -> None:
    machine = make_machine(GPU, files=CARD, environ={"container": "podman"}, refused={f"{NODES}/0/properties": "EPERM"})
    remedy = "Start the container with --device=/dev/kfd --device=/dev/dri."
    assert _findings(machine) == [
        ("note", "the kernel hides KFD node 0 from this process", remedy),
        ("note", "no AMD GPU was found", ""),
    ]


@pytest.mark.parametrize("variable", ["ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "ROCM_TARGET_LST"])
def test_targets_forced_by_a_variable_are_not_gpus(
    make_machine: MakeMachine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    monkeypatch.chdir(tmp_path)
    machine = make_machine(environ={variable: "gfx906"}, files={"/gfx906": "gfx906"})
    text = f"{variable}=gfx906 overrides the GPUs that the kernel lists"
    none = f"no AMD GPU was found on this machine: {variable} sets the listed GPUs"
    notes = (Diagnosis("note", none, ""), Diagnosis("note", text, f"unset {variable}"))
    assert check_machine(machine).findings == notes
    assert check_machine(machine).usable
    assert not check_machine(machine, require_gpu=True).usable


def test_the_real_gpus_are_checked_even_if_a_variable_forces_others(make_machine: MakeMachine) -> None:
    machine = make_machine(GPU, files={"/dev/kfd": ""}, environ={"ROCM_BOOTSTRAP_FORCE_GFX_ARCH": "gfx906,gfx1030"})
    assert [text for _, text, _ in _findings(machine)] == [
        "/dev/dri/renderD128 does not exist",
        "ROCM_BOOTSTRAP_FORCE_GFX_ARCH=gfx906,gfx1030 overrides the GPUs that the kernel lists",
    ]


@pytest.mark.parametrize(
    ("variable", "value", "effect"),
    [
        ("HSA_OVERRIDE_GFX_VERSION", "9.0.6", "makes every GPU run code for that version"),
        ("HSA_OVERRIDE_GFX_VERSION_0", "9.0.6", "makes the GPU of KFD node 0 run code for that version"),
        ("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "gfx906", "overrides the GPUs that the kernel lists"),
        ("ROCM_TARGET_LST", "my.lst", "overrides the GPUs that the kernel lists"),
    ],
)
def test_an_override_is_reported(
    make_machine: MakeMachine,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variable: str,
    value: str,
    effect: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    machine = make_machine(GPU, files={**DEVICES, "/my.lst": "gfx906"}, environ={variable: value})
    report = check_machine(machine)
    assert report.gpus == ("gfx906",)
    assert report.findings == (Diagnosis("note", f"{variable}={value} {effect}", f"unset {variable}"),)


def test_an_override_is_reported_with_the_node_number_the_runtime_uses(make_machine: MakeMachine) -> None:
    variables = {"HSA_OVERRIDE_GFX_VERSION_0": "9.0.6", "HSA_OVERRIDE_GFX_VERSION_1": "9.0.6"}
    machine = make_machine(GPU, GPU, files=DEVICES, environ=variables, refused={f"{NODES}/0/properties": "EPERM"})
    assert [text for _, text, _ in _findings(machine)][1:] == [
        "HSA_OVERRIDE_GFX_VERSION_0=9.0.6 makes the GPU of KFD node 1 run code for that version"
    ]


def test_the_variable_that_disables_detection_is_reported(make_machine: MakeMachine) -> None:
    machine = make_machine(GPU, files=DEVICES, environ={"ROCM_BOOTSTRAP_DISABLE_DETECTION": "1"})
    text = "ROCM_BOOTSTRAP_DISABLE_DETECTION=1 overrides the GPUs that the kernel lists"
    assert _findings(machine) == [
        ("note", "no AMD GPU was found", ""),
        ("note", text, "unset ROCM_BOOTSTRAP_DISABLE_DETECTION"),
    ]


def test_wsl_is_distinguished_from_a_machine_without_a_gpu(make_machine: MakeMachine) -> None:
    assert _findings(make_machine(files={"/dev/dxg": ""})) == [
        (
            "note",
            "this is the Windows Subsystem for Linux, which doesn't show GPUs in sysfs",
            "export ROCM_SDK_TARGET_FAMILY=gfx... for the GPU that Windows has",
        )
    ]


WSL = {"/proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2\n"}
WSL_OVERRIDE = ("note", "HSA_OVERRIDE_GFX_VERSION=11.0.0 makes every GPU run code for that version")


@pytest.mark.parametrize(
    ("files", "refused", "expected"),
    [
        pytest.param({"/dev/dxg": ""}, {}, [WSL_OVERRIDE], id="device opens"),
        pytest.param({}, {}, [("error", "/dev/dxg does not exist"), WSL_OVERRIDE], id="no device"),
        pytest.param(
            {"/dev/dxg": ""},
            {"/dev/dxg": "EPERM"},
            [("error", "/dev/dxg can't be opened (EPERM)"), WSL_OVERRIDE],
            id="device of others",
        ),
    ],
)
def test_wsl_checks_the_windows_device(
    make_machine: MakeMachine, files: dict[str, str], refused: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    machine = make_machine(files={**WSL, **files}, environ={"HSA_OVERRIDE_GFX_VERSION": "11.0.0"}, refused=refused)
    assert [finding[:2] for finding in _findings(machine)] == expected


def test_nodes_that_cannot_be_listed_are_an_error(make_machine: MakeMachine) -> None:
    machine = make_machine(GPU, refused={NODES: "EACCES"})
    text = f"{NODES}: can't be listed (EACCES), so there may be unknown GPUs"
    assert _findings(machine) == [("error", text, f"ls --directory -l {NODES}")]


def test_nodes_that_cannot_be_listed_do_not_matter_if_a_variable_forces_targets(make_machine: MakeMachine) -> None:
    machine = make_machine(
        files=DEVICES, environ={"ROCM_BOOTSTRAP_FORCE_GFX_ARCH": "gfx906"}, refused={NODES: "EACCES"}
    )
    assert [finding.level for finding in check_machine(machine).findings] == ["note"]


def test_an_invalid_topology_is_an_error(make_machine: MakeMachine) -> None:
    report = check_machine(make_machine("simd_count x\n"))
    assert not report.usable
    expected = f"{NODES}/0/properties: 'simd_count x' is not a property; expected 'simd_count' and a number"
    assert report.findings == (Diagnosis("error", expected, "dmesg | grep -i kfd"),)


def test_a_property_with_a_separator_before_its_number_is_reported(make_machine: MakeMachine) -> None:
    [finding] = check_machine(make_machine("simd_count \x1f0\n")).findings
    assert finding.text.startswith(f"{NODES}/0/properties: 'simd_count \\x1f0' is not a property")


def test_an_invalid_variable_is_an_error(make_machine: MakeMachine) -> None:
    machine = make_machine(GPU, environ={"HSA_OVERRIDE_GFX_VERSION": "gfx906"})
    text = "HSA_OVERRIDE_GFX_VERSION=gfx906: expected major.minor.stepping, such as 10.3.0"
    assert _findings(machine) == [("error", text, "unset HSA_OVERRIDE_GFX_VERSION")]


def test_an_invalid_node_is_reported_and_access_to_the_others_is_checked(make_machine: MakeMachine) -> None:
    report = check_machine(make_machine(GPU, "", files={"/dev/kfd": ""}))
    assert report.gpus == ("gfx90a",)
    assert [finding.text for finding in report.findings] == [
        f"{NODES}/1/properties: is empty; expected properties that include 'simd_count' and a number",
        "/dev/dri/renderD128 does not exist",
    ]


def test_a_required_gpu_is_missing_if_no_node_is_valid(make_machine: MakeMachine) -> None:
    report = check_machine(make_machine("simd_count x\n"), require_gpu=True)
    assert [finding.text for finding in report.findings][1:] == ["a GPU is required, but none was found"]


def test_a_missing_required_gpu_is_an_error(make_machine: MakeMachine) -> None:
    report = check_machine(make_machine(), require_gpu=True)
    assert not report.usable
    assert report.findings == (
        Diagnosis(*NO_GPU),
        Diagnosis("error", "a GPU is required, but none was found", "lspci -d 1002: lists AMD devices"),
    )
