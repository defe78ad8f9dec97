"""The promises of the reference's packages, one test for each, on an installed set.

They are those of its self-test (``rocm_sdk/tests`` of TheRock's packages) and of what it documents.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.build.planning.options import PlanOptions
from tests.reference.conftest import build, new_environment, shared, write_artifact
from tests.sdk.installed import run
from tests.support.record_check import record_faults

if TYPE_CHECKING:
    from tests.reference.conftest import Compile, MakeEnvironment
    from tests.sdk.installed import Installed

pytestmark = pytest.mark.slow

PACKAGES = ("_rocm_sdk_core", "_rocm_sdk_libraries", "_rocm_profiler", "_rocm_sdk_devel")
NOT_LOADABLE = "clang_rt"
PRELOADED = "print(*sorted(rocm_sdk._ALL_CDLLS))"


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Return an environment into which pip has installed everything, expanded; not to be changed."""
    environment = new_environment(tmp_path_factory.mktemp("promises") / "environment", dist, "pip")
    environment.install("rocm[libraries,devel,profiler,device-all]")
    environment.run("rocm-sdk", "path", "--root")
    return environment


def platform_files(installed: Installed, package: str) -> list[Path]:
    root = installed.site / package
    return sorted(path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def shared_libraries(installed: Installed, package: str) -> list[Path]:
    return [path for pattern in ("*.so", "*.so.*") for path in (installed.site / package).rglob(pattern)]


def preloaded(installed: Installed, call: str, **environ: str) -> str:
    return installed.evaluate(f"import rocm_sdk; {call}; {PRELOADED}", **environ)


# Of all packages


def test_help_shows_the_usage(installed: Installed) -> None:
    assert "usage:" in installed.run("python", "-m", "rocm_sdk", "--help").stdout


def test_version_is_printed(installed: Installed) -> None:
    assert installed.run("python", "-m", "rocm_sdk", "version").stdout == "7.0.0\n"


def test_targets_are_printed(installed: Installed) -> None:
    assert "gfx906" in installed.run("python", "-m", "rocm_sdk", "targets").stdout.strip().split(";")


def test_a_library_is_preloaded_by_its_short_name(installed: Installed) -> None:
    call = "rocm_sdk.initialize_process(preload_shortnames=['amdhip64'])"
    assert preloaded(installed, call) == "amdhip64"


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("amdhip64", "amdhip64"),
        (" ,amdhip64, ,hiprtc,", "amdhip64 hiprtc"),
        (" ;amdhip64; ;hiprtc;", "amdhip64 hiprtc"),
    ],
)
def test_libraries_are_preloaded_by_the_environment_variable(installed: Installed, value: str, names: str) -> None:
    call = "rocm_sdk.initialize_process()"
    assert preloaded(installed, call, ROCM_SDK_PRELOAD_LIBRARIES=value) == names


@pytest.mark.parametrize("wanted", ["rocm_sdk.__version__", "'*'", "re.compile('.+')"])
def test_a_matching_version_is_accepted(installed: Installed, wanted: str) -> None:
    code = f"import re, rocm_sdk; rocm_sdk.initialize_process(check_version={wanted}, fail_on_version_mismatch=True)"
    assert installed.evaluate(code) == ""


def test_a_version_mismatch_fails_if_requested(installed: Installed) -> None:
    code = "import rocm_sdk; rocm_sdk.initialize_process(check_version='badversion', fail_on_version_mismatch=True)"
    done = installed.run("python", "-c", code, check=False)
    assert "RuntimeError: The program was compiled against a ROCm version matching" in done.stderr


def test_a_version_mismatch_warns_by_default(installed: Installed) -> None:
    done = installed.run("python", "-c", "import rocm_sdk; rocm_sdk.initialize_process(check_version='badversion')")
    assert "UserWarning: The program was compiled against a ROCm version matching" in done.stderr


