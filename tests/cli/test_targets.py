"""``rocwheel targets`` as a user runs it."""

from __future__ import annotations

import io
import json
import re
import shlex
import tarfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.bundles import bundle_of
from tests.support.places import ROOT
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from tests.support.command_line import Run


DETECTION = ("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "ROCM_BOOTSTRAP_DISABLE_DETECTION", "ROCM_TARGET_LST")


@pytest.fixture
def run(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs ``rocwheel targets`` where no variable replaces what is detected."""
    for name in (*DETECTION, "HSA_OVERRIDE_GFX_VERSION"):
        monkeypatch.delenv(name, raising=False)
    return partial(run, "targets")


def _wheel(folder: Path, name: str, *targets: str, requires: str = "") -> Path:
    members = {f"{name}/kernels.hipfb": bundle_of(*targets)}
    return make_wheel(folder, name, members, tag="py3-none-any", requires=(requires,) if requires else ())


def test_list_prints_a_table_of_the_targets_that_the_filters_keep(run: Run) -> None:
    assert run("list", "--family", "gfx120X-all") == (
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
def test_filters_of_list(run: Run, arguments: list[str], expected: list[str]) -> None:
    rows = json.loads(run("list", *arguments, "--json").stdout)["targets"]
    assert [row["name"] for row in rows] == expected


@pytest.mark.parametrize(("option", "value"), [("--kind", "laptop"), ("--feature", "wavefrontsize64")])
def test_a_filter_that_can_never_match_is_wrong_usage(run: Run, option: str, value: str) -> None:
    finished = run("list", option, value)
    assert (finished.status, finished.stdout) == (2, "")
    assert f"'{value}' is not one of" in finished.stderr


def test_list_tells_every_fact_with_its_sources_as_json(run: Run) -> None:
    assert json.loads(run("list", "gfx1201", "--json").stdout) == {
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


def test_verbose_list_adds_machine_numbers_and_sources(run: Run) -> None:
    assert "0x4e  19-23  gfx120X-all dgpu-all" in run("list", "gfx1201", "-v").stdout


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
def test_expand(run: Run, arguments: list[str], expected: str | None) -> None:
    generics = "gfx908\ngfx90a\ngfx9-4-generic\ngfx10-3-generic\ngfx11-generic\n"
    assert run("expand", *arguments) == (0, expected or generics, "")


def test_expand_native_asks_the_machine(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "gfx1100,gfx1036")
    assert run("expand", "native").stdout == "gfx1036\ngfx1100\n"


def test_expand_as_json(run: Run) -> None:
    assert json.loads(run("expand", "gfx942", "--json").stdout) == {
        "schema": "rocwheel.target-set/1",
        "form": "targets",
        "targets": ["gfx942"],
    }


def test_an_unknown_target_ends_with_the_nearest_names_and_status_2(run: Run) -> None:
    assert run("expand", "gfx1109") == (
        2,
        "",
        "error: TARGETS: 'gfx1109' is not a known GPU target, family or policy. Nearest: gfx1103, gfx1102, gfx1101.\n",
    )


def test_flags_are_ready_to_paste(run: Run) -> None:
    assert run("flags", "--for", "hip", "gfx1100", "gfx90a:xnack+") == (
        0,
        "--offload-arch=gfx90a:xnack+ --offload-arch=gfx1100\n",
        "",
    )


def test_arguments_of_a_compiler_can_be_pasted_everywhere(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx906"))
    assert run("flags", "--for", "file-name", "--offload-arch=gfx90a:xnack+").stdout == "gfx90a-xnack+\n"
    assert run("list", "--offload-arch=gfx906").stdout.splitlines()[1].startswith("gfx906 ")
    assert run("runs-on", "--offload-arch=gfx906", tmp_path).status == 0


def test_an_option_that_sets_no_targets_is_wrong_usage(run: Run) -> None:
    finished = run("expand", "--no-offload-arch=gfx906")
    assert finished.status == 2
    assert "No such option: --no-offload-arch" in finished.stderr


def test_flags_for_gentoo_take_optional_targets(run: Run) -> None:
    assert 'IUSE="+amdgpu_targets_gfx1100 amdgpu_targets_gfx1031"\n' in (
        run("flags", "--for", "gentoo", "gfx1100", "--optional", "gfx1031").stdout
    )


def test_optional_targets_are_refused_for_tools_that_know_none(run: Run) -> None:
    message = "error: --optional: cmake has no optional targets; expected --for gentoo\n"
    assert run("flags", "--for", "cmake", "gfx1100", "--optional", "gfx1031") == (2, "", message)


def test_detect_prints_a_line_for_each_gpu(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "gfx1100,gfx1036,gfx1100")
    assert run("detect") == (0, "gfx1100  desktop\ngfx1036  integrated\ngfx1100  desktop\n", "")


def test_detect_ends_with_1_when_a_required_gpu_is_absent(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_DISABLE_DETECTION", "1")
    message = "No AMD GPU was found; `rocwheel targets check` says why.\n"
    assert run("detect") == (0, "", message)
    assert run("detect", "--require-gpu") == (1, "", message)
    assert run("detect", "--require-gpu", "--quiet") == (1, "", "")


def test_a_variable_that_makes_no_sense_ends_with_2(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_TARGET_LST", "/nowhere")
    assert run("detect") == (
        2,
        "",
        "error: ROCM_TARGET_LST=/nowhere: the file cannot be read; correct the variable or unset it\n",
    )


def _machine(root: Path, *nodes: str) -> Path:
    for number, text in enumerate(nodes):
        properties = root / f"sys/class/kfd/kfd/topology/nodes/{number}/properties"
        properties.parent.mkdir(parents=True)
        properties.write_text(text)
    return root


def test_detect_looks_at_the_captured_files_of_another_machine(run: Run, tmp_path: Path) -> None:
    gpu = "simd_count 416\ngfx_target_version {}\ndrm_render_minor 128\n"
    root = _machine(tmp_path, "simd_count 0\n", gpu.format(90402), gpu.format(100306))
    output = "gfx942  node 1  data-centre  /dev/dri/renderD128\ngfx1036  node 2  integrated  /dev/dri/renderD128\n"
    assert run("detect", "--root", root, "-v") == (0, output, "")


def test_detect_tells_of_a_node_that_makes_no_sense_and_goes_on(run: Run, tmp_path: Path) -> None:
    root = _machine(tmp_path, "", "simd_count 416\ngfx_target_version 90402\n")
    found = run("detect", "--root", root)
    problem = (
        "/sys/class/kfd/kfd/topology/nodes/0/properties: is empty; "
        "expected properties, 'simd_count' and a number among them"
    )
    assert found == (2, "gfx942  data-centre\n", f"error: {problem}\n")
    document = json.loads(run("detect", "--root", root, "--json").stdout)
    assert ([gpu["target"] for gpu in document["gpus"]], document["problems"]) == (["gfx942"], [problem])


def test_check_looks_at_the_captured_files_of_another_machine(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("container", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    root = _machine(tmp_path, "simd_count 416\ngfx_target_version 90402\n")
    remedy = "sudo modprobe amdgpu && sudo udevadm trigger"
    assert run("check", "--root", root) == (1, f"GPUs: gfx942\nerror: /dev/kfd does not exist\n  {remedy}\n", "")


def test_native_without_a_gpu_says_what_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_DISABLE_DETECTION", "1")
    message = (
        "error: native: no AMD GPU was found on this machine. "
        "Run `rocwheel targets check` to see why, or give the targets by name.\n"
    )
    assert run("expand", "gfx906", "native") == (2, "", message)


@pytest.mark.skipif(Path("/dev/kfd").exists(), reason="this machine has a GPU")
def test_check_without_a_gpu_says_so_and_is_fine_unless_one_is_required(run: Run) -> None:
    assert run("check").status == 0
    assert run("check", "--require-gpu").status == 1
    report = json.loads(run("check", "--json").stdout)
    assert (report["schema"], report["usable"], report["gpus"]) == ("rocwheel.gpu-access/1", True, [])


def test_coherent_names_each_gap(run: Run, tmp_path: Path) -> None:
    _wheel(tmp_path, "blas", "gfx906")
    _wheel(tmp_path, "torch", "gfx906", "gfx1100", requires="blas")
    assert run("coherent", tmp_path) == (
        1,
        (
            "blas: gfx906\n"
            "torch: gfx906, gfx1100\n"
            "blas lacks gfx1100, which torch asks for; it carries gfx906\n"
            "not coherent; served by all: gfx906\n"
        ),
        "",
    )


def test_coherent_as_json(run: Run, tmp_path: Path) -> None:
    blas = _wheel(tmp_path, "blas", "gfx906")
    assert json.loads(run("coherent", blas, "--require", "gfx906,gfx90a", "--json").stdout) == {
        "schema": "rocwheel.coherence/1",
        "coherent": False,
        "packages": ["blas"],
        "common": ["gfx906"],
        "gaps": [
            {
                "package": "blas",
                "target": "gfx90a",
                "wanted_by": "the list of required targets",
                "carried": ["gfx906"],
            }
        ],
        "absent": [],
    }


def test_coherent_names_what_is_needed_and_not_given(run: Run, tmp_path: Path) -> None:
    torch = _wheel(tmp_path, "torch", "gfx906", requires="blas>=2")
    expected = "torch: gfx906\nneeded, but not given, so not compared: blas\ncoherent; served by all: gfx906\n"
    assert run("coherent", torch) == (0, expected, "")


_BUILD_INFO = """
VERSION = "1.0"
LAYOUT = "{layout}"
FAMILIES = {{"gfx906": {{}}, "gfx1030": {{}}}}
PACKAGES = {{"meta": {{"dist": "rocm"}}}}
REQUIRES = ["rocm-core==1.0"]
EXTRAS = {{"libraries": {extras}}}
SELECTED = {selected}
"""


def _selector(folder: Path, build_info: str, name: str = "rocm_sdk/_build_info.py") -> Path:
    path = folder / "rocm-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo(f"rocm-1.0/{name}")
        member.size = len(build_info)
        archive.addfile(member, io.BytesIO(build_info.encode()))
    return path


def test_coherent_follows_the_extras_of_the_sdist_that_chooses_packages(run: Run, tmp_path: Path) -> None:
    extras = """[["libs==1.0", ""], ["dlls", "sys_platform == 'win32'"]]"""
    info = _BUILD_INFO.format(layout="neutral", extras=extras, selected='{"device": "device-{family}==1.0"}')
    sdist = _selector(tmp_path, info)
    torch = _wheel(tmp_path, "torch", "gfx906", "gfx942", requires="rocm[libraries]==1.0")
    libraries = _wheel(tmp_path, "libs", "gfx906")
    gap = "libs lacks gfx942, which torch asks for; it carries gfx906\n"
    assert run("coherent", tmp_path, "--quiet") == (1, gap, "")
    assert run("coherent", torch, libraries, sdist, "--quiet") == (1, gap, "")
    absent = json.loads(run("coherent", tmp_path, "--json").stdout)["absent"]
    assert absent == ["dlls", "rocm-core"]


def test_coherent_counts_the_families_that_the_sdist_chooses_from_as_one_package(run: Run, tmp_path: Path) -> None:
    selected = '{"libraries": "libs-{family}==1.0"}'
    _selector(tmp_path, _BUILD_INFO.format(layout="per-family", extras="[]", selected=selected))
    for family in ("gfx906", "gfx1030"):
        _wheel(tmp_path, f"libs-{family}", family)
    torch = _wheel(tmp_path, "torch", "gfx906", "gfx1030", requires="rocm[libraries]")
    assert run("coherent", tmp_path, "--quiet") == (0, "", "")
    torch.unlink()
    _wheel(tmp_path, "torch", "gfx906", "gfx942", requires="rocm[libraries]")
    gap = "rocm lacks gfx942, which torch asks for; it carries gfx906, gfx1030\n"
    assert run("coherent", tmp_path, "--quiet") == (1, gap, "")


def test_coherent_passes_over_other_sdists_in_a_folder(run: Run, tmp_path: Path) -> None:
    _wheel(tmp_path, "blas", "gfx906")
    sdist = _selector(tmp_path, "", "PKG-INFO")
    assert run("coherent", tmp_path, "--quiet") == (0, "", "")
    message = f"error: {sdist}: has no rocm_sdk/_build_info.py; expected a wheel, or the sdist of rocm\n"
    assert run("coherent", sdist) == (2, "", message)


@pytest.mark.parametrize("text", ["VERSION =", "VERSION = open('x')", "VERSION = '1'"])
def test_coherent_refuses_a_damaged_sdist(run: Run, tmp_path: Path, text: str) -> None:
    sdist = _selector(tmp_path, text)
    finished = run("coherent", sdist)
    assert (finished[0], finished[1]) == (2, "")
    assert finished[2].startswith(f"error: {sdist}: its _build_info.py cannot be read (")
    sdist.write_bytes(b"x")
    assert run("coherent", sdist)[2].startswith(f"error: {sdist}: not a readable .tar.gz archive (")


@pytest.mark.parametrize("value", ["", " , "])
def test_an_empty_list_of_required_targets_is_wrong_usage(run: Run, tmp_path: Path, value: str) -> None:
    message = "error: --require: names no GPU target; expected at least one, such as gfx1100\n"
    assert run("coherent", _wheel(tmp_path, "blas", "gfx906"), "--require", value) == (2, "", message)


def test_folders_without_wheels_are_refused(run: Run, tmp_path: Path) -> None:
    message = f"error: {tmp_path}: holds no wheel; expected a folder of files *.whl\n"
    assert run("coherent", tmp_path) == (2, "", message)


def test_coherent_reduces_to_the_largest_set(run: Run, tmp_path: Path) -> None:
    wheels = [_wheel(tmp_path, "blas", "gfx906", "gfx11-generic"), _wheel(tmp_path, "fft", "gfx1100", "gfx906")]
    assert run("coherent", *wheels, "--reduce") == (0, "gfx906\ngfx1100\n", "")
    assert run("coherent", *wheels, "--quiet") == (0, "", "")


def test_a_reduced_set_without_targets_is_reported_with_the_reason(run: Run, tmp_path: Path) -> None:
    _wheel(tmp_path, "blas", "gfx906")
    _wheel(tmp_path, "fft", "gfx1100")
    assert run("coherent", tmp_path, "--reduce") == (1, "", "no target is served by every package with device code\n")


def test_a_reduced_set_that_lacks_what_is_required_is_reported(run: Run, tmp_path: Path) -> None:
    blas = _wheel(tmp_path, "blas", "gfx906", "gfx1100")
    finished = run("coherent", blas, "--reduce", "--require", "gfx1100,gfx90a")
    assert finished == (1, "gfx906\ngfx1100\n", "the set does not serve gfx90a, which --require asks for\n")


def test_wheels_without_device_code_are_coherent(run: Run, tmp_path: Path) -> None:
    for name in ("compiler", "headers"):
        make_wheel(tmp_path, name, {}, tag="py3-none-any")
    expected = "compiler: no device code\nheaders: no device code\ncoherent; no package has device code\n"
    assert run("coherent", tmp_path) == (0, expected, "")
    assert run("coherent", tmp_path, "--reduce") == (1, "", "no package has device code\n")


def test_code_that_the_catalogue_does_not_know_is_compared_by_name(run: Run, tmp_path: Path) -> None:
    _wheel(tmp_path, "blas", "gfx1100", "gfx1999")
    _wheel(tmp_path, "torch", "gfx1100", "gfx1999", "amdgcnspirv", requires="blas")
    finished = run("coherent", tmp_path, "--quiet")
    assert finished == (1, "blas lacks amdgcnspirv, which torch asks for; it carries gfx1100, gfx1999\n", "")


def test_a_reduced_set_can_be_given_to_require(run: Run, tmp_path: Path) -> None:
    wheels = [_wheel(tmp_path, "a", "gfx90a:xnack+"), _wheel(tmp_path, "b", "gfx90a:sramecc+", "gfx90a:sramecc-")]
    reduced = run("coherent", *wheels, "--reduce").stdout
    assert reduced == "gfx90a:xnack+\n"
    assert run("coherent", *wheels, "--require", reduced, "--quiet") == (0, "", "")


def test_coherent_refuses_what_is_no_wheel(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.whl"
    path.write_bytes(b"no zip")
    assert run("coherent", path) == (
        2,
        "",
        f"error: {path}: a damaged archive (File is not a zip file). Build or download it again.\n",
    )


def test_runs_on_tells_which_code_is_used_and_why(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.hipfb"
    path.write_bytes(bundle_of("gfx1030", "gfx906"))
    assert run("runs-on", "gfx1031", path) == (
        1,
        (
            f"{path}: gfx1031 on a stock runtime: finds nothing in 1 bundle (gfx1030: code for a similar GPU, "
            "which only an extended runtime takes; gfx906: code for another processor)\n"
            f"{path}: gfx1031 on an extended runtime: uses gfx1030 in 1 bundle "
            "(code for a similar GPU, which only an extended runtime takes)\n"
        ),
        "",
    )


@pytest.mark.parametrize(
    ("gpu", "message"),
    [
        pytest.param("foo", "GPU: 'foo' is not a known GPU target, family or policy", id="unknown"),
        pytest.param("amdgcnspirv", "GPU: 'amdgcnspirv' is a target of code, not of a GPU", id="SPIR-V"),
        pytest.param("gfx11-generic", "GPU: 'gfx11-generic' is a target of code, not of a GPU", id="generic"),
    ],
)
def test_runs_on_refuses_what_is_no_gpu(run: Run, tmp_path: Path, gpu: str, message: str) -> None:
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx906"))
    finished = run("runs-on", gpu, tmp_path)
    assert (finished.status, finished.stdout) == (2, "")
    assert finished.stderr.startswith(f"error: {message}")


def test_runs_on_is_fine_when_a_stock_runtime_finds_code_everywhere(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx1030", "gfx906"))
    (tmp_path / "notes.txt").write_text("")
    finished = run("runs-on", "gfx906:sramecc+:xnack-", tmp_path, "--json")
    assert finished.status == 0
    verdict = json.loads(finished.stdout)["verdicts"][0]
    assert verdict == {
        "gpu": "gfx906:sramecc+:xnack-",
        "path": str(tmp_path / "a.hipfb"),
        "runtime": "stock",
        "runs": True,
        "kpacked": False,
        "uses": [{"code": "gfx906", "fit": "open", "why": "the same processor, its features left open", "bundles": 1}],
    }


def test_runs_on_judges_each_setting_of_a_gpu_whose_setting_is_not_known(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.hipfb"
    path.write_bytes(bundle_of("gfx90a:xnack+", "gfx90a:xnack-"))
    finished = run("runs-on", "gfx90a", path, "--json")
    assert finished.status == 0
    assert {verdict["gpu"] for verdict in json.loads(finished.stdout)["verdicts"]} == {"gfx90a:xnack+", "gfx90a:xnack-"}


def test_runs_on_names_files_without_device_code(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx906"))
    (tmp_path / "b.txt").write_text("")
    assert run("runs-on", "gfx906", tmp_path / "b.txt", tmp_path / "a.hipfb").stdout.endswith(
        f"{tmp_path}/b.txt: no device code\n"
    )
    assert run("runs-on", "gfx906", tmp_path / "b.txt") == (
        2,
        "",
        f"error: {tmp_path}/b.txt: no device code; expected a fat binary or a file of bundles\n",
    )


def test_runs_on_passes_over_kernel_files_of_folders_that_are_named_for_other_targets(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "gfx1100/library"
    folder.mkdir(parents=True)
    for target in ("gfx906", "gfx90a-xnack+", "gfx90a-xnack-", "gfx1030"):
        (folder / f"Kernels_{target}.co").write_bytes(bundle_of(target.replace("-", ":", 1)))
    (folder / "libblas.gfx1030.so.hipfb").write_bytes(bundle_of("gfx90a", "gfx906"))
    assert run("runs-on", "gfx906", folder) == (
        0,
        (
            f"{folder}/Kernels_gfx906.co: gfx906 on a stock runtime: uses gfx906 in 1 bundle "
            "(the same processor with the same features)\n"
            f"{folder}/Kernels_gfx906.co: gfx906 on an extended runtime: uses gfx906 in 1 bundle "
            "(the same processor with the same features)\n"
            f"{folder}/libblas.gfx1030.so.hipfb: gfx906 on a stock runtime: uses gfx906 in 1 bundle "
            "(the same processor with the same features)\n"
            f"{folder}/libblas.gfx1030.so.hipfb: gfx906 on an extended runtime: uses gfx906 in 1 bundle "
            "(the same processor with the same features)\n"
            "skipped, as named for other targets: 3 files\n"
        ),
        "",
    )
    finished = run("runs-on", "gfx90a", folder, "--json")
    assert finished.status == 0
    assert json.loads(finished.stdout)["for_others"] == [
        f"{folder}/Kernels_gfx1030.co",
        f"{folder}/Kernels_gfx906.co",
    ]
    named = folder / "Kernels_gfx1030.co"
    assert run("runs-on", "gfx906", named).status == 1
    (folder / "libblas.gfx1030.so.hipfb").unlink()
    message = f"error: {folder}: all device code is in files named for other GPUs than gfx942\n"
    assert run("runs-on", "gfx942", folder) == (2, "", message)


def test_runs_on_refuses_wheels(run: Run, tmp_path: Path) -> None:
    wheel = _wheel(tmp_path, "blas", "gfx906")
    remedy = "Unpack it, and give the folder: python -m zipfile -e WHEEL FOLDER"
    assert run("runs-on", "gfx906", wheel) == (2, "", f"error: {wheel}: is a wheel, not a binary. {remedy}\n")


def test_runs_on_refuses_a_damaged_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.hipfb"
    path.write_bytes(bundle_of("gfx906")[:50])
    finished = run("runs-on", "gfx906", path)
    assert (finished.status, finished.stdout) == (2, "")
    assert finished.stderr.startswith(f"error: {path}: ")


@pytest.mark.parametrize("command", ["list", "expand", "flags", "detect", "check", "coherent", "runs-on"])
def test_every_command_has_an_example_in_its_help(run: Run, command: str) -> None:
    assert f"Example: rocwheel targets {command}" in " ".join(run(command, "--help").stdout.split())


def _documented_commands() -> list[object]:
    text = (ROOT / "docs/targets.md").read_text()
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    examples = [example for block in blocks for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [pytest.param(*example.split("\n", 1), id=example.partition("\n")[0]) for example in examples]


@pytest.mark.parametrize(("command", "output"), _documented_commands())
def test_documented_commands_print_what_the_documentation_shows(run: Run, command: str, output: str) -> None:
    assert run(*shlex.split(command)[2:]) == (0, output, "")
