"""What detection is made of; the whole of it is tested through `rocwheel.targets.machine.find_gpus`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.sdk.rocm_sdk._gpus import INTEGRATED, DetectionError, base_target, detect_gpus, target_name
from rocwheel.sdk.rocm_sdk._system import System
from rocwheel.targets.catalog import load_catalog

if TYPE_CHECKING:
    from pathlib import Path


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
def test_the_target_is_derived_from_the_version_number(version: int, target: str) -> None:
    assert target_name(version) == target


def test_integrated_gpus_match_the_catalog() -> None:
    kinds = {row.name: row.kind for row in load_catalog().targets}
    assert {name for name in kinds if INTEGRATED.fullmatch(name)} == {n for n in kinds if kinds[n] == "integrated"}


@pytest.mark.parametrize(("target", "base"), [("gfx90a:xnack-", "gfx90a"), ("gfx90a:sramecc+:xnack-", "gfx90a")])
def test_the_base_target_has_no_features(target: str, base: str) -> None:
    assert base_target(target) == base


@given(st.text())
def test_any_properties_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    root = tmp_path_factory.mktemp("machine")
    properties = root / "sys/class/kfd/kfd/topology/nodes/0/properties"
    properties.parent.mkdir(parents=True)
    properties.write_text(text, encoding="utf-8", errors="replace")
    system = System(root, {}, "linux")
    with suppress(DetectionError):
        assert len(detect_gpus(system)) <= 1


def test_valid_nodes_are_sufficient(tmp_path: Path) -> None:
    for node, text in enumerate(("", "simd_count 416\ngfx_target_version 90010\n")):
        properties = tmp_path / f"sys/class/kfd/kfd/topology/nodes/{node}/properties"
        properties.parent.mkdir(parents=True)
        properties.write_text(text)
    assert [gpu.target for gpu in detect_gpus(System(tmp_path, {}, "linux"))] == ["gfx90a"]


def test_a_device_that_opens_has_no_refusal(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kfd").touch()
    system = System(tmp_path, {})
    assert (system.device_refusal("/dev/kfd"), system.device_refusal("/dev/absent")) == ("", "ENOENT")