@pytest.mark.parametrize("package", ["rocm_sdk", "rocm_sdk_devel", *PACKAGES])
def test_each_package_is_a_folder_with_an_init_file_next_to_rocm_sdk(installed: Installed, package: str) -> None:
    assert (
        installed.evaluate(f"import {package}; print({package}.__file__)") == f"{installed.site}/{package}/__init__.py"
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_every_shared_library_loads_in_its_own_process(installed: Installed, package: str) -> None:
    libraries = {path.resolve() for path in shared_libraries(installed, package) if NOT_LOADABLE not in path.name}
    assert libraries
    loading = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    done = {path: installed.run("python", "-c", loading, str(path), check=False) for path in libraries}
    assert [path for path, process in done.items() if process.returncode] == []


def test_every_installed_public_library_can_be_preloaded(installed: Installed) -> None:
    code = """
import rocm_sdk
from rocm_sdk import _dist_info as di
target = di.AVAILABLE_TARGET_FAMILIES[0]
entries = [e for e in di.ALL_LIBRARIES.values() if e.package.has_py_package(target)]
for entry in entries:
    rocm_sdk.preload_libraries(entry.shortname)
print(len(entries) > 8, {e.shortname for e in entries if not e.optional} <= set(rocm_sdk._ALL_CDLLS))
"""
    assert installed.evaluate(code) == "True True"


def test_find_libraries_returns_absolute_paths(installed: Installed) -> None:
    found = installed.evaluate("import rocm_sdk; print(*rocm_sdk.find_libraries('amdhip64', 'hipblas'))").split()
    assert [Path(path).is_absolute() and Path(path).is_file() for path in found] == [True, True]


def test_an_unknown_library_is_an_import_error(installed: Installed) -> None:
    done = installed.run("python", "-c", "import rocm_sdk; rocm_sdk.find_libraries('nothing')", check=False)
    assert "ModuleNotFoundError: Unknown ROCm library 'nothing'" in done.stderr


# Of the core


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("amdclang", "clang version"),
        ("amdclang++", "clang version"),
        ("amdclang-cl", "clang version"),
        ("amdclang-cpp", "clang version"),
        ("hipcc", "clang version"),
        ("rocm-smi", "Management"),
        ("rocminfo", ""),
        ("rocm_agent_enumerator", ""),
    ],
)
def test_a_console_script_runs_its_program(installed: Installed, command: str, text: str) -> None:
    assert text in installed.run(command).stdout


# Of the development files


def test_the_bin_folder_exists(installed: Installed) -> None:
    assert Path(installed.run("rocm-sdk", "path", "--bin").stdout.strip()).is_dir()


def test_the_cmake_folder_has_the_hip_config(installed: Installed) -> None:
    folder = Path(installed.run("rocm-sdk", "path", "--cmake").stdout.strip())
    assert (folder / "hip/hip-config.cmake").is_file()


def test_the_root_has_a_bin_folder(installed: Installed) -> None:
    root = Path(installed.run("rocm-sdk", "path", "--root").stdout.strip())
    assert root.samefile(installed.root)
    assert (root / "bin").is_dir()


def test_programs_run_from_the_development_tree(installed: Installed) -> None:
    assert Path(installed.run("hipconfig", "--rocmpath").stdout.strip()).samefile(installed.root)


def test_the_root_has_a_symlink_to_llvm(installed: Installed) -> None:
    assert (installed.root / "llvm").is_symlink()
    assert (installed.root / "llvm/bin/clang++").exists()


def test_files_in_the_libraries_folder_are_the_same_files_in_the_development_tree(installed: Installed) -> None:
    folder = installed.site / "_rocm_sdk_libraries"
    names = [path.relative_to(folder) for path in platform_files(installed, "_rocm_sdk_libraries")]
    payload = [name for name in names if name != Path("__init__.py") and name.parts[0] != ".devel_links"]
    assert Path(".device-gfx906") in payload
    assert [name for name in payload if not (installed.root / name).is_file()] == []
    assert [name for name in payload if not (installed.root / name).samefile(folder / name)] == []


