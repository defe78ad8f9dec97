"""``rocwheel targets list``, ``expand`` and ``flags`` as a user runs them."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

import pytest

from tests.support.bundles import bundle_of
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow


def test_list_prints_a_table_of_the_targets_that_the_filters_keep(run_targets: Run) -> None:
    assert run_targets("list", "--family", "gfx120X-all") == (
        0,
        (
            "target   kind     features  generic        official ROCm  products\n"
            "gfx1200  desktop            gfx12-generic  6.4.3 on       Radeon RX 9060, Radeon RX 9060 XT\n"
            "gfx1201  desktop            gfx12-generic  6.4.3 on       "
            "Radeon RX 9070, Radeon RX 9070 XT, Radeon RX 9070 GRE, Radeon AI PRO R9700\n"
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
                "packagers": ["debian-experimental", "ubuntu-26.04", "nix", "conda-forge", "jax", "spack"],
                "products": ["Radeon RX 9070", "Radeon RX 9070 XT", "Radeon RX 9070 GRE", "Radeon AI PRO R9700"],
                "llvm": [19, 23],
                "sources": ["llvm-doc", "llvm-mc", "therock", "amd-matrix"],
            }
        ],
    }


def test_verbose_list_adds_machine_numbers_and_sources(run_targets: Run) -> None:
    assert "0x4e  19-23  gfx120X-all dgpu-all" in run_targets("list", "gfx1201", "-v").stdout


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


def test_other_commands_take_names_of_products(run_targets: Run, tmp_path: Path) -> None:
    (tmp_path / "a.co").write_bytes(bundle_of("gfx906"))
    assert run_targets("runs-on", "Radeon VII", tmp_path / "a.co").status == 0
    assert (
        run_targets("flags", "Radeon VII", "--for", "cmake").stdout
        == run_targets("flags", "gfx906", "--for", "cmake").stdout
    )


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


def test_flags_are_ready_to_paste(run_targets: Run) -> None:
    assert run_targets("flags", "--for", "hip", "gfx1100", "gfx90a:xnack+") == (
        0,
        "--offload-arch=gfx90a:xnack+ --offload-arch=gfx1100\n",
        "",
    )


def test_arguments_of_a_compiler_can_be_pasted_everywhere(run_targets: Run, tmp_path: Path) -> None:
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx906"))
    assert run_targets("flags", "--for", "file-name", "--offload-arch=gfx90a:xnack+").stdout == "gfx90a-xnack+\n"
    assert run_targets("list", "--offload-arch=gfx906").stdout.splitlines()[1].startswith("gfx906 ")
    assert run_targets("runs-on", "--offload-arch=gfx906", tmp_path).status == 0


def test_an_option_that_sets_no_targets_is_wrong_usage(run_targets: Run) -> None:
    finished = run_targets("expand", "--no-offload-arch=gfx906")
    assert finished.status == 2
    assert "has no option --no-offload-arch" in finished.stderr


def test_flags_for_gentoo_take_optional_targets(run_targets: Run) -> None:
    assert 'IUSE="+amdgpu_targets_gfx1100 amdgpu_targets_gfx1031"\n' in (
        run_targets("flags", "--for", "gentoo", "gfx1100", "--optional", "gfx1031").stdout
    )


def test_optional_targets_are_refused_for_tools_that_know_none(run_targets: Run) -> None:
    message = "error: --optional: cmake has no optional targets; expected --for gentoo\n"
    assert run_targets("flags", "--for", "cmake", "gfx1100", "--optional", "gfx1031") == (2, "", message)


@pytest.mark.parametrize("command", ["list", "expand", "flags", "detect", "check", "coherent", "runs-on"])
def test_every_command_has_an_example_in_its_help(run_targets: Run, command: str) -> None:
    assert f"Example: rocwheel targets {command}" in " ".join(run_targets(command, "--help").stdout.split())


def _documented_commands() -> list[object]:
    text = (ROOT / "docs/targets.md").read_text()
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    examples = [example for block in blocks for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [pytest.param(*example.split("\n", 1), id=example.partition("\n")[0]) for example in examples]


@pytest.mark.parametrize(("command", "output"), _documented_commands())
def test_documented_commands_print_what_the_documentation_shows(run_targets: Run, command: str, output: str) -> None:
    assert run_targets(*shlex.split(command)[2:]) == (0, output, "")


def test_a_filter_that_keeps_nothing_says_so(run_targets: Run) -> None:
    note = "no target is all that was asked for; without options, `rocwheel targets list` prints every one"
    assert run_targets("list", "--product", "zzz") == (0, "", f"warning: {note}\n")
    assert run_targets("list", "--product", "zzz", "-q") == (0, "", "")
