"""Whole libraries for each target: which of them processes load, by what the kernel says is mapped."""

from __future__ import annotations

import json
import subprocess
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support.artifacts import artifact, build_packages
from tests.support.overlay_packages import add_library, build_overlays, mapped, run_python, unpack

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sdk.installed import Installed, MakeEnvironment

pytestmark = pytest.mark.slow

PRELOAD = "import rocm_sdk; rocm_sdk.initialize_process(preload_shortnames={});"
HIPSPARSE = PRELOAD.format(["hipsparse"])


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_overlays(tmp_path_factory.mktemp("overlays"), "--common", "gfx1030")[0]


@pytest.fixture(scope="module")
def site(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(dist, tmp_path_factory.mktemp("site"), "gfx906", "gfx90a")


def test_gpu_libraries_are_loaded_including_dependencies(site: Path) -> None:
    assert mapped(site, HIPSPARSE, "gfx906") == [
        "libhipsparse.so.4",
        "librocblas.so.5.gfx906",
        "librocsparse.so.1.gfx906",
    ]


def test_a_library_without_code_for_the_gpu_falls_back_to_the_generic_library(site: Path) -> None:
    assert mapped(site, HIPSPARSE, "gfx90a") == ["libhipsparse.so.4", "librocblas.so.5.gfx90a", "librocsparse.so.1"]


@pytest.mark.parametrize("gpus", ["gfx1030", "gfx1100", "gfx1030,gfx1030"])
def test_gpus_without_a_package_use_the_generic_libraries(site: Path, gpus: str) -> None:
    assert mapped(site, HIPSPARSE, gpus) == ["libhipsparse.so.4", "librocblas.so.5", "librocsparse.so.1"]


def test_a_machine_without_a_gpu_uses_the_generic_libraries(site: Path) -> None:
    found = mapped(site, HIPSPARSE, "", ROCM_BOOTSTRAP_DISABLE_DETECTION="1")
    assert found == ["libhipsparse.so.4", "librocblas.so.5", "librocsparse.so.1"]


def test_consumers_loaded_later_use_the_chosen_libraries(site: Path, tmp_path: Path) -> None:
    consumer = build_consumer(site, tmp_path)
    code = f"{HIPSPARSE}import ctypes; ctypes.CDLL({str(consumer)!r});"
    assert mapped(site, code, "gfx906") == ["libhipsparse.so.4", "librocblas.so.5.gfx906", "librocsparse.so.1.gfx906"]


def test_a_consumer_that_relies_on_a_run_path_uses_the_generic_libraries(site: Path, tmp_path: Path) -> None:
    consumer = build_consumer(site, tmp_path)
    code = f"import ctypes; ctypes.CDLL({str(consumer)!r});"
    assert mapped(site, code, "gfx906") == ["libhipsparse.so.4", "librocblas.so.5", "librocsparse.so.1"]


def build_consumer(site: Path, folder: Path) -> Path:
    """Link a library that needs libhipsparse and libraries behind it, and finds them by its run path alone."""
    library, libraries = folder / "consumer.so", site / "_rocm_sdk_libraries/lib"
    words = ["-Wl,--no-as-needed", f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-l:libhipsparse.so.4"]
    words += ["-l:librocsparse.so.1", "-l:librocblas.so.5"]
    subprocess.run(["gcc", "-shared", "-nostdlib", "-o", library, *words], check=True)
    return library


def test_kernels_are_found_beside_the_gpu_library(site: Path) -> None:
    code = PRELOAD.format(["hipblas"]) + (
        "import ctypes; library = ctypes.CDLL('librocblas.so.5');"
        "print(library.has_kernels(b'TensileLibrary_gfx906.dat'), library.has_kernels(b'absent.dat'))"
    )
    done = run_python(site, code, "gfx906")
    assert (done.returncode, done.stdout) == (0, "1 0\n"), done.stderr


def test_a_previously_loaded_library_stays_loaded_with_a_warning(site: Path) -> None:
    early = f"import ctypes; ctypes.CDLL({str(site / '_rocm_sdk_libraries/lib/librocblas.so.5')!r});"
    assert mapped(site, early + HIPSPARSE, "gfx906") == [
        "libhipsparse.so.4",
        "librocblas.so.5",
        "librocsparse.so.1.gfx906",
    ]
    done = run_python(site, early + HIPSPARSE, "gfx906")
    assert "Warning: librocblas.so.5 was loaded before rocm_sdk could choose librocblas.so.5.gfx906" in done.stderr


def test_a_previously_loaded_gpu_library_causes_no_warning(site: Path) -> None:
    early = f"import ctypes; ctypes.CDLL({str(site / '_rocm_sdk_libraries/lib/librocblas.so.5.gfx906')!r});"
    done = run_python(site, early + HIPSPARSE, "gfx906")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_gpu_library_loaded_through_a_symlinked_folder_causes_no_warning(site: Path, tmp_path: Path) -> None:
    linked = tmp_path / "lib64"
    linked.symlink_to(site)
    early = f"import ctypes; ctypes.CDLL({str(linked / '_rocm_sdk_libraries/lib/librocblas.so.5.gfx906')!r});"
    done = run_python(linked, early + HIPSPARSE, "gfx906")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_libraries_of_the_first_gpu_are_loaded_for_two_kinds_of_gpus(dist: Path, tmp_path: Path) -> None:
    site = unpack(dist, tmp_path, "gfx906", "gfx1030")
    assert mapped(site, HIPSPARSE, "gfx906,gfx1030")[1:] == ["librocblas.so.5.gfx906", "librocsparse.so.1.gfx906"]
    assert mapped(site, HIPSPARSE, "gfx1030,gfx906")[1:] == ["librocblas.so.5.gfx1030", "librocsparse.so.1.gfx1030"]


def test_two_kinds_of_gpus_share_the_generic_libraries_if_these_support_both(tmp_path: Path) -> None:
    site = unpack(build_overlays(tmp_path, "--common", "gfx906,gfx1030")[0], tmp_path / "site", "gfx906")
    assert mapped(site, HIPSPARSE, "gfx906,gfx1030")[1:] == ["librocblas.so.5", "librocsparse.so.1"]


def test_a_gpu_without_code_is_named(site: Path) -> None:
    done = run_python(site, HIPSPARSE, "gfx906,gfx1030")
    assert "uses the ROCm libraries for gfx906, which have no code for gfx1030" in done.stderr
    assert "ROCR_VISIBLE_DEVICES" in done.stderr


def test_an_integrated_gpu_comes_last_without_a_message(site: Path) -> None:
    assert mapped(site, HIPSPARSE, "gfx1036,gfx906")[1:] == ["librocblas.so.5.gfx906", "librocsparse.so.1.gfx906"]
    assert run_python(site, HIPSPARSE, "gfx1036,gfx906").stderr == ""


@pytest.mark.parametrize("variable", ["ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"])
def test_gpus_hidden_from_the_process_do_not_count(site: Path, variable: str) -> None:
    found = mapped(site, HIPSPARSE, "gfx906,gfx90a", **{variable: "1"})
    assert found == ["libhipsparse.so.4", "librocblas.so.5.gfx90a", "librocsparse.so.1"]


def test_the_choice_of_the_user_takes_precedence_over_the_gpus(site: Path) -> None:
    found = mapped(site, HIPSPARSE, "gfx906", ROCM_SDK_TARGET_FAMILY="gfx90a")
    assert found == ["libhipsparse.so.4", "librocblas.so.5.gfx90a", "librocsparse.so.1"]


def test_the_library_for_the_gpu_is_loaded_if_the_user_chose_several(site: Path) -> None:
    found = mapped(site, HIPSPARSE, "gfx90a", ROCM_SDK_TARGET_FAMILY="gfx906,gfx90a")
    assert found == ["libhipsparse.so.4", "librocblas.so.5.gfx90a", "librocsparse.so.1"]


def test_libraries_without_device_code_are_still_found(site: Path) -> None:
    done = run_python(site, "import rocm_sdk; print(*(p.name for p in rocm_sdk.find_libraries('hipblas')))", "gfx906")
    assert done.stdout == "libhipblas.so.3\n"


@pytest.mark.parametrize(
    ("gpus", "found"),
    [
        ("gfx906", []),
        ("gfx906,gfx90a", [("warning", "gfx906, which have no code for gfx90a")]),
        ("gfx906,gfx1030", []),
        ("gfx1030", []),
    ],
)
def test_the_doctor_names_gpus_whose_package_is_unused(site: Path, gpus: str, found: list[tuple[str, str]]) -> None:
    code = (
        "from rocm_sdk._doctor_device_code import check_libraries as check;"
        "from rocm_sdk._system import System; import json; print(json.dumps(check(System())))"
    )
    rows = json.loads(run_python(site, code, gpus).stdout)
    assert [(level, text.partition("the libraries for ")[2]) for level, text, _ in rows] == found


def test_the_doctor_only_warns_about_a_gpu_that_runs_generic_code(site: Path) -> None:
    code = (
        "from rocm_sdk._doctor_device_code import check_device_code as check; import json;"
        "from rocm_sdk._system import System; from rocm_sdk._gpus import detect_gpus;"
        "print(json.dumps([row[:2] for row in check(System(), detect_gpus(System()))]))"
    )
    text = "the package with the kernels for gfx1030 is not installed"
    shared = ": the GPU can run only the code in the libraries for all GPUs, without kernel files"
    assert json.loads(run_python(site, code, "gfx1030").stdout) == [["warning", text + shared]]


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_installing_and_removing_packages_in_any_order_leaves_nothing(
    dist: Path, make_environment: MakeEnvironment, tool: str
) -> None:
    environment = make_environment(dist, tool)
    before = environment.files()
    environment.install("rocm[libraries,devel]", "rocm-sdk-device-gfx906")
    assert used(environment, "gfx906") == ["librocblas.so.5.gfx906"]
    environment.run("rocm-sdk", "init")
    tree = environment.root / "lib/librocblas.so.5.gfx906"
    assert tree.samefile(environment.site / "_rocm_sdk_libraries/lib/librocblas.so.5.gfx906")
    environment.install("rocm-sdk-device-gfx90a")
    environment.uninstall("rocm-sdk-device-gfx906")
    environment.run("rocm-sdk", "init")
    assert (used(environment, "gfx906"), used(environment, "gfx90a")) == (
        ["librocblas.so.5"],
        ["librocblas.so.5.gfx90a"],
    )
    assert not tree.exists()
    tested = environment.run("rocm-sdk", "test", check=False).stdout
    assert [line for line in tested.splitlines() if line.startswith("failed")] == []
    environment.uninstall("rocm-sdk-libraries", "rocm-sdk-devel")
    environment.uninstall("rocm-sdk-device-gfx90a", "rocm-sdk-core", "rocm")
    assert environment.files() == before


def used(environment: Installed, gpu: str) -> list[str]:
    """Return which library of rocBLAS a process of the environment has."""
    code = PRELOAD.format(["hipblas"]) + (
        "print(*sorted({line.rpartition('/')[2].strip() for line in open('/proc/self/maps') if '/librocblas' in line}))"
    )
    return environment.evaluate(code, ROCM_BOOTSTRAP_FORCE_GFX_ARCH=gpu).split()


def test_a_public_library_with_device_code_is_found_for_the_gpu(tmp_path: Path) -> None:
    stage = artifact(tmp_path / "in", "rccl_lib_generic")
    add_library(stage, "librccl.so.1", ["gfx906 gfx1030"])
    dist, _ = build_packages(tmp_path, "--split-device=overlay", "--selector", "wheel")
    for name in ("rocm-", "rocm_sdk_libraries-", "rocm_sdk_device_gfx906-"):
        [wheel] = dist.glob(f"{name}*.whl")
        zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = "import rocm_sdk; print(*(path.name for path in rocm_sdk.find_libraries('rccl')))"
    assert run_python(tmp_path / "site", code, "gfx906").stdout == "librccl.so.1.gfx906\n"
    assert run_python(tmp_path / "site", code, "gfx1030").stdout == "librccl.so.1\n"