def test_record_lists_every_file(installed: Installed) -> None:
    assert record_faults(installed.site) == []


# Of device packages


@pytest.mark.parametrize("target", ["gfx906", "gfx1030"])
def test_a_manifest_lists_the_files_of_its_device_package(installed: Installed, target: str) -> None:
    folder = installed.site / "_rocm_sdk_libraries"
    manifest = json.loads((folder / f".devel_links/{target}.json").read_text())
    assert manifest["version"] == "7.0.0"
    record = next(installed.site.glob(f"rocm_sdk_device_{target}-*/RECORD"))
    with record.open(newline="") as file:
        rows = {row[0] for row in csv.reader(file)}
    owned = {row.partition("/")[2] for row in rows if row.startswith("_rocm_sdk_libraries/")}
    assert {link["relpath"] for link in manifest["links"]} == owned - {f".devel_links/{target}.json"}
    ends = {
        os.path.normpath(f"{installed.root / link['relpath']}/../{link['target']}"): str(folder / link["relpath"])
        for link in manifest["links"]
    }
    assert all(end == expected and Path(end).is_file() for end, expected in ends.items())


# Of the profiler


def test_every_library_that_the_profilers_need_is_found(installed: Installed) -> None:
    libraries = shared_libraries(installed, "_rocm_profiler")
    assert libraries
    listed = [subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False) for path in libraries]
    assert [line for done in listed for line in done.stdout.splitlines() if "not found" in line] == []


def test_profiler_libraries_also_have_unversioned_names(installed: Installed) -> None:
    folder = installed.site / "_rocm_profiler/lib"
    versioned = [*folder.glob("librocprof-sys*.so.*"), *folder.glob("libprofiler-hub*.so.*")]
    assert versioned
    assert [path.name for path in versioned if not path.with_suffix("").exists()] == []


# Of libraries that are opened by their plain names


@pytest.mark.parametrize("alias", [False, True], ids=["without the name", "with the name"])
def test_an_unversioned_library_is_the_same_file_in_the_libraries_folder_and_the_tree(
    small_sdk: Path, tmp_path: Path, compile_c: Compile, make_environment: MakeEnvironment, *, alias: bool
) -> None:
    # Given a library that MIOpen opens without its version, with or without a link of that name among the artifacts
    soname = "libMIOpenCKGroupedConv_gfx9.so.1"
    tree: dict[str, Path | str] = {f"lib/{soname}": compile_c(soname, "int ck(void) { return 9; }", *shared(soname))}
    plain = "lib/libMIOpenCKGroupedConv_gfx9.so"
    write_artifact(small_sdk, "miopen_lib_generic", tree | ({plain: f"-> {soname}"} if alias else {}))
    environment = make_environment(build(small_sdk, tmp_path))
    environment.install("rocm[libraries,devel]")
    environment.run("rocm-sdk", "init")
    assert (environment.root / plain).samefile(environment.site / "_rocm_sdk_libraries" / plain)
    assert environment.evaluate(f"import ctypes; print(ctypes.CDLL({str(environment.root / plain)!r}).ck())") == "9"


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_the_printed_install_command_works_for_zstd_compressed_development_files(
    small_sdk: Path, tmp_path: Path, make_environment: MakeEnvironment, tool: str
) -> None:
    header = {"include/hip.h": b"#pragma once\n"}
    write_artifact(small_sdk, "core-hip_dev_generic", header)
    dist = build(small_sdk, tmp_path, options=PlanOptions(devel_compression="zst"))
    printed = run([sys.executable, "-m", "rocwheel", "index", str(dist)]).stdout
    line = next(line for line in printed.splitlines() if line.startswith("install with: pip install "))
    words = line.removeprefix("install with: pip ").replace("PROJECT", "rocm[devel]").split()
    environment = make_environment(dist, tool)
    environment.installer(*words)
    environment.run("rocm-sdk", "init")
    assert (environment.root / "include/hip.h").read_bytes() == b"#pragma once\n"
