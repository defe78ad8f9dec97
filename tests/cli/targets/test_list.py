"""``rocwheel targets list`` as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.command_line import Run


pytestmark = pytest.mark.slow


def test_list_prints_a_table_of_the_targets_that_the_filters_keep(run_targets: Run) -> None:
    assert run_targets("list", "--family", "gfx120X-all") == (
        0,
        (
            "target   kind     features  generic        official ROCm  products\n"
            "gfx1200  desktop            gfx12-generic  6.4.3 on       "
            "Radeon RX 9060, Radeon RX 9060 XT, Radeon RX 9050, Radeon RX 9060 XT LP\n"
            "gfx1201  desktop            gfx12-generic  6.4.3 on       "
            "Radeon RX 9070, Radeon RX 9070 XT, Radeon RX 9070 GRE, Radeon AI PRO R9700, "
            "Radeon AI PRO R9600, Radeon AI PRO R9600D, Radeon AI PRO R9700S\n"
        ),
        "",
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["--kind", "data-centre", "--official", "6.4"], ["gfx908", "gfx90a", "gfx942"], id="two filters"),
        pytest.param(["--product", "vega 56"], ["gfx900"], id="product"),
        pytest.param(["--family", "gfx90a:xnack-"], ["gfx90a"], id="target with a feature"),
        pytest.param(["--product", "MI325X"], ["gfx942"], id="product of AMD's matrix"),
        pytest.param(["--product", "strix halo"], ["gfx1151"], id="product of TheRock"),
        pytest.param(["--product", "7700S"], ["gfx1102"], id="product beside LLVM's"),
        pytest.param(["--product", "6750"], ["gfx1031"], id="product of libdrm"),
        pytest.param(
            ["--kind", "data-centre", "--product", "MI50"], ["gfx906"], id="data-centre card of a desktop GPU"
        ),
        pytest.param(["--kind", "desktop", "--product", "Radeon VII"], ["gfx906"], id="desktop card of the same"),
        pytest.param(["--feature", "sramecc", "--family", "gfx906"], ["gfx906"], id="feature"),
        pytest.param(["gfx11-generic", "gfx942"], ["gfx942", "gfx11-generic"], id="by name"),
    ],
)
def test_filters_of_list(run_targets: Run, arguments: list[str], expected: list[str]) -> None:
    rows = json.loads(run_targets("list", *arguments, "--json").stdout)["targets"]
    assert [row["name"] for row in rows] == expected


@pytest.mark.parametrize(("option", "value"), [("--kind", "laptop"), ("--feature", "wavefrontsize64")])
def test_a_filter_that_can_never_match_is_wrong_usage(run_targets: Run, option: str, value: str) -> None:
    finished = run_targets("list", option, value)
    assert (finished.status, finished.stdout) == (2, "")
    assert f"{option}: is '{value}'; expected one of" in finished.stderr


def test_list_tells_every_fact_with_its_sources_as_json(run_targets: Run) -> None:
    assert json.loads(run_targets("list", "gfx1201", "--json").stdout) == {
        "schema": "rocwheel.targets/1",
        "targets": [
            {
                "name": "gfx1201",
                "mach": 0x4E,
                "kind": "desktop",
                "features": [],
                "generics": ["gfx12-generic"],
                "members": [],
                "families": ["gfx120X-all", "dgpu-all"],
                "official": "6.4.3 on",
                "packagers": [
                    *("debian-forky", "debian-sid", "debian-experimental", "ubuntu-26.04", "ubuntu-26.10"),
                    *("nix", "conda-forge", "jax", "spack"),
                ],
                "products": [
                    *("Radeon RX 9070", "Radeon RX 9070 XT", "Radeon RX 9070 GRE", "Radeon AI PRO R9700"),
                    *("Radeon AI PRO R9600", "Radeon AI PRO R9600D", "Radeon AI PRO R9700S"),
                ],
                "llvm": [18, 23],
                "sources": ["llvm-doc", "llvm-mc", "llvm-list", "therock", "amd-matrix", "amd-gpus", "amd-notes"],
            }
        ],
    }


def test_verbose_list_adds_machine_numbers_and_sources(run_targets: Run) -> None:
    assert "0x4e  18-23  gfx120X-all dgpu-all" in run_targets("list", "gfx1201", "-v").stdout


def test_a_filter_that_keeps_nothing_says_so(run_targets: Run) -> None:
    note = "no target is all that was asked for; without options, `rocwheel targets list` prints every one"
    assert run_targets("list", "--product", "zzz") == (0, "", f"warning: {note}\n")
    assert run_targets("list", "--product", "zzz", "-q") == (0, "", "")
