"""``rocwheel targets``: the list, words for targets, and the GPUs of this machine."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.bundles import bundle_of
from tests.support.examples import blocks
from tests.support.machines import copied_machine
from tests.support.places import ROOT

if TYPE_CHECKING:
    from tests.support.command_line import Run


@pytest.mark.slow
def test_other_commands_accept_product_names(run_targets: Run, tmp_path: Path) -> None:
    (tmp_path / "a.co").write_bytes(bundle_of("gfx906"))
    assert run_targets("runs-on", "Radeon VII", tmp_path / "a.co").status == 0
    assert (
        run_targets("flags", "Radeon VII", "--tool", "cmake").stdout
        == run_targets("flags", "gfx906", "--tool", "cmake").stdout
    )


@pytest.mark.slow
def test_compiler_arguments_are_accepted_by_all_commands(run_targets: Run, tmp_path: Path) -> None:
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx906"))
    assert run_targets("flags", "--tool", "file-name", "--offload-arch=gfx90a:xnack+").stdout == "gfx90a-xnack+\n"
    assert run_targets("list", "--offload-arch=gfx906").stdout.splitlines()[1].startswith("gfx906 ")
    assert run_targets("runs-on", "--offload-arch=gfx906", tmp_path).status == 0


@pytest.mark.slow
@pytest.mark.parametrize("command", ["list", "flags", "detect", "coherent", "runs-on"])
def test_every_command_has_an_example_in_its_help(run_targets: Run, command: str) -> None:
    assert f"Example: rocwheel targets {command}" in " ".join(run_targets(command, "--help").stdout.split())


def _documented_commands() -> list[object]:
    shown = [block for block in blocks((ROOT / "docs/targets.md").read_text()) if block.language == "console"]
    examples = [
        example
        for block in shown
        if not block.reason
        for example in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    ]
    return [pytest.param(*example.split("\n", 1), id=example.partition("\n")[0]) for example in examples]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "output"), _documented_commands())
def test_documented_commands_print_the_documented_output(run_targets: Run, command: str, output: str) -> None:
    assert run_targets(*shlex.split(command)[2:]) == (0, output, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "name", "wanted"),
    [
        (("coherent",), "demo-1.0-py3-none-any.whl", "a file or a folder"),
        (("runs-on", "gfx906"), "kernels.co", "a file or a folder"),
    ],
)
def test_a_pipe_is_refused_instead_of_skipped(
    arguments: tuple[str, ...], name: str, wanted: str, run_targets: Run, tmp_path: Path
) -> None:
    pipe = tmp_path / name
    os.mkfifo(pipe)
    expected = f"error: {pipe}: is neither a regular file nor a folder; expected {wanted}\n"
    assert run_targets(*arguments, pipe) == (2, "", expected)


@pytest.mark.slow
def test_list_prints_a_table_of_the_targets_that_match_the_filters(run_targets: Run) -> None:
    assert run_targets("list", "--filter", "family=gfx120X-all") == (
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(
            ["--filter", "kind=data-center", "--rocm", "6.4"], ["gfx908", "gfx90a", "gfx942"], id="two filters"
        ),
        pytest.param(
            ["--filter", "kind=data-centre", "--rocm", "6.4"], ["gfx908", "gfx90a", "gfx942"], id="spelling of 0.1.0"
        ),
        pytest.param(["--filter", "product=vega 56"], ["gfx900"], id="product"),
        pytest.param(["--filter", "family=gfx90a:xnack-"], ["gfx90a"], id="target with a feature"),
        pytest.param(["--filter", "product=MI325X"], ["gfx942"], id="product of AMD's matrix"),
        pytest.param(["--filter", "product=strix halo"], ["gfx1151"], id="product of TheRock"),
        pytest.param(["--filter", "product=7700S"], ["gfx1102"], id="product beside LLVM's"),
        pytest.param(["--filter", "product=6750"], ["gfx1031"], id="product of libdrm"),
        pytest.param(["--filter", "product=RX7900XT"], ["gfx1100"], id="product in another spelling"),
        pytest.param(["--filter", "product=AMD Radeon RX 580"], ["gfx803"], id="product with the vendor's words"),
        pytest.param(
            ["--filter", "kind=data-center", "--filter", "product=MI50"],
            ["gfx906"],
            id="data-center card of a desktop GPU",
        ),
        pytest.param(
            ["--filter", "kind=desktop", "--filter", "product=Radeon VII"], ["gfx906"], id="desktop card of the same"
        ),
        pytest.param(["--filter", "feature=sramecc", "--filter", "family=gfx906"], ["gfx906"], id="feature"),
        pytest.param(["gfx11-generic", "gfx942"], ["gfx942", "gfx11-generic"], id="by name"),
    ],
)
def test_list_filters_targets(run_targets: Run, arguments: list[str], expected: list[str]) -> None:
    rows = json.loads(run_targets("list", *arguments, "--json").stdout)["targets"]
    assert [row["name"] for row in rows] == expected


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [("kind", "laptop"), ("feature", "wavefrontsize64")])
def test_a_filter_value_that_never_matches_is_a_usage_error(run_targets: Run, name: str, value: str) -> None:
    finished = run_targets("list", "--filter", f"{name}={value}")
    assert (finished.status, finished.stdout) == (2, "")
    assert f"--filter {name}: is '{value}'; expected one of" in finished.stderr


@pytest.mark.slow
def test_list_prints_every_fact_with_its_sources_as_json(run_targets: Run) -> None:
    assert json.loads(run_targets("list", "gfx1201", "--json").stdout) == {
        "schema": "rocwheel.targets/2",
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
                "rocm_without": "6.1",
                "rocm_with": "6.2",
                "sources": [
                    *("llvm-doc", "llvm-mc", "llvm-list", "therock", "amd-matrix", "amd-gpus", "amd-notes"),
                    "rocm-runtimes",
                ],
            }
        ],
    }


@pytest.mark.slow
def test_verbose_list_adds_machine_numbers_and_sources(run_targets: Run) -> None:
    assert "0x4e  18-23  gfx120X-all dgpu-all" in run_targets("list", "gfx1201", "-v").stdout


@pytest.mark.slow
def test_a_filter_without_matches_produces_a_warning(run_targets: Run) -> None:
    note = "no targets match; without options, `rocwheel targets list` prints all targets"
    assert run_targets("list", "--filter", "product=zzz") == (0, "", f"warning: {note}\n")
    assert run_targets("list", "--filter", "product=zzz", "-q") == (0, "", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["gfx94X-dcgpu", "gfx906"], "gfx906\ngfx942\n", id="families to targets"),
        pytest.param(["gfx1010,gfx1011,gfx1012", "--format", "families"], "gfx101X-all\n", id="targets to families"),
        pytest.param(["official@6.4", "--format", "generics"], None, id="targets to generics"),
        pytest.param(["--offload-arch=gfx942", "--offload-arch=gfx906"], "gfx906\ngfx942\n", id="pasted arguments"),
        pytest.param(["-DGPU_TARGETS=gfx906;gfx942"], "gfx906\ngfx942\n", id="pasted setting"),
    ],
)
def test_list_converts_targets_and_families(run_targets: Run, arguments: list[str], expected: str | None) -> None:
    generics = "gfx908\ngfx90a\ngfx9-4-generic\ngfx10-3-generic\ngfx11-generic\n"
    assert run_targets("list", "--format", "targets", *arguments) == (0, expected or generics, "")


@pytest.mark.slow
@pytest.mark.parametrize("words", [["MI300X", "RX 7900 XTX"], ["rx", "7900", "xtx", "mi300x"], ["RX-7900-XTX;MI300"]])
def test_list_accepts_product_names(run_targets: Run, words: list[str]) -> None:
    assert run_targets("list", "--format", "targets", *words) == (0, "gfx942\ngfx1100\n", "")


@pytest.mark.slow
def test_a_product_name_with_several_targets_is_refused_with_the_choices(run_targets: Run) -> None:
    choices = "Radeon RX 5600M (gfx1010), Radeon Pro 5600M (gfx1011)"
    message = f"error: TARGETS: '5600M' matches several products; expected one of {choices}\n"
    assert run_targets("list", "--format", "targets", "5600M") == (2, "", message)


@pytest.mark.slow
def test_native_detects_the_gpus_of_this_machine(run_targets: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "gfx1100,gfx1036")
    assert run_targets("list", "--format", "targets", "native").stdout == "gfx1036\ngfx1100\n"


@pytest.mark.slow
def test_native_without_a_gpu_is_an_error_with_a_remedy(run_targets: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_DISABLE_DETECTION", "1")
    message = (
        "error: native: no AMD GPU was found on this machine. "
        "To see why, run `rocwheel targets detect --check`, or specify the targets by name.\n"
    )
    assert run_targets("list", "--format", "targets", "gfx906", "native") == (2, "", message)


@pytest.mark.slow
def test_a_target_set_can_be_printed_as_json(run_targets: Run) -> None:
    assert json.loads(run_targets("list", "--format", "targets", "gfx942", "--json").stdout) == {
        "schema": "rocwheel.target-set/1",
        "form": "targets",
        "targets": ["gfx942"],
    }


@pytest.mark.slow
def test_an_unknown_target_is_an_error_that_suggests_similar_names(run_targets: Run) -> None:
    assert run_targets("list", "--format", "targets", "gfx1109") == (
        2,
        "",
        (
            "error: TARGETS: 'gfx1109' isn't a known GPU target, family, product, or policy. "
            "Similar names: gfx1103, gfx1102, gfx1101.\n"
        ),
    )


@pytest.mark.slow
def test_an_unsupported_target_option_is_a_usage_error(run_targets: Run) -> None:
    finished = run_targets("list", "--format", "targets", "--no-offload-arch=gfx906")
    assert finished.status == 2
    assert "has no option --no-offload-arch" in finished.stderr


@pytest.mark.slow
def test_flags_can_be_pasted_into_a_compiler_command(run_targets: Run) -> None:
    assert run_targets("flags", "--tool", "hip", "gfx1100", "gfx90a:xnack+") == (
        0,
        "--offload-arch=gfx90a:xnack+ --offload-arch=gfx1100\n",
        "",
    )


@pytest.mark.slow
def test_gentoo_flags_accept_optional_targets(run_targets: Run) -> None:
    assert 'IUSE="+amdgpu_targets_gfx1100 amdgpu_targets_gfx1031"\n' in (
        run_targets("flags", "--tool", "gentoo", "gfx1100", "--optional", "gfx1031").stdout
    )


@pytest.mark.slow
def test_optional_targets_are_refused_for_tools_without_support(run_targets: Run) -> None:
    message = "error: --optional: cmake doesn't support optional targets; expected --tool gentoo or --tool ebuild\n"
    assert run_targets("flags", "--tool", "cmake", "gfx1100", "--optional", "gfx1031") == (2, "", message)


@pytest.mark.slow
def test_targets_can_be_read_from_a_gentoo_desc_file(run_targets: Run, tmp_path: Path) -> None:
    desc = tmp_path / "amdgpu_targets.desc"
    desc.write_text("# Copyright\n\ngfx906 - Vega\ngfx1100 - RDNA3\n")
    assert run_targets("list", "--format", "targets", f"desc@{desc}", "gfx1030").stdout == "gfx906\ngfx1030\ngfx1100\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gfx906\n", "has 'gfx906'; expected FLAG - DESCRIPTION"),
        (None, "can't be read"),
    ],
    ids=["another form", "absent"],
)
def test_a_malformed_gentoo_file_is_refused(run_targets: Run, tmp_path: Path, text: str | None, found: str) -> None:
    desc = tmp_path / "amdgpu_targets.desc"
    if text is not None:
        desc.write_text(text)
    finished = run_targets("list", "--format", "targets", f"desc@{desc}")
    assert (finished.status, finished.stdout) == (2, "")
    assert found in finished.stderr


@pytest.mark.slow
def test_debian_build_flags_can_be_read_back(run_targets: Run) -> None:
    text = run_targets("flags", "--tool", "debian-build", "gfx1100", "gfx90a:xnack+").stdout
    assert text == 'export ROCM_TARGET_ARCH_FIXED="gfx90a:xnack+ gfx1100"\n'
    assert run_targets("list", "--format", "targets", text).stdout == "gfx90a:xnack+\ngfx1100\n"


@pytest.mark.slow
def test_detect_prints_a_line_for_each_gpu(run_targets: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "gfx1100,gfx1036,gfx1100")
    assert run_targets("detect") == (0, "gfx1100  desktop\ngfx1036  integrated\ngfx1100  desktop\n", "")


@pytest.mark.slow
def test_detect_exits_with_1_if_a_required_gpu_is_absent(run_targets: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_DISABLE_DETECTION", "1")
    variable = "ROCM_BOOTSTRAP_DISABLE_DETECTION"
    note = f"{variable}=1 overrides the GPUs that the kernel lists"
    message = f"note: no AMD GPU was found\nnote: {note}\n  unset {variable}\n"
    assert run_targets("detect") == (0, "", message)
    assert run_targets("detect", "--require-gpu") == (1, "", message)
    assert run_targets("detect", "--require-gpu", "--quiet") == (1, "", "")


@pytest.mark.slow
def test_an_invalid_variable_results_in_exit_status_2(run_targets: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_TARGET_LST", "/nowhere")
    assert run_targets("detect") == (
        2,
        "",
        "error: ROCM_TARGET_LST=/nowhere: the file can't be read; correct the variable or unset it\n",
    )


@pytest.mark.slow
def test_detect_can_read_captured_files_of_another_machine(run_targets: Run, tmp_path: Path) -> None:
    gpu = "simd_count 416\ngfx_target_version {}\ndrm_render_minor 128\n"
    root = copied_machine(tmp_path, "simd_count 0\n", gpu.format(90402), gpu.format(100306))
    output = "gfx942  node 1  data-center  /dev/dri/renderD128\ngfx1036  node 2  integrated  /dev/dri/renderD128\n"
    assert run_targets("detect", "--root", root, "-v") == (0, output, "")


@pytest.mark.slow
def test_detect_reports_a_malformed_node_and_continues(run_targets: Run, tmp_path: Path) -> None:
    root = copied_machine(tmp_path, "", "simd_count 416\ngfx_target_version 90402\n")
    found = run_targets("detect", "--root", root)
    problem = (
        "/sys/class/kfd/kfd/topology/nodes/0/properties: is empty; "
        "expected properties that include 'simd_count' and a number"
    )
    assert found == (2, "gfx942  data-center\n", f"error: {problem}\n")
    document = json.loads(run_targets("detect", "--root", root, "--json").stdout)
    assert ([gpu["target"] for gpu in document["gpus"]], document["problems"]) == (["gfx942"], [problem])


@pytest.mark.slow
def test_check_can_read_captured_files_of_another_machine(
    run_targets: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("container", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    root = copied_machine(tmp_path, "simd_count 416\ngfx_target_version 90402\n")
    remedy = "sudo modprobe amdgpu && sudo udevadm trigger"
    assert run_targets("detect", "--check", "--root", root) == (
        1,
        f"GPUs: gfx942\nerror: /dev/kfd does not exist\n  {remedy}\n",
        "",
    )


@pytest.mark.slow
@pytest.mark.skipif(Path("/dev/kfd").exists(), reason="this machine has a GPU")
def test_check_without_a_gpu_succeeds_unless_a_gpu_is_required(run_targets: Run) -> None:
    assert run_targets("detect", "--check").status == 0
    assert run_targets("detect", "--check", "--require-gpu").status == 1
    report = json.loads(run_targets("detect", "--check", "--json").stdout)
    assert (report["schema"], report["usable"], report["gpus"]) == ("rocwheel.gpu-access/1", True, [])
