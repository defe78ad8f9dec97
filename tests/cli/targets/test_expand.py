"""``rocwheel targets expand`` as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.command_line import Run


pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["gfx94X-dcgpu", "gfx906"], "gfx906\ngfx942\n", id="families to targets"),
        pytest.param(["gfx1010,gfx1011,gfx1012", "--to", "families"], "gfx101X-all\n", id="targets to families"),
        pytest.param(["official@6.4", "--to", "generics"], None, id="targets to generics"),
        pytest.param(["--offload-arch=gfx942", "--offload-arch=gfx906"], "gfx906\ngfx942\n", id="pasted arguments"),
        pytest.param(["-DGPU_TARGETS=gfx906;gfx942"], "gfx906\ngfx942\n", id="pasted setting"),
    ],
)
def test_expand(run_targets: Run, arguments: list[str], expected: str | None) -> None:
    generics = "gfx908\ngfx90a\ngfx9-4-generic\ngfx10-3-generic\ngfx11-generic\n"
    assert run_targets("expand", *arguments) == (0, expected or generics, "")


@pytest.mark.parametrize("words", [["MI300X", "RX 7900 XTX"], ["rx", "7900", "xtx", "mi300x"], ["RX-7900-XTX;MI300"]])
def test_expand_takes_names_of_products(run_targets: Run, words: list[str]) -> None:
    assert run_targets("expand", *words) == (0, "gfx942\ngfx1100\n", "")


def test_a_product_of_several_targets_is_refused_with_the_choices(run_targets: Run) -> None:
    choices = "Radeon RX 5600M (gfx1010), Radeon Pro 5600M (gfx1011)"
    message = f"error: TARGETS: '5600M' may be several products; expected one of {choices}\n"
    assert run_targets("expand", "5600M") == (2, "", message)


def test_expand_native_asks_the_machine(run_targets: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "gfx1100,gfx1036")
    assert run_targets("expand", "native").stdout == "gfx1036\ngfx1100\n"


def test_native_without_a_gpu_says_what_is_missing(run_targets: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_DISABLE_DETECTION", "1")
    message = (
        "error: native: no AMD GPU was found on this machine. "
        "Run `rocwheel targets check` to see why, or give the targets by name.\n"
    )
    assert run_targets("expand", "gfx906", "native") == (2, "", message)


def test_expand_as_json(run_targets: Run) -> None:
    assert json.loads(run_targets("expand", "gfx942", "--json").stdout) == {
        "schema": "rocwheel.target-set/1",
        "form": "targets",
        "targets": ["gfx942"],
    }


def test_an_unknown_target_ends_with_the_nearest_names_and_status_2(run_targets: Run) -> None:
    assert run_targets("expand", "gfx1109") == (
        2,
        "",
        (
            "error: TARGETS: 'gfx1109' is not a known GPU target, family, product or policy. "
            "Nearest: gfx1103, gfx1102, gfx1101.\n"
        ),
    )


def test_an_option_that_sets_no_targets_is_wrong_usage(run_targets: Run) -> None:
    finished = run_targets("expand", "--no-offload-arch=gfx906")
    assert finished.status == 2
    assert "has no option --no-offload-arch" in finished.stderr
