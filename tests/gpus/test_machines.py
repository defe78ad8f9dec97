"""Machines with any GPUs, as the stand-in for the kernel driver presents them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.code_objects import parse_target_id
from rocwheel.core.errors import InputError
from rocwheel.targets.machine import System, survey_machine
from tests.support.machines import NODES
from tests.support.places import ROOT
from trials.gpus.machines import write_machine
from trials.gpus.table import all_gpus

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, *gpus: str) -> Path:
    return write_machine(folder, [parse_target_id(gpu) for gpu in gpus])


def properties(machine: Path, node: int) -> dict[str, str]:
    text = (machine / f"topology/nodes/{node}/properties").read_text()
    return dict(line.split(" ", 1) for line in text.splitlines())


def test_a_node_has_the_version_the_wave_size_and_the_render_node(tmp_path: Path) -> None:
    machine = write(tmp_path, "gfx90a:sramecc+:xnack-", "gfx1100")
    names = ("gfx_target_version", "wave_front_size", "drm_render_minor")
    assert [properties(machine, 1)[name] for name in names] == ["90010", "64", "128"]
    assert [properties(machine, 2)[name] for name in names] == ["110000", "32", "129"]


def test_sramecc_is_a_bit_of_the_gpu_and_xnack_is_a_line_of_the_machine(tmp_path: Path) -> None:
    machine = write(tmp_path, "gfx906:sramecc+:xnack+", "gfx908:sramecc-:xnack+")
    bits = [int(properties(machine, node)["capability"]) >> 26 & 1 for node in (1, 2)]
    assert bits == [1, 0]
    assert (machine / "gpus").read_text().splitlines() == [
        "xnack 1",
        "4660 128 141 40 705773634 34359738368 vega20",
        "4661 129 141 50 705773634 34359738368 arcturus",
    ]


def test_a_processor_without_facts_uses_those_of_the_previous_processor(tmp_path: Path) -> None:
    assert (write(tmp_path, "gfx950:sramecc+:xnack-") / "gpus").read_text().endswith("206158430208 aqua_vanjaram\n")


def test_rocwheel_finds_the_gpus_in_the_topology(tmp_path: Path) -> None:
    machine = write(tmp_path / "machine", "gfx1103", "gfx1201")
    shutil.copytree(machine / "topology/nodes", tmp_path / NODES.lstrip("/"))
    found = survey_machine(System(tmp_path, {}, "linux")).gpus
    assert [(gpu.target, gpu.kind, gpu.render_node) for gpu in found] == [
        ("gfx1103", "integrated", "/dev/dri/renderD128"),
        ("gfx1201", "desktop", "/dev/dri/renderD129"),
    ]


def test_all_gpus_lists_67_gpus() -> None:
    gpus = [str(gpu) for gpu in all_gpus()]
    assert (len(gpus), gpus[0], gpus[-1]) == (67, "gfx900:xnack+", "gfx1201")


@pytest.mark.parametrize(
    ("gpus", "fault"),
    [
        (["gfx803"], "machine: gfx803; expected a GPU of gfx900 or later"),
        (["gfx11-generic"], "machine: gfx11-generic; expected a GPU of gfx900 or later"),
        (
            ["gfx90a:xnack+", "gfx90a:xnack-"],
            "machine: GPUs with XNACK on and off; expected one setting for the whole machine",
        ),
    ],
)
def test_an_impossible_machine_is_refused(tmp_path: Path, gpus: list[str], fault: str) -> None:
    with pytest.raises(InputError) as caught:
        write(tmp_path, *gpus)
    assert str(caught.value) == fault


def test_the_stand_in_is_not_in_the_wheel() -> None:
    """The wheel has what is below src/rocwheel, and nothing there is of the stand-in."""
    assert 'packages = ["src/rocwheel"]' in (ROOT / "pyproject.toml").read_text()
    assert [path for path in (ROOT / "src").rglob("*") if "standin" in path.name] == []
