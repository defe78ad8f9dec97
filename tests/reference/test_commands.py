"""Programs of the packages: each is there, runs from its own place and finds its neighbors."""

from __future__ import annotations

import subprocess
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.reference.conftest import build, need, shared, write_artifact
from tests.sdk.installed import FROM_INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from tests.reference.conftest import Compile, MakeEnvironment
    from tests.sdk.installed import Installed

pytestmark = pytest.mark.slow


def test_console_scripts_exist_only_for_the_tools_in_the_package(dist: Path) -> None:
    names = []
    for package in ("rocm_sdk_core", "rocm_profiler"):
        with zipfile.ZipFile(next(dist.glob(f"{package}-*.whl"))) as wheel:
            scripts = wheel.read(f"{package}-7.0.0.dist-info/entry_points.txt").decode().splitlines()[1:]
            names += [line.partition(" = ")[0] for line in scripts]
            assert {f"_{package}/bin/{line.partition(' = ')[0]}" for line in scripts} <= set(wheel.namelist())
    assert {"hipcc", "rocminfo", "rocprof-sys-run"} <= set(names)
    assert {"rocgdb", "rocpd", "amdflang"} & set(names) == set()


@pytest.mark.parametrize("path", ["bin/rocm-smi", "_rocm_sdk_core/bin/rocm-smi"], ids=["console script", "stub"])
def test_a_script_run_through_a_link_finds_its_neighbors(core_only: Installed, path: str) -> None:
    program = (core_only.path if path.startswith("bin") else core_only.site) / path
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert "Devices: 0\n" in done.stdout


@pytest.mark.parametrize("option", ["--root", "--bin"])
def test_paths_are_printed_without_the_development_package(core_only: Installed, option: str) -> None:
    suffix = "/bin" if option == "--bin" else ""
    assert core_only.run("rocm-sdk", "path", option).stdout == f"{core_only.site}/_rocm_sdk_core{suffix}\n"


def test_the_error_about_missing_cmake_files_names_the_package_to_install(core_only: Installed) -> None:
    done = core_only.run("rocm-sdk", "path", "--cmake", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "rocm-sdk: error: The ROCm development files are not installed. "
        f'Install with: pip install "rocm[devel]==7.0.0" {FROM_INDEX}\n'
    )


def test_programs_use_the_development_tree_as_their_prefix(sdk: Installed) -> None:
    # Given programs that look for files around their own place, found by argv[0] or /proc/self/exe
    assert sdk.run("hipconfig", "--rocmpath").stdout == f"{sdk.root}\n"
    installed = f"InstalledDir: {sdk.root}/lib/llvm/bin\n"
    for compiler in ("amdclang", "amdclang++", "hipcc"):
        assert installed in sdk.run(compiler, "--version").stdout


def test_programs_use_the_core_as_their_prefix_without_development_files(core_only: Installed) -> None:
    core = core_only.site / "_rocm_sdk_core"
    assert core_only.run("hipconfig", "--rocmpath").stdout == f"{core}\n"
    assert f"InstalledDir: {core}/lib/llvm/bin\n" in core_only.run("amdclang++", "--version").stdout


def test_links_in_the_prefix_root_point_to_the_compiler(sdk: Installed) -> None:
    assert {name: str((sdk.root / name).readlink()) for name in ("llvm", "amdgcn")} == {
        "llvm": "lib/llvm",
        "amdgcn": "lib/llvm/amdgcn",
    }
    assert (sdk.root / "llvm/bin/clang").exists()
    assert (sdk.root / "amdgcn/bitcode/ocml.bc").exists()


def test_tools_that_need_no_development_files_do_not_expand_them(dist: Path, make_environment: MakeEnvironment) -> None:
    environment = make_environment(dist)
    environment.install("rocm[devel]")
    for tool in ("rocminfo", "rocm_agent_enumerator", "rocm-smi"):
        environment.run(tool)
    assert not environment.root.exists()


def test_the_profiler_finds_its_libraries_in_its_own_and_the_core_package(sdk: Installed) -> None:
    assert sdk.run("rocprof-sys-avail", check=False).stderr == ""
    assert "rocprof-compute 3.0.0" in sdk.run("rocprof-compute").stdout


def test_a_statically_linked_program_is_shipped_unchanged_and_runs(
    small_sdk: Path, tmp_path: Path, compile_c: Compile, make_environment: MakeEnvironment
) -> None:
    program = compile_c("tool", '#include <stdio.h>\nint main(void) { return puts("static") < 0; }', "-static")
    write_artifact(small_sdk, "core-hip_run_generic", {"bin/tool": program})
    environment = make_environment(build(small_sdk, tmp_path))
    environment.install("rocm")
    installed = environment.site / "_rocm_sdk_core/bin/tool"
    assert installed.read_bytes() == program.read_bytes()
    assert subprocess.run([installed], capture_output=True, check=True).stdout == b"static\n"


def test_a_program_built_as_pie_gets_stubs_for_its_links(
    small_sdk: Path, tmp_path: Path, compile_c: Compile, make_environment: MakeEnvironment
) -> None:
    # Given a program that differs from a shared library by a flag and its interpreter alone
    program = compile_c("tool", '#include <stdio.h>\nint main(void) { return puts("pie") < 0; }', "-pie", "-fPIE")
    write_artifact(small_sdk, "core-hip_run_generic", {"libexec/tool": program, "bin/tool": "-> ../libexec/tool"})
    environment = make_environment(build(small_sdk, tmp_path))
    environment.install("rocm")
    stub = environment.site / "_rocm_sdk_core/bin/tool"
    assert stub.stat().st_size < 2000
    assert subprocess.run([stub], capture_output=True, check=True).stdout == b"pie\n"


def test_files_linked_by_lld_keep_valid_program_headers(
    small_sdk: Path, tmp_path: Path, compile_c: Compile, make_environment: MakeEnvironment
) -> None:
    # Given a program and a library of lld, too tight for the run paths that they need
    need("ld.lld", "lld")
    need("readelf", "binutils")
    lld = ["-fuse-ld=lld", "-Wl,-z,max-page-size=4096"]
    hip = small_sdk / "core-hip_lib_generic/stage/lib/libamdhip64.so.7"
    text = "int hip(void); int plugin(void) { return hip(); }"
    plugin = compile_c("libplugin.so.1", text, *lld, *shared("libplugin.so.1"), str(hip))
    main = "int hip(void); int main(void) { return hip() != 7; }"
    program = compile_c("tool", main, *lld, "-pie", "-fPIE", str(hip))
    write_artifact(small_sdk, "core-hip_run_generic", {"bin/tool": program})
    write_artifact(small_sdk, "rand_lib_generic", {"lib/libplugin.so.1": plugin})
    environment = make_environment(build(small_sdk, tmp_path))
    environment.install("rocm[libraries]")
    files = [environment.site / path for path in ("_rocm_sdk_core/bin/tool", "_rocm_sdk_libraries/lib/libplugin.so.1")]
    headers = [subprocess.run(["readelf", "-lW", str(f)], capture_output=True, text=True, check=True) for f in files]
    assert [done.stderr for done in headers] == ["", ""]
    assert "PHDR" in headers[0].stdout
    assert subprocess.run([files[0]], check=False).returncode == 0
    environment.evaluate(f"import ctypes; ctypes.CDLL({str(files[1])!r})")
