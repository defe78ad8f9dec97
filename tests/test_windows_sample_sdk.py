"""The sample SDK for Windows: that it is what it claims to be, that its sources make it, and that Wine runs it."""

from __future__ import annotations

import lzma
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.artifact import ArtifactName
from rocwheel.binary.pe.facts import FileVersion, Pe, read_pe
from tests.support.places import ROOT
from tests.support.sdists import unpack_tar
from tests.support.wine import windows_path

if TYPE_CHECKING:
    from tests.support.tools import RunTool
    from tests.support.wine import Compiler, Wine

pytestmark = pytest.mark.slow

ARCHIVES = sorted((ROOT / "src/rocwheel/sample/windows").glob("*.tar.xz"))


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Overlay every stage of every artifact into one install prefix, as a user of the SDK has it."""
    exploded, prefix = tmp_path_factory.mktemp("artifacts"), tmp_path_factory.mktemp("rocm sdk")
    for path in ARCHIVES:
        folder = exploded / path.name
        with tarfile.open(path) as archive:
            unpack_tar(archive, folder)
        for stage in (folder / "artifact_manifest.txt").read_text().split("\n"):
            shutil.copytree(folder / stage, prefix, dirs_exist_ok=True)
    return prefix


def facts_of(path: Path) -> Pe:
    return read_pe(path.read_bytes(), name=path.name)


def test_the_sample_is_smaller_than_a_hundred_kilobytes() -> None:
    assert 0 < sum(path.stat().st_size for path in ARCHIVES) < 100_000


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.name)
def test_an_archive_has_the_name_and_manifest_of_an_artifact_and_no_links(path: Path) -> None:
    ArtifactName.parse(path.name.removesuffix(".tar.xz"))
    with tarfile.open(path) as archive:
        first, *members = archive.getmembers()
    assert first.name == "artifact_manifest.txt"
    assert all(member.isfile() or member.isdir() for member in members)


def test_dlls_are_in_bin_and_named_like_in_windows_builds(prefix: Path) -> None:
    names = sorted(path.relative_to(prefix).as_posix() for path in prefix.rglob("*.dll"))
    assert names == [
        "bin/MIOpen.dll",
        "bin/OpenCL.dll",
        "bin/amd_comgr0700.dll",
        "bin/amdhip64_7.dll",
        "bin/amdocl64.dll",
        "bin/hipblas.dll",
        "bin/hipdnn_backend.dll",
        "bin/hipdnn_plugins/engines/miopen_plugin.dll",
        "bin/hipfft.dll",
        "bin/hipfftw.dll",
        "bin/hiprand.dll",
        "bin/hiprtc-builtins07000.dll",
        "bin/hiprtc07000.dll",
        "bin/hipsolver.dll",
        "bin/hipsparse.dll",
        "bin/libhipblaslt.dll",
        "bin/origami.dll",
        "bin/rocblas.dll",
        "bin/rocfft.dll",
        "bin/rocm-openblas.dll",
        "bin/rocm_kpack.dll",
        "bin/rocrand.dll",
        "bin/rocsolver.dll",
        "bin/rocsparse.dll",
        "bin/test_plugins/custom/helpers/test_helper.dll",
        "bin/test_plugins/custom/test_good_plugin.dll",
    ]


@pytest.mark.parametrize(
    ("name", "loaded", "delayed"),
    [
        (
            "amdhip64_7.dll",
            ["amd_comgr0700.dll", "rocm_kpack.dll", "VCRUNTIME140.dll", "api-ms-win-crt-runtime-l1-1-0.dll"],
            [],
        ),
        ("hipblas.dll", ["rocblas.dll", "amdhip64_7.dll"], []),
        ("rocblas.dll", ["rocm-openblas.dll", "amdhip64_7.dll"], []),
        ("libhipblaslt.dll", ["amdhip64_7.dll", "origami.dll"], []),
        ("MIOpen.dll", ["rocblas.dll", "amdhip64_7.dll", "KERNEL32.dll"], ["amd_comgr0700.dll"]),
        ("hipdnn_plugins/engines/miopen_plugin.dll", ["MIOpen.dll"], []),
        ("test_plugins/custom/test_good_plugin.dll", ["test_helper.dll"], []),
    ],
)
def test_a_dll_has_the_same_imports_as_in_windows_builds(
    prefix: Path, name: str, loaded: list[str], delayed: list[str]
) -> None:
    facts = facts_of(prefix / "bin" / name)
    assert sorted(dll.name for dll in facts.imports) == sorted(loaded)
    assert [dll.name for dll in facts.delay_imports] == delayed


def test_the_name_in_the_export_table_matches_the_file(prefix: Path) -> None:
    for path in prefix.rglob("*.dll"):
        exports = facts_of(path).exports
        assert exports is not None
        assert (exports.dll, bool(exports.names)) == (path.name, True)


def test_the_runtime_has_a_version(prefix: Path) -> None:
    assert facts_of(prefix / "bin/amdhip64_7.dll").version == FileVersion((7, 0, 51831, 0), (7, 0, 51831, 0))


def test_llvm_programs_are_copies_of_each_other(prefix: Path) -> None:
    folder = prefix / "lib/llvm/bin"
    assert {path.name for path in folder.iterdir() if path.read_bytes() == (folder / "clang.exe").read_bytes()} == {
        "clang++.exe",
        "clang-cl.exe",
        "clang-cpp.exe",
        "clang.exe",
    }


def test_import_libraries_are_in_lib_and_one_has_the_mingw_suffix(prefix: Path) -> None:
    names = {path.name for path in (prefix / "lib").iterdir() if path.is_file()}
    assert {"amdhip64.lib", "amd_comgr0700.lib", "hiprtc.lib", "rocblas.lib", "libhipblaslt.dll.a"} <= names


@pytest.mark.parametrize("name", ["rocsparse.dll", "rocrand.dll"])
def test_a_dll_with_device_code_has_the_windows_section_names(prefix: Path, name: str, run_tool: RunTool) -> None:
    path = prefix / "bin" / name
    assert {".hipFatB", ".hip_fat"} <= {section.name for section in facts_of(path).sections}
    section = next(one for one in facts_of(path).sections if one.name == ".hip_fat")
    bundle = prefix.with_name(f"{name}.bundle")
    bundle.write_bytes(path.read_bytes()[section.offset : section.offset + section.memory_size])
    listed = run_tool(["clang-offload-bundler-16", "-list", "-type=o", f"-input={bundle}"])
    assert sorted(listed.split()) == [
        "hipv4-amdgcn-amd-amdhsa--gfx1030",
        "hipv4-amdgcn-amd-amdhsa--gfx1100",
        "host-x86_64-unknown-linux",
    ]


@pytest.mark.deep
def test_the_sources_reproduce_the_shipped_archives(compile_for_windows: Compiler, tmp_path: Path) -> None:
    compiler = Path("/usr/lib/llvm-16/bin/clang")
    release = subprocess.run([compile_for_windows.path, "-dumpfullversion"], capture_output=True, check=True).stdout
    if not compiler.exists() or not release.startswith(b"12"):
        pytest.skip("needs Debian 12's clang-16, lld-16, llvm-16 and gcc-mingw-w64-x86-64-win32")
    subprocess.run([sys.executable, "-m", "scripts.build_windows_sample_sdk", tmp_path], cwd=ROOT, check=True)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [path.name for path in ARCHIVES]
    for path in ARCHIVES:
        # The archives are compared unpacked: another release of liblzma may pack the same bytes in another way.
        assert lzma.decompress((tmp_path / path.name).read_bytes()) == lzma.decompress(path.read_bytes()), path.name


def test_hip_info_runs_and_finds_no_device(wine: Wine, prefix: Path) -> None:
    done = wine.run(prefix / "bin/hipInfo.exe")
    assert done.stdout.decode().splitlines() == [
        "HIP runtime: 70000022 (rocwheel sample SDK)",
        "devices: 0 (no ROCm-capable device is detected)",
    ]


def test_the_stub_functions_compute(wine: Wine, prefix: Path) -> None:
    assert wine.run(prefix / "bin/rocblas-test.exe").returncode == 0


@pytest.mark.parametrize(
    ("program", "mode"),
    [
        ("bin/hipcc.exe", "g++"),
        ("lib/llvm/bin/clang.exe", "gcc"),
        ("lib/llvm/bin/clang++.exe", "g++"),
        ("lib/llvm/bin/clang-cl.exe", "cl"),
        ("lib/llvm/bin/amdclang-cpp.exe", "cpp"),
    ],
)
def test_a_compiler_derives_its_mode_from_its_file_name(wine: Wine, prefix: Path, program: str, mode: str) -> None:
    lines = wine.run(prefix / program, "-c").stdout.decode().splitlines()
    assert lines[2:] == [
        f"InstalledDir: {windows_path(prefix / 'lib/llvm/bin')}",
        f"mode: {mode}",
        "argv[1]: -c",
    ]


REGISTERED = """
#include <stdio.h>
#include <windows.h>
int main(void) {
    HMODULE hip = LoadLibraryA("amdhip64_7.dll");
    int binaries, kernels;
    if (!LoadLibraryA("rocsparse.dll") || !LoadLibraryA("rocrand.dll")) return 1;
    void (*registered)(int *, int *) = (void (*)(int *, int *))(void *)GetProcAddress(hip, "hipSampleGetRegistered");
    registered(&binaries, &kernels);
    printf("%d %d", binaries, kernels);
    return 0;
}
"""


def test_fat_binaries_register_with_the_runtime(
    wine: Wine, compile_for_windows: Compiler, prefix: Path, tmp_path: Path
) -> None:
    source = tmp_path / "registered.c"
    source.write_text(REGISTERED)
    program = compile_for_windows.program(source, prefix / "bin/registered.exe")
    assert (wine.run(program).stdout, wine.run(program).returncode) == (b"2 2", 0)
