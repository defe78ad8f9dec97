"""``rocm-sdk test``: passes on a machine without a GPU, says what it left out, and fails on what is broken."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.sdk.installed import FROM_INDEX, Installed, run
from tests.support.environments import make_venv

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sdk.installed import MakeEnvironment, MakeInstalled, MakeSet

pytestmark = pytest.mark.slow


@pytest.fixture
def environment(make_installed: MakeInstalled) -> Installed:
    return make_installed("rocm[devel,libraries,profiler,device-gfx906]")


def fail(environment: Installed, **environ: str) -> str:
    done = environment.run("rocm-sdk", "test", check=False, **environ)
    assert done.returncode == 1
    return done.stdout


def test_a_healthy_installation_passes_and_lists_checks_that_need_a_gpu(environment: Installed) -> None:
    printed = environment.run("rocm-sdk", "test").stdout
    assert printed.splitlines() == [
        "passed    all: all packages have the version of rocm",
        "left out  all: choice of families is installed: ROCM_SDK_TARGET_FAMILY is not set",
        "left out  all: GPUs are served by the packages installed: no AMD GPU was found",
        "passed    all: metadata names the command",
        "passed    all: packages are side by side",
        "passed    core: all shared libraries load",
        "left out  core: console scripts run: not run because they need a GPU: rocminfo",
        "passed    core: core is installed",
        "passed    core: public libraries load",
        "passed    libraries: all shared libraries load",
        "passed    libraries: public libraries load",
        "passed    devel: links lead somewhere",
        "passed    devel: shared libraries load",
        "passed    devel: tree has CMake files",
        "passed    profiler: all shared libraries load",
        "passed    profiler: console scripts run",
        "16 checks: 13 passed, 0 failed, 3 left out",
    ]


def test_packages_that_are_not_installed_do_not_count_as_checks(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set())
    environment.install("rocm")
    printed = environment.run("rocm-sdk", "test").stdout
    assert [line for line in printed.splitlines() if line.endswith("the package is not installed")] == [
        "absent    libraries: the package is not installed",
        "absent    devel: the package is not installed",
        "absent    profiler: the package is not installed",
    ]
    lines = [line for line in printed.splitlines() if line.startswith("left out")]
    assert printed.splitlines()[-1].endswith(f"0 failed, {len(lines)} left out")


def test_a_set_without_devices_and_profiler_passes(make_set: MakeSet, make_environment: MakeEnvironment) -> None:
    environment = make_environment(make_set(devices=()))
    environment.install("rocm[libraries,device,devel]")
    environment.run("rocm-sdk", "test", ROCM_BOOTSTRAP_FORCE_GFX_ARCH="gfx906")


def test_a_library_that_does_not_load_fails(environment: Installed) -> None:
    (environment.site / "_rocm_sdk_core/lib/libamdhip64.so.6").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(60))
    library = environment.site / "_rocm_sdk_core/lib/libamdhip64.so.6"
    printed = fail(environment)
    assert f"failed    core: public libraries load\n          {library}: " in printed
    assert "Traceback" not in printed
    assert "!=" not in printed


def test_missing_files_of_the_package_itself_fail(environment: Installed) -> None:
    (environment.site / "rocm_sdk/__init__.py").unlink()
    done = environment.run("rocm-sdk", "test", check=False)
    assert "failed    core: Python files are there\n          cannot import name 'find_libraries'" in done.stdout
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert done.stdout.splitlines()[-1].split(", ")[1] != "0 failed"


def test_a_library_with_an_unresolved_dependency_fails(make_set: MakeSet, make_environment: MakeEnvironment) -> None:
    environment = make_environment(make_set())
    environment.install("rocm[libraries]", "--link-mode=copy")
    (environment.site / "_rocm_sdk_core/lib/libamdhip64.so.6").unlink()
    assert "libamdhip64.so.6: cannot open shared object file" in fail(environment)


def test_a_library_that_kills_the_process_fails_without_ending_the_test(
    environment: Installed, tmp_path: Path, binaries: Path
) -> None:
    source = tmp_path / "abort.c"
    source.write_text("#include <stdlib.h>\n__attribute__((constructor)) static void go(void) { abort(); }\n")
    library = environment.site / "_rocm_sdk_core/lib/libabort.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    assert "the process was killed by SIGABRT during loading" in fail(environment)


def test_a_library_that_exits_with_status_0_while_loading_fails(environment: Installed, tmp_path: Path) -> None:
    source = tmp_path / "exit.c"
    source.write_text("#include <unistd.h>\n__attribute__((constructor)) static void go(void) { _exit(0); }\n")
    library = environment.site / "_rocm_sdk_core/lib/libexit.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    assert "the process exited with status 0 during loading" in fail(environment)


def test_a_plugin_that_loads_only_into_its_program_passes(environment: Installed, tmp_path: Path) -> None:
    source = tmp_path / "polly.c"
    source.write_text("extern int in_opt(void);\nint (*llvmGetPassPluginInfo(void))(void) { return in_opt; }\n")
    library = environment.site / "_rocm_sdk_core/lib/LLVMPolly.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    assert environment.run("rocm-sdk", "test").stdout.endswith(", 0 failed, 3 left out\n")


def test_a_library_with_an_undefined_symbol_fails(environment: Installed, tmp_path: Path) -> None:
    source = tmp_path / "lacking.c"
    source.write_text("extern int in_opt(void);\nint (*lacking(void))(void) { return in_opt; }\n")
    library = environment.site / "_rocm_sdk_core/lib/liblacking.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    assert f"{library}: undefined symbol: in_opt" in fail(environment)


def test_a_failing_program_is_shown_with_its_output(environment: Installed) -> None:
    program = environment.site / "_rocm_sdk_core/bin/hipcc"
    program.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    script = environment.path / "bin/hipcc"
    assert (
        "failed    core: console scripts run\n"
        f"          `{script} --version` exited with status 3: broken\n"
        "          left out: not run because they need a GPU: rocminfo\n"
    ) in fail(environment)


def test_a_missing_console_script_fails(environment: Installed) -> None:
    (environment.path / "bin/rocminfo").unlink()
    assert "the console script rocminfo doesn't exist, or doesn't belong to core" in fail(environment)


@pytest.mark.deep
@pytest.mark.parametrize("tool", ["pip", "uv"])
@pytest.mark.parametrize(("option", "site"), [("--target", ""), ("--prefix", "lib/python3*/site-packages")])
def test_an_installation_in_a_target_or_prefix_folder_passes(
    make_set: MakeSet, make_environment: MakeEnvironment, tmp_path: Path, tool: str, option: str, site: str
) -> None:
    environment = make_environment(make_set(), tool)
    folder = tmp_path / "own"
    environment.install(option, str(folder), "rocm[libraries,profiler]")
    modules = next(folder.glob(site)) if site else folder
    test = [str(environment.python), str(folder / "bin/rocm-sdk"), "test"]
    run(test, environ={"PYTHONPATH": str(modules)})
    run(test, environ={"PYTHONPATH": os.path.relpath(modules)})
    # Its own programs are those that were run
    (modules / "_rocm_sdk_core/bin/hipcc").write_text("#!/bin/sh\nexit 3\n")
    printed = run(test, check=False, environ={"PYTHONPATH": str(modules)}).stdout
    assert f"`{folder}/bin/hipcc --version` exited with status 3" in printed


def test_a_user_installation_passes(make_set: MakeSet, tmp_path: Path) -> None:
    make_venv(tmp_path / "environment", "--system-site-packages")
    environment = Installed(tmp_path / "environment", make_set(), "pip", None)
    base = str(tmp_path / "user")
    environment.install("--user", "rocm[libraries,profiler]", PYTHONUSERBASE=base)
    run([f"{base}/bin/rocm-sdk", "test"], environ={"PYTHONUSERBASE": base})
    run([str(environment.python), "-m", "rocm_sdk", "test"], environ={"PYTHONUSERBASE": base})


def test_a_system_program_does_not_count_as_a_console_script(environment: Installed) -> None:
    script = environment.path / "bin/hipcc"
    script.write_text("#!/bin/sh\nexit 0\n")
    assert "the console script hipcc doesn't exist, or doesn't belong to core" in fail(environment)


def test_a_package_without_record_passes(environment: Installed) -> None:
    for record in environment.site.glob("rocm*.dist-info/RECORD"):
        record.unlink()
    environment.run("python", "-m", "rocm_sdk", "test")


def test_a_package_of_another_version_fails(environment: Installed) -> None:
    metadata = next(environment.site.glob("rocm_sdk_libraries-*/METADATA"))
    metadata.write_text(metadata.read_text().replace("Version: 7.2.0", "Version: 7.1.0"))
    assert (
        "failed    all: all packages have the version of rocm\n"
        "          rocm has version 7.2.0, but rocm-sdk-libraries has version 7.1.0\n"
    ) in fail(environment)


def test_a_gpu_without_its_device_package_fails_with_the_install_command(environment: Installed) -> None:
    command = f'pip install "rocm[device-gfx1030]==7.2.0" {FROM_INDEX}'
    printed = fail(environment, ROCM_BOOTSTRAP_FORCE_GFX_ARCH="gfx1030")
    assert f"the package with the kernels for gfx1030 is not installed: {command}\n" in printed


def test_a_gpu_with_its_device_package_passes(environment: Installed) -> None:
    environment.run("rocm-sdk", "test", ROCM_BOOTSTRAP_FORCE_GFX_ARCH="gfx906:xnack-")


def test_an_integrated_gpu_passes_if_another_gpu_has_its_package(environment: Installed) -> None:
    environment.run("rocm-sdk", "test", ROCM_BOOTSTRAP_FORCE_GFX_ARCH="gfx906,gfx1036")


def test_a_gpu_hidden_by_a_variable_needs_no_package(environment: Installed) -> None:
    both = "gfx942,gfx906"
    assert "has no packages for gfx942" in fail(environment, ROCM_BOOTSTRAP_FORCE_GFX_ARCH=both)
    environment.run("rocm-sdk", "test", HIP_VISIBLE_DEVICES="1", ROCM_BOOTSTRAP_FORCE_GFX_ARCH=both)


def test_an_integrated_gpu_unsupported_by_the_release_is_not_a_failure(environment: Installed) -> None:
    printed = environment.run("rocm-sdk", "test", ROCM_BOOTSTRAP_FORCE_GFX_ARCH="gfx90c").stdout
    text = "ROCm 7.2.0 has no packages for gfx90c, which is integrated (available: gfx906, gfx1030)"
    assert f"left out  all: GPUs are served by the packages installed: {text}\n" in printed


def test_an_invalid_variable_fails(environment: Installed) -> None:
    assert "ROCM_TARGET_LST=/nowhere: the file can't be read" in fail(environment, ROCM_TARGET_LST="/nowhere")


def test_a_choice_missing_from_the_release_fails_with_the_available_families(environment: Installed) -> None:
    printed = fail(environment, ROCM_SDK_TARGET_FAMILY="nope")
    assert "has no packages for nope on linux. Available: gfx906, gfx1030." in printed
    assert "ValueError" not in printed


def test_devel_without_cmake_files_fails(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    (environment.root / "lib/cmake/hip/hip-config.cmake").unlink()
    assert f"there are no CMake package files in {environment.root}/lib/cmake" in fail(environment)


def test_a_broken_link_in_the_tree_fails(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    (environment.site / "_rocm_sdk_core/share/a,b.txt").unlink()
    assert "broken links; reinstall all packages in the set together" in fail(environment)
