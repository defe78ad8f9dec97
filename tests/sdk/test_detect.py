"""Finding GPUs in a KFD topology that the test makes up."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.sdk.rocm_sdk._detect import Gpu, base_target, detect_gpus, target_name
from rocwheel.sdk.rocm_sdk._system import System

if TYPE_CHECKING:
    from pathlib import Path

CPU = "cpu_cores_count 16\nsimd_count 0\ngfx_target_version 0\n"
GPU = "cpu_cores_count 0\nsimd_count 256\ngfx_target_version {}\ndevice_id {}\nname_with_text abc\n"


def machine(root: Path, *nodes: str, **environ: str) -> System:
    for number, properties in enumerate(nodes):
        folder = root / f"sys/class/kfd/kfd/topology/nodes/{number}"
        folder.mkdir(parents=True)
        (folder / "properties").write_text(properties, encoding="utf-8", errors="replace")
    return System(root, environ, "linux")


def test_machine_without_kfd_has_no_gpus(tmp_path: Path) -> None:
    assert detect_gpus(machine(tmp_path)) == []


def test_cpu_nodes_are_no_gpus(tmp_path: Path) -> None:
    assert detect_gpus(machine(tmp_path, CPU, CPU)) == []


def test_gpus_come_in_the_order_of_their_nodes_also_beyond_nine(tmp_path: Path) -> None:
    nodes = [CPU, GPU.format(90010, 29704), *[CPU] * 8, GPU.format(110000, 29772)]
    assert detect_gpus(machine(tmp_path, *nodes)) == [Gpu(1, "gfx90a", 29704), Gpu(10, "gfx1100", 29772)]


@pytest.mark.parametrize(
    ("version", "target"),
    [
        (90000, "gfx900"),
        (90006, "gfx906"),
        (90010, "gfx90a"),
        (90402, "gfx942"),
        (100300, "gfx1030"),
        (110501, "gfx1151"),
    ],
)
def test_target_is_read_off_the_version_number(version: int, target: str) -> None:
    assert target_name(version) == target


@pytest.mark.parametrize(("target", "base"), [("gfx90a:xnack-", "gfx90a"), ("gfx90a:sramecc+:xnack-", "gfx90a")])
def test_features_are_no_part_of_the_base_target(target: str, base: str) -> None:
    assert base_target(target) == base


def test_detection_can_be_disabled(tmp_path: Path) -> None:
    system = machine(
        tmp_path, GPU.format(90006, 1), ROCM_BOOTSTRAP_DISABLE_DETECTION="1", ROCM_BOOTSTRAP_FORCE_GFX_ARCH="gfx942"
    )
    assert detect_gpus(system) == []


def test_forced_targets_replace_the_gpus(tmp_path: Path) -> None:
    system = machine(tmp_path, GPU.format(90006, 1), ROCM_BOOTSTRAP_FORCE_GFX_ARCH=" gfx942, gfx90a:xnack-,")
    assert detect_gpus(system) == [Gpu(0, "gfx942"), Gpu(1, "gfx90a:xnack-")]


def test_target_list_file_replaces_the_gpus_and_skips_the_cpu(tmp_path: Path) -> None:
    (tmp_path / "target.lst").write_text("gfx000\ngfx1030\ngfx1030\n")
    system = machine(tmp_path, GPU.format(90006, 1), ROCM_TARGET_LST="/target.lst")
    assert [gpu.target for gpu in detect_gpus(system)] == ["gfx1030", "gfx1030"]


def test_override_takes_the_place_of_every_gpu_target_but_makes_no_gpu(tmp_path: Path) -> None:
    system = machine(tmp_path, CPU, GPU.format(100301, 1), HSA_OVERRIDE_GFX_VERSION="10.3.0")
    assert detect_gpus(system) == [Gpu(1, "gfx1030", 1)]


def test_override_for_one_node_wins_over_the_general_one(tmp_path: Path) -> None:
    nodes = [CPU, GPU.format(100301, 1), GPU.format(110003, 2)]
    overrides = {"HSA_OVERRIDE_GFX_VERSION": "10.3.0", "HSA_OVERRIDE_GFX_VERSION_2": "11.0.0"}
    targets = [gpu.target for gpu in detect_gpus(machine(tmp_path, *nodes, **overrides))]
    assert targets == ["gfx1030", "gfx1100"]


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        (
            "HSA_OVERRIDE_GFX_VERSION",
            "gfx1030",
            "HSA_OVERRIDE_GFX_VERSION=gfx1030: expected major.minor.stepping, such as 10.3.0",
        ),
        (
            "ROCM_BOOTSTRAP_FORCE_GFX_ARCH",
            "navi21",
            "ROCM_BOOTSTRAP_FORCE_GFX_ARCH: 'navi21' is no GPU target; expected names such as gfx90a or gfx90a:xnack-",
        ),
        (
            "ROCM_TARGET_LST",
            "/absent",
            "ROCM_TARGET_LST=/absent: the file cannot be read; correct the variable or unset it",
        ),
    ],
    ids=["override", "forced", "list"],
)
def test_override_that_cannot_be_understood_is_an_error(
    tmp_path: Path, variable: str, value: str, message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        detect_gpus(machine(tmp_path, GPU.format(90006, 1), **{variable: value}))


@given(st.text())
def test_any_properties_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    system = machine(tmp_path_factory.mktemp("machine"), text)
    with suppress(ValueError):
        assert len(detect_gpus(system)) <= 1


def test_use_of_a_device_needs_read_and_write_permission(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kfd").touch()
    system = System(tmp_path, {})
    assert (system.may_use("/dev/kfd"), system.may_use("/dev/absent")) == (True, False)
