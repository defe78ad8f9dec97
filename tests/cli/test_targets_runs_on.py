"""``rocwheel targets runs-on`` as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.kpack.markers import Marker
from tests.artifacts.conftest import ar_archive
from tests.support.bundles import bundle_of
from tests.support.debs import write_deb
from tests.support.kpack_files import build_split_library, make_kpack, split_two
from tests.support.libraries import needs_compiler
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


pytestmark = pytest.mark.slow


def test_runs_on_prints_which_code_is_used_and_why(run_targets: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.hipfb"
    path.write_bytes(bundle_of("gfx1030", "gfx906"))
    assert run_targets("runs-on", "gfx1031", path) == (
        1,
        (
            f"{path}: gfx1031 on a stock runtime: finds nothing in 1 bundle (gfx1030: code for a similar GPU, "
            "which only an extended runtime accepts; gfx906: code for another processor)\n"
            f"{path}: gfx1031 on an extended runtime: uses gfx1030 in 1 bundle "
            "(code for a similar GPU, which only an extended runtime accepts)\n"
        ),
        "",
    )


@pytest.mark.parametrize(
    ("gpu", "message"),
    [
        pytest.param("foo", "GPU: 'foo' isn't a known GPU target, family, product, or policy", id="unknown"),
        pytest.param("amdgcnspirv", "GPU: 'amdgcnspirv' is a target for code, not a GPU", id="SPIR-V"),
        pytest.param("gfx11-generic", "GPU: 'gfx11-generic' is a target for code, not a GPU", id="generic"),
    ],
)
def test_runs_on_refuses_an_invalid_gpu(run_targets: Run, tmp_path: Path, gpu: str, message: str) -> None:
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx906"))
    finished = run_targets("runs-on", gpu, tmp_path)
    assert (finished.status, finished.stdout) == (2, "")
    assert finished.stderr.startswith(f"error: {message}")


def test_the_gpu_can_follow_the_paths(run_targets: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.hipfb"
    path.write_bytes(bundle_of("gfx906"))
    assert run_targets("runs-on", path, "gfx906", "--rocm", "7.0") == run_targets(
        "runs-on", "--rocm", "7.0", "gfx906", path
    )


def test_a_missing_gpu_is_reported(run_targets: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.hipfb"
    path.write_bytes(bundle_of("gfx906"))
    expected = "the GPU before the paths: rocwheel targets runs-on GPU PATH..."
    message = f"error: {path}: is a path; expected {expected}\n"
    assert run_targets("runs-on", path) == (2, "", message)


def test_the_gpu_argument_can_match_the_name_of_a_folder(
    run_targets: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gfx906").mkdir()
    (tmp_path / "gfx906/a.hipfb").write_bytes(bundle_of("gfx906"))
    assert run_targets("runs-on", "gfx906", "gfx906").status == 0


def test_runs_on_succeeds_if_a_stock_runtime_finds_code_everywhere(run_targets: Run, tmp_path: Path) -> None:
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx1030", "gfx906"))
    (tmp_path / "notes.txt").write_text("")
    finished = run_targets("runs-on", "gfx906:sramecc+:xnack-", tmp_path, "--json")
    assert finished.status == 0
    verdict = json.loads(finished.stdout)["verdicts"][0]
    assert verdict == {
        "gpu": "gfx906:sramecc+:xnack-",
        "path": str(tmp_path / "a.hipfb"),
        "runtime": "stock",
        "runs": True,
        "kpacked": False,
        "since": "",
        "up_to": "",
        "uses": [
            {"code": "gfx906", "fit": "open", "why": "the same processor, without feature settings", "bundles": 1}
        ],
        "kernel_folder": None,
    }


def test_runs_on_checks_every_feature_setting_if_no_setting_is_given(run_targets: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.hipfb"
    path.write_bytes(bundle_of("gfx90a:xnack+", "gfx90a:xnack-"))
    finished = run_targets("runs-on", "gfx90a", path, "--json")
    assert finished.status == 0
    assert {verdict["gpu"] for verdict in json.loads(finished.stdout)["verdicts"]} == {"gfx90a:xnack+", "gfx90a:xnack-"}


def test_runs_on_checks_every_file_for_each_setting_that_the_code_requires(run_targets: Run, tmp_path: Path) -> None:
    files = {"gfx90a": ("gfx90a",), "gfx90a-xnack+": ("gfx90a:xnack+",), "gfx906": ("gfx906:xnack-",)}
    for name, targets in files.items():
        (tmp_path / f"Kernels_{name}.co").write_bytes(bundle_of(*targets))
    for gpu in ("gfx90a", "gfx90a:xnack-", "gfx90a:xnack+"):
        assert run_targets("runs-on", gpu, tmp_path).status == 0
    same, open_ = "the same processor with the same features", "the same processor, without feature settings"
    kernels, since = f"{tmp_path}/Kernels_gfx90a", "since ROCm 4.3"
    assert run_targets("runs-on", "gfx90a", tmp_path).stdout.splitlines() == [
        f"{kernels}-xnack+.co: gfx90a:xnack+ on a stock runtime {since}: uses gfx90a:xnack+ in 1 bundle ({same})",
        f"{kernels}-xnack+.co: gfx90a:xnack+ on an extended runtime {since}: uses gfx90a:xnack+ in 1 bundle ({same})",
        f"{kernels}.co: gfx90a on a stock runtime {since}: uses gfx90a in 1 bundle ({open_})",
        f"{kernels}.co: gfx90a on an extended runtime {since}: uses gfx90a in 1 bundle ({open_})",
        "skipped 1 file, because its name is for other targets",
        (
            "gfx90a stands for gfx90a:xnack+, gfx90a:xnack-. A machine has one of these settings, and all of them "
            "must find code. XNACK is off unless HSA_XNACK=1. To see the setting, run rocminfo."
        ),
    ]
    document = json.loads(run_targets("runs-on", "gfx90a", tmp_path, "--json").stdout)
    assert document["settings"] == {"gfx90a": ["gfx90a:xnack+", "gfx90a:xnack-"]}


def test_a_gpu_with_unspecified_features_fails_if_one_of_its_settings_fails(run_targets: Run, tmp_path: Path) -> None:
    (tmp_path / "Kernels_gfx90a-xnack+.co").write_bytes(bundle_of("gfx90a:xnack+"))
    (tmp_path / "libblas.so.hipfb").write_bytes(bundle_of("gfx90a"))
    assert run_targets("runs-on", "gfx90a", tmp_path).status == 0
    (tmp_path / "libblas.so.hipfb").write_bytes(bundle_of("gfx90a:xnack+"))
    assert [run_targets("runs-on", f"gfx90a{x}", tmp_path).status for x in (":xnack+", ":xnack-", "")] == [0, 1, 1]


def test_runs_on_reports_files_without_device_code(run_targets: Run, tmp_path: Path) -> None:
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx906"))
    (tmp_path / "b.txt").write_text("")
    assert run_targets("runs-on", "gfx906", tmp_path / "b.txt", tmp_path / "a.hipfb").stdout.endswith(
        f"{tmp_path}/b.txt: no device code\n"
    )
    assert run_targets("runs-on", "gfx906", tmp_path / "b.txt") == (
        2,
        "",
        f"error: {tmp_path}/b.txt: no device code; expected a fat binary or a bundle file\n",
    )


def test_runs_on_skips_kernel_files_named_for_other_targets(run_targets: Run, tmp_path: Path) -> None:
    folder = tmp_path / "gfx1100/library"
    folder.mkdir(parents=True)
    for target in ("gfx906", "gfx90a-xnack+", "gfx90a-xnack-", "gfx1030"):
        (folder / f"Kernels_{target}.co").write_bytes(bundle_of(target.replace("-", ":", 1)))
    (folder / "libblas.gfx1030.so.hipfb").write_bytes(bundle_of("gfx90a", "gfx906"))
    assert run_targets("runs-on", "gfx906", folder) == (
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
            "skipped 3 files, because their names are for other targets\n"
        ),
        "",
    )
    finished = run_targets("runs-on", "gfx90a", folder, "--json")
    assert finished.status == 0
    assert json.loads(finished.stdout)["for_others"] == [
        f"{folder}/Kernels_gfx1030.co",
        f"{folder}/Kernels_gfx906.co",
    ]
    named = folder / "Kernels_gfx1030.co"
    assert run_targets("runs-on", "gfx906", named).status == 1
    (folder / "libblas.gfx1030.so.hipfb").unlink()
    nothing = "finds no code, because all 4 files with device code are named for other targets: "
    named_for = f"{nothing}gfx906, gfx90a:xnack+, gfx90a:xnack-, gfx1030"
    assert run_targets("runs-on", "gfx942", folder) == (
        1,
        (
            f"{folder}: gfx942 on a stock runtime: {named_for}\n"
            f"{folder}: gfx942 on an extended runtime: {named_for}\n"
            "skipped 4 files, because their names are for other targets\n"
        ),
        "",
    )


def test_runs_on_lists_the_kernel_files_that_an_extended_runtime_opens(run_targets: Run, tmp_path: Path) -> None:
    folder = tmp_path / "library"
    folder.mkdir()
    for target in ("gfx1030", "gfx906"):
        (folder / f"Kernels_{target}.hsaco").write_bytes(bundle_of(target))
    (folder / "TensileLibrary_gfx1030.dat").write_bytes(b"x")
    similar = "code for a similar GPU, which only an extended runtime accepts"
    nothing = "finds no code, because all 2 files with device code are named for other targets: gfx906, gfx1030"
    assert run_targets("runs-on", "gfx1031", folder) == (
        1,
        (
            f"{folder}/Kernels_gfx1030.hsaco: gfx1031 on an extended runtime: uses gfx1030 in 1 bundle ({similar})\n"
            f"{folder}: gfx1031 on a stock runtime: {nothing}\n"
            "skipped 1 file, because its name is for other targets\n"
        ),
        "",
    )
    document = json.loads(run_targets("runs-on", "gfx1031", folder, "--json").stdout)
    assert [(row["path"], row["runtime"], row["runs"]) for row in document["verdicts"]] == [
        (f"{folder}/Kernels_gfx1030.hsaco", "extended", True)
    ]
    assert document["for_others"] == [f"{folder}/Kernels_gfx906.hsaco"]


def test_runs_on_does_not_use_a_similar_file_if_the_gpu_has_its_own(run_targets: Run, tmp_path: Path) -> None:
    for target in ("gfx1030", "gfx1031"):
        (tmp_path / target).mkdir()
        (tmp_path / target / "Kernels.co").write_bytes(bundle_of(target))
    (tmp_path / "gfx1030/More.co").write_bytes(bundle_of("gfx1030"))
    document = json.loads(run_targets("runs-on", "gfx1031", tmp_path, "--json").stdout)
    assert [(row["path"], row["runtime"], row["uses"][0]["code"]) for row in document["verdicts"]] == [
        (f"{tmp_path}/gfx1030/More.co", "extended", "gfx1030"),
        (f"{tmp_path}/gfx1031/Kernels.co", "stock", "gfx1031"),
        (f"{tmp_path}/gfx1031/Kernels.co", "extended", "gfx1031"),
    ]


def test_runs_on_looks_inside_wheels_as_in_folders(run_targets: Run, tmp_path: Path) -> None:
    files = {f"blas/library/Kernels_{target}.co": bundle_of(target) for target in ("gfx906", "gfx1030")}
    wheel = make_wheel(tmp_path, "blas", {"blas/text.txt": b"text", **files})
    kernels = "blas/library/Kernels_gfx906.co"
    for path, name in ((wheel, f"{wheel}!{kernels}"), (tmp_path, f"{wheel}!{kernels}")):
        assert run_targets("runs-on", "gfx906", path) == (
            0,
            (
                f"{name}: gfx906 on a stock runtime: uses gfx906 in 1 bundle "
                "(the same processor with the same features)\n"
                f"{name}: gfx906 on an extended runtime: uses gfx906 in 1 bundle "
                "(the same processor with the same features)\n"
                "skipped 1 file, because its name is for other targets\n"
            ),
            "",
        )


def test_runs_on_reports_wheels_without_device_code(run_targets: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "text", {"text/text.txt": b"text"})
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx906"))
    finished = run_targets("runs-on", "gfx906", wheel, tmp_path / "a.hipfb")
    assert (finished.status, finished.stdout.splitlines()[-1]) == (0, f"{wheel}: no device code")


def test_runs_on_refuses_a_damaged_file(run_targets: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.hipfb"
    path.write_bytes(bundle_of("gfx906")[:50])
    finished = run_targets("runs-on", "gfx906", path)
    assert (finished.status, finished.stdout) == (2, "")
    assert finished.stderr.startswith(f"error: {path}: ")


ON_A_STOCK_RUNTIME = "gfx906:xnack- on a stock runtime", "gfx1030 on a stock runtime"


@needs_compiler
def test_old_runtimes_use_the_code_for_only_one_gpu_on_a_machine_with_two(
    run_targets: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "gfx906:xnack-,gfx1030")
    library = split_two(tmp_path)
    finished = run_targets("runs-on", "native", library)
    first, second = ON_A_STOCK_RUNTIME
    hand = "runtimes use the code for one GPU for all GPUs in a machine"
    lines = [line.removeprefix(f"{library}: ") for line in finished.stdout.splitlines() if "stock" in line]
    assert (finished.status, lines) == (
        1,
        [
            f"{first} of ROCm 7.14: finds nothing in 2 bundles (next to gfx1030: {hand})",
            f"{first} since ROCm 7.15: uses gfx906:xnack- in 2 bundles (the same processor with the same features)",
            f"{second} of ROCm 7.14: finds nothing in 2 bundles (next to gfx906:xnack-: {hand})",
            f"{second} since ROCm 7.15: uses gfx1030 in 2 bundles (the same processor with the same features)",
        ],
    )
    assert run_targets("runs-on", "gfx906:xnack-,gfx1030", library).status == 0


@needs_compiler
def test_a_gpu_without_an_archive_is_skipped_but_an_incomplete_archive_blocks_all_gpus(
    run_targets: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "gfx906:xnack-,gfx1030")
    library = split_two(tmp_path, lost=[(1, "gfx1030")])
    archive = tmp_path / ".kpack/two_gfx1030.kpack"

    def later() -> dict[str, list[tuple[str | None, int]]]:
        rows = json.loads(run_targets("runs-on", "native", library, "--json").stdout)["verdicts"]
        stock = [row for row in rows if row["runtime"] == "stock" and not row["up_to"]]
        return {row["gpu"]: [(use["code"], use["bundles"]) for use in row["uses"]] for row in stock}

    assert later() == {"gfx906:xnack-": [("gfx906:xnack-", 1), (None, 1)], "gfx1030": [("gfx1030", 1), (None, 1)]}
    lack = f"{archive} lists gfx1030 but lacks lib/libtwo.so#1"
    text = run_targets("runs-on", "native", library).stdout
    assert f"({lack}, so runtimes reject every GPU)" in text
    assert f"(next to gfx1030: {lack}, so runtimes reject every GPU)" in text
    archive.unlink()
    assert later() == {"gfx906:xnack-": [("gfx906:xnack-", 2)], "gfx1030": [(None, 2)]}


def _rocblas(folder: Path, *kernels: str) -> Path:
    """Write a rocBLAS with code for two GPUs, and its folder of kernels."""
    library = folder / "lib/librocblas.so.5"
    for path in (library, *(folder / "lib/rocblas/library" / name for name in kernels)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    library.write_bytes(bundle_of("gfx906", "gfx1030"))
    return library


def test_a_library_finds_no_code_for_a_gpu_missing_from_its_kernel_folder(run_targets: Run, tmp_path: Path) -> None:
    library = _rocblas(tmp_path, "TensileLibrary_lazy_gfx1030.dat", "Kernels.so-000-gfx1030.hsaco")
    finished = run_targets("runs-on", "gfx906", tmp_path, "--quiet")
    assert (finished.status, finished.stdout.splitlines()[0]) == (
        1,
        (
            f"{library}: gfx906 on a stock runtime: finds nothing in lib/rocblas/library, "
            "which has no index for gfx906, only for gfx1030"
        ),
    )
    assert run_targets("runs-on", "gfx1030", tmp_path).status == 0


def test_the_kernel_folder_is_searched_next_to_the_given_library(run_targets: Run, tmp_path: Path) -> None:
    library = _rocblas(tmp_path, "TensileLibrary_lazy_gfx1030.dat")
    finished = run_targets("runs-on", "gfx906", library, "--json")
    assert finished.status == 1
    assert json.loads(finished.stdout)["verdicts"][0]["kernel_folder"] == {
        "folder": f"{tmp_path}/lib/rocblas/library",
        "found": "has no index for gfx906, only for gfx1030",
        "compiles": False,
        "is_given": True,
    }


def test_the_kernel_folder_is_found_in_a_folder_with_brackets_in_its_name(run_targets: Run, tmp_path: Path) -> None:
    library = _rocblas(tmp_path / "a[b]", "TensileLibrary_lazy_gfx1030.dat")
    assert run_targets("runs-on", "gfx906", library).status == 1


def test_a_library_without_its_kernel_folder_finds_no_code_for_any_gpu(run_targets: Run, tmp_path: Path) -> None:
    library = _rocblas(tmp_path)
    lead = f"{library}: gfx906 on a stock runtime"
    finished = run_targets("runs-on", "gfx906", tmp_path, "--quiet")
    assert (finished.status, finished.stdout.splitlines()[0]) == (
        1,
        f"{lead}: finds nothing in lib/rocblas/library, which is missing",
    )
    wheel = make_wheel(tmp_path / "dist", "blas", {"blas/librocblas.so.5": bundle_of("gfx906")})
    finished = run_targets("runs-on", "gfx906", wheel, "--quiet")
    assert (finished.status, finished.stdout.splitlines()[0]) == (
        1,
        (
            f"{wheel}!blas/librocblas.so.5: gfx906 on a stock runtime: "
            "finds nothing in blas/rocblas/library, which is missing"
        ),
    )


def test_a_kernel_folder_that_may_be_in_another_package_is_not_checked(run_targets: Run, tmp_path: Path) -> None:
    library = _rocblas(tmp_path)
    finished = run_targets("runs-on", "gfx906", library)
    folder = f"{tmp_path}/lib/rocblas/library"
    note = f"opens {folder}, but no specified package has kernels for it, so there is no verdict"
    assert (finished.status, finished.stdout.splitlines()[1]) == (0, f"{library}: gfx906 on a stock runtime: {note}")
    row = json.loads(run_targets("runs-on", "gfx906", library, "--json").stdout)["verdicts"][0]
    assert (row["runs"], row["kernel_folder"]) == (
        True,
        {"folder": folder, "found": "is missing", "compiles": False, "is_given": False},
    )
    wheel = make_wheel(tmp_path / "dist", "rocm-sdk-libraries", {"k/librocblas.so.5": bundle_of("gfx906")})
    assert run_targets("runs-on", "gfx906", wheel).status == 0


def test_a_file_of_an_installation_is_checked_with_the_whole_installation(run_targets: Run, tmp_path: Path) -> None:
    library = _rocblas(tmp_path)
    (tmp_path / ".info").mkdir()
    (tmp_path / ".info/version").write_text("6.4.3-128")
    finished = run_targets("runs-on", "gfx906", library)
    named = f"checked with the rules for ROCm 6.4.3, which {tmp_path}/.info/version specifies"
    assert (finished.status, finished.stdout.splitlines()[-1]) == (1, named)


def test_the_rocm_option_selects_the_runtime_rules_of_that_release(run_targets: Run, tmp_path: Path) -> None:
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx9-generic"))
    path = f"{tmp_path}/a.hipfb"
    asked = "HIP looks for sramecc, which the GPU has but the code doesn't"
    nothing = f"finds nothing in 1 bundle (gfx9-generic: generic code that covers the GPU, but {asked})"
    generic = "uses gfx9-generic in 1 bundle (generic code that covers the GPU)"
    finished = run_targets("runs-on", "gfx906", path)
    assert (finished.status, [line for line in finished.stdout.splitlines() if "stock" in line]) == (
        1,
        [
            f"{path}: gfx906 on a stock runtime of ROCm 6.4 to 7.1: {generic}",
            f"{path}: gfx906 on a stock runtime since ROCm 7.2: {nothing}",
        ],
    )
    finished = run_targets("runs-on", "gfx906", path, "--rocm", "6.4.3")
    lines = [f"{path}: gfx906 on {which} runtime of ROCm 6.4.3: {generic}" for which in ("a stock", "an extended")]
    assert (finished.status, finished.stdout.splitlines()) == (0, lines)
    assert run_targets("runs-on", "gfx906", path, "--rocm", "7.2").status == 1
    assert run_targets("runs-on", "gfx900", path).status == 0
    assert run_targets("runs-on", "gfx906", path, "--rocm", "3.9") == (
        2,
        "",
        "error: --rocm: '3.9'; expected 4.0 or later\n",
    )


@pytest.mark.parametrize(
    ("package", "release"),
    [
        ("rocm_sdk_core-7.1.0-py3-none-linux_x86_64.whl", "7.1.0"),
        ("torch-2.9.0+rocm7.0-cp312-cp312-linux_x86_64.whl", "7.0"),
    ],
)
def test_the_newest_rocm_release_named_by_a_package_is_the_default(
    run_targets: Run, tmp_path: Path, package: str, release: str
) -> None:
    name, version = package.split("-")[:2]
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx9-generic"))
    (tmp_path / f"{name}-{version}.dist-info").mkdir()
    (tmp_path / "numpy-2.0.0.dist-info").mkdir()
    (tmp_path / "rocm_sdk_core-6.4.0.dist-info").mkdir()
    finished = run_targets("runs-on", "gfx906", tmp_path)
    assert (finished.status, finished.stdout.splitlines()[-1]) == (
        0,
        f"checked with the rules for ROCm {release}, which {name}-{version} specifies",
    )
    document = json.loads(run_targets("runs-on", "gfx906", tmp_path, "--json").stdout)
    assert (document["rocm"], document["rocm_named_by"]) == (release, f"{name}-{version}")
    assert run_targets("runs-on", "gfx906", tmp_path, "--rocm", "7.2").status == 1


@pytest.mark.parametrize(
    ("rocm", "why", "judged"),
    [
        ("99", "is newer than the known releases", "10.1"),
        ("7.5", "isn't a known release", "7.2"),
        ("7", "", ""),
        ("10.1.0", "", ""),
    ],
)
def test_an_unknown_release_is_treated_as_the_nearest_known_release_with_a_note(
    run_targets: Run, tmp_path: Path, rocm: str, why: str, judged: str
) -> None:
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx906"))
    lines = run_targets("runs-on", "gfx906", tmp_path, "--rocm", rocm).stdout.splitlines()
    assert lines[2:] == ([f"ROCm {rocm} {why}, so it is treated as {judged}"] if judged else [])
    document = json.loads(run_targets("runs-on", "gfx906", tmp_path, "--rocm", rocm, "--json").stdout)
    assert (document["rocm"], document["judged_as"]) == (rocm, judged)


@pytest.mark.parametrize(
    ("package", "fields", "release", "source"),
    [
        ("librocblas5", "", "6.4.3", "librocblas5 6.4.3-1"),
        ("mine", "Depends: libamdhip64-6 (>= 6.4.1)\n", "6.4.1", "mine 6.4.3-1, by libamdhip64-6 (>= 6.4.1),"),
    ],
)
def test_the_rocm_release_named_by_a_debian_package_is_used(
    run_targets: Run, tmp_path: Path, package: str, fields: str, release: str, source: str
) -> None:
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx9-generic"))
    write_deb(tmp_path, package, {"./usr/share/doc/x": b""}, fields=fields)
    finished = run_targets("runs-on", "gfx906", tmp_path)
    named = f"checked with the rules for ROCm {release}, which {source} specifies"
    assert (finished.status, finished.stdout.splitlines()[-1]) == (0, named)


def test_debian_packages_are_checked_as_if_installed_together(run_targets: Run, tmp_path: Path) -> None:
    index = "./usr/lib/rocblas/5/library/TensileLibrary_lazy_gfx906.dat"
    blas = write_deb(tmp_path, "librocblas5", {"./usr/lib/librocblas.so.5": bundle_of("gfx906", "gfx1030")})
    kernels = write_deb(tmp_path, "librocblas5-device", {index: b"x"})
    place = "usr/lib/librocblas.so.5"
    lead = f"{blas}!{place}: gfx1030 on a stock runtime of ROCm 6.4.3"
    finished = run_targets("runs-on", "gfx1030", blas, kernels)
    lack = "which has no index for gfx1030, only for gfx906"
    assert (finished.status, finished.stdout.splitlines()[1]) == (
        1,
        f"{lead}: finds nothing in usr/lib/rocblas/5/library, {lack}",
    )
    assert run_targets("runs-on", "gfx906", tmp_path).status == 0


def test_the_kernel_folder_of_a_single_debian_package_is_not_checked(run_targets: Run, tmp_path: Path) -> None:
    blas = write_deb(tmp_path, "librocblas5", {"./usr/lib/librocblas.so.5": bundle_of("gfx906")})
    assert run_targets("runs-on", "gfx906", blas).status == 0
    write_deb(tmp_path, "libother1", {"./usr/share/x": b""})
    finished = run_targets("runs-on", "gfx906", tmp_path, "--quiet")
    lead = f"{blas}!usr/lib/librocblas.so.5: gfx906 on a stock runtime of ROCm 6.4.3"
    assert (finished.status, finished.stdout.splitlines()[0]) == (
        1,
        f"{lead}: finds nothing in usr/lib/rocblas/library, which is missing",
    )


def test_a_damaged_debian_package_is_reported_after_the_others(run_targets: Run, tmp_path: Path) -> None:
    sound = write_deb(tmp_path, "libsound1", {"./usr/lib/a.hipfb": bundle_of("gfx906")})
    damaged = tmp_path / "libz1.deb"
    damaged.write_bytes(sound.read_bytes()[:400])
    finished = run_targets("runs-on", "gfx906", sound, damaged)
    assert finished.status == 2
    assert f"{sound}!usr/lib/a.hipfb: gfx906 on a stock runtime" in finished.stdout
    assert finished.stderr.startswith(f"error: {damaged}: ")


def test_a_file_in_an_environment_is_checked_with_the_release_of_its_packages(run_targets: Run, tmp_path: Path) -> None:
    path = tmp_path / "lib/python3.12/site-packages/torch/lib/a.hipfb"
    path.parent.mkdir(parents=True)
    path.write_bytes(bundle_of("gfx9-generic"))
    (path.parents[2] / "rocm_sdk_core-7.1.0.dist-info").mkdir()
    named = "checked with the rules for ROCm 7.1.0, which rocm_sdk_core-7.1.0 specifies"
    for given in (path, path.parent, tmp_path):
        assert run_targets("runs-on", "gfx906", given).stdout.splitlines()[-1] == named


def test_archives_are_checked_by_release_like_bundles(run_targets: Run, tmp_path: Path) -> None:
    code = (FIXTURES / "v16/vadd.cov3.hipfb").read_bytes()[4096:]
    archive = tmp_path / "x_gfx906.kpack"
    archive.write_bytes(make_kpack({("lib/libx.so", 0, "gfx906"): code}))
    lead = f"{archive}: gfx906:sramecc+:xnack+ on a stock runtime of ROCm"
    for rocm, why in (
        ("7.2", "in kpack archives, which ROCm 7.14 and later read"),
        ("7.14", "gfx906: a code object with version 3, which only ROCm 4.0 to 7.1 loads"),
    ):
        finished = run_targets("runs-on", "gfx906:sramecc+:xnack+", archive, "--rocm", rocm)
        assert (finished.status, finished.stdout.splitlines()[0]) == (
            1,
            f"{lead} {rocm}: finds nothing in 1 bundle ({why})",
        )


@needs_compiler
def test_a_split_library_is_checked_by_the_code_objects_in_its_archives(run_targets: Run, tmp_path: Path) -> None:
    code = (FIXTURES / "v16/vadd.cov3.hipfb").read_bytes()[4096:]
    marker = Marker("lib/libx.so", ("x_@GFXARCH@.kpack",))
    library = build_split_library(tmp_path / "libx.so", [marker], [(0, 0)])
    (tmp_path / "x_gfx906.kpack").write_bytes(make_kpack({("lib/libx.so", 0, "gfx906"): code}))
    finished = run_targets("runs-on", "gfx906:sramecc+:xnack+", library, "--rocm", "10.0")
    why = "gfx906: a code object with version 3, which only ROCm 4.0 to 7.1 loads"
    assert (finished.status, finished.stdout.splitlines()[0]) == (
        1,
        f"{library}: gfx906:sramecc+:xnack+ on a stock runtime of ROCm 10.0: finds nothing in 1 bundle ({why})",
    )


@pytest.mark.parametrize("gpu", ["gfx906", "gfx1100"])
def test_a_static_library_is_checked_by_its_members(run_targets: Run, tmp_path: Path, gpu: str) -> None:
    archive = tmp_path / "libx.a"
    archive.write_bytes(ar_archive({"a.o": (FIXTURES / "v19/vadd.plain.o").read_bytes()}))
    finished = run_targets("runs-on", gpu, archive)
    found = "uses gfx906 in 1 bundle" if gpu == "gfx906" else "finds nothing in 1 bundle"
    assert (finished.status, found in finished.stdout) == (0 if gpu == "gfx906" else 1, True)


def test_a_damaged_static_library_is_refused_with_member_and_offset(run_targets: Run, tmp_path: Path) -> None:
    archive = tmp_path / "libx.a"
    archive.write_bytes(ar_archive({"a.o": (FIXTURES / "v19/vadd.plain.o").read_bytes()})[:-9])
    finished = run_targets("runs-on", "gfx906", archive)
    assert (finished.status, finished.stdout) == (2, "")
    assert finished.stderr == (
        f"error: {archive}: offset 0x8: the member 'a.o' of 23584 bytes, of which only 23575 are present; "
        "expected a complete archive. Rebuild the file.\n"
    )


def test_a_release_that_is_too_old_is_ignored(run_targets: Run, tmp_path: Path) -> None:
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx906"))
    (tmp_path / "torch-1.7.1+rocm3.8.dist-info").mkdir()
    finished = run_targets("runs-on", "gfx906", tmp_path)
    assert (finished.status, finished.stderr, finished.stdout.splitlines()[-1]) == (
        0,
        "",
        (
            "not checked with the rules for ROCm 3.8, which torch-1.7.1+rocm3.8 specifies: the rules are known "
            "only for ROCm 4.0 and later"
        ),
    )
    document = json.loads(run_targets("runs-on", "gfx906", tmp_path, "--json").stdout)
    assert (document["rocm"], document["rocm_named_by"]) == ("", "")


def test_a_comgr_bug_is_noted_for_compressed_code(run_targets: Run) -> None:
    library = FIXTURES / "v22/libtwo.ccob.so"
    last = run_targets("runs-on", "gfx906", library).stdout.splitlines()[-1]
    assert last == (
        "comgr 7.0.2 of Debian sid (libamd-comgr3 7.0.2+dfsg) returns the first compressed bundle's code for "
        "every later bundle while its cache is on, which is the default. "
        "Set AMD_COMGR_CACHE=0, or leave the device code uncompressed."
    )
    assert "AMD_COMGR_CACHE" not in run_targets("runs-on", "gfx906", library, "--rocm", "7.2").stdout
    assert "AMD_COMGR_CACHE" not in run_targets("runs-on", "gfx906", FIXTURES / "v22/libtwo.plain.so").stdout


@pytest.mark.parametrize(
    ("gpu", "rocm", "told"),
    [
        ("gfx906", "6.4.3", True),
        ("gfx906", "7.0", False),
        ("gfx906", "6.2", False),
        ("gfx1200", "6.4.3", False),
    ],
)
def test_the_comgr_bug_is_noted_only_for_releases_that_load_the_code(
    run_targets: Run, gpu: str, rocm: str, told: bool
) -> None:
    finished = run_targets("runs-on", gpu, FIXTURES / "v19/saxpy.ccob.hipfb", "--rocm", rocm)
    assert ("AMD_COMGR_CACHE" in finished.stdout) is told


def test_releases_that_fail_for_different_reasons_have_separate_lines(run_targets: Run) -> None:
    path = FIXTURES / "v16/vadd.cov2.hipfb"
    lines = run_targets("runs-on", "gfx906:sramecc-:xnack-", path).stdout.splitlines()
    version = "gfx906: a code object with version 2, which only ROCm 6.4 to 7.1 loads"
    target = "gfx906:sramecc-:xnack+"
    flags = f"gfx906: the code object's flags are for {target}: requires xnack on, but it is off for the GPU"
    assert [line for line in lines if "stock" in line] == [
        f"{path}: gfx906:sramecc-:xnack- on a stock runtime of ROCm 6.4 to 7.1: finds nothing in 1 bundle ({flags})",
        f"{path}: gfx906:sramecc-:xnack- on a stock runtime since ROCm 7.2: finds nothing in 1 bundle ({version})",
    ]


@needs_compiler
def test_archives_are_checked_as_part_of_the_library_that_opens_them(run_targets: Run, tmp_path: Path) -> None:
    split_two(tmp_path)
    archives = sorted((tmp_path / ".kpack").iterdir())
    finished = run_targets("runs-on", "gfx1030", tmp_path / "lib/libtwo.so", *archives)
    assert (finished.status, finished.stdout) == (
        0,
        (
            f"{tmp_path}/lib/libtwo.so: gfx1030 on a stock runtime since ROCm 7.14: uses gfx1030 in 2 bundles "
            "(the same processor with the same features)\n"
            f"{tmp_path}/lib/libtwo.so: gfx1030 on an extended runtime since ROCm 7.14: uses gfx1030 in 2 bundles "
            "(the same processor with the same features)\n"
        ),
    )
