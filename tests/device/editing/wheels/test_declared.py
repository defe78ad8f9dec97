"""The targets that a wheel declares after an edit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.core.errors import InputError
from rocwheel.device.editing.wheels.declared import WheelTargets

GFX906, GFX942, GFX1030, GFX1031 = map(TargetId, ("gfx906", "gfx942", "gfx1030", "gfx1031"))
WHEEL = Path("demo-1.0-py3-none-any.whl")


def declaration(*names: str, **more: object) -> bytes:
    return json.dumps({"schema": "rocwheel.rocm-targets/1", "rocm_targets": names, **more}).encode()


def declared(data: bytes) -> list[str]:
    return list(json.loads(data)["rocm_targets"])


def test_a_declaration_stays_byte_for_byte_when_its_targets_do() -> None:
    data = declaration("gfx1030", "gfx906")
    targets = WheelTargets({GFX906, GFX1030}, {GFX906, GFX1030})
    assert targets.redeclare(data, None, source="demo") is data


def test_what_was_removed_and_added_is_told() -> None:
    targets = WheelTargets({GFX906, GFX1030}, {GFX1030, GFX1031})
    assert declared(targets.redeclare(declaration("gfx906", "gfx1030"), None, source="demo")) == ["gfx1030", "gfx1031"]


@pytest.mark.parametrize(
    ("keep", "expected"),
    [(None, ["gfx906", "gfx942"]), ((GFX906,), ["gfx906"]), ((GFX906, GFX942), ["gfx906", "gfx942"])],
    ids=["all are kept", "others are kept", "it is kept"],
)
def test_a_target_without_code_stays_if_it_is_to_be_kept(
    keep: tuple[TargetId, ...] | None, expected: list[str]
) -> None:
    targets = WheelTargets({GFX906}, {GFX906})
    assert declared(targets.redeclare(declaration("gfx906", "gfx942"), keep, source="demo")) == expected


def test_a_target_without_features_keeps_the_variants_of_its_processor() -> None:
    variant = parse_target_id("gfx90a:xnack+", source="")
    data = declaration("gfx90a:xnack+", "gfx942")
    assert declared(WheelTargets().redeclare(data, (TargetId("gfx90a"),), source="demo")) == [str(variant)]


def test_an_old_record_of_how_packages_fit_together_goes() -> None:
    record = {"packages": ["demo"], "common": ["gfx906"], "gaps": []}
    data = declaration("gfx906", "gfx942", coherence=record)
    assert "coherence" not in json.loads(WheelTargets({GFX906, GFX942}, {GFX906}).redeclare(data, None, source="demo"))


def test_a_malformed_declaration_is_refused() -> None:
    with pytest.raises(InputError, match=r"^demo/rocm_targets\.json: malformed "):
        WheelTargets().redeclare(b"{", None, source="demo/rocm_targets.json")


def test_a_wheel_that_loses_all_of_its_code_is_refused_with_what_it_had() -> None:
    expected = (
        "demo-1.0-py3-none-any.whl: has no code for any target to keep; expected code for one of gfx942. "
        "It has code for gfx906, gfx1030."
    )
    with pytest.raises(InputError) as caught:
        WheelTargets({GFX1030, GFX906}, set()).require_any(WHEEL, (GFX942,))
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    "targets", [WheelTargets(), WheelTargets({GFX906, GFX942}, {GFX942})], ids=["never had any", "some is left"]
)
def test_a_wheel_that_loses_not_all_of_its_code_is_fine(targets: WheelTargets) -> None:
    targets.require_any(WHEEL, (GFX942,))
