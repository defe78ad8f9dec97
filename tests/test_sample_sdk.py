"""The sample SDK: that it is what it claims to be, and that its sources still make it."""

from __future__ import annotations

import json
import lzma
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

from rocwheel.artifacts.artifact import ArtifactName
from tests.support.places import ROOT
from tests.support.sdists import unpack_tar

pytestmark = pytest.mark.slow

SAMPLE = ROOT / "src/rocwheel/sample"
ARCHIVES = sorted(SAMPLE.glob("*.tar.xz"))
TARGETS = ["gfx1030", "gfx906", "gfx90a", "gfx90a:xnack+"]

needs_x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the sample SDK is for x86-64")


def read_stages(archive: tarfile.TarFile) -> list[str]:
    member = archive.extractfile("artifact_manifest.txt")
    assert member is not None
    return member.read().decode().split("\n")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Overlay every stage of every artifact into one install prefix, as a user of the SDK has it."""
    exploded, prefix = tmp_path_factory.mktemp("artifacts"), tmp_path_factory.mktemp("rocm sdk")
    for path in ARCHIVES:
        folder = exploded / path.name
        with tarfile.open(path) as archive:
            unpack_tar(archive, folder, "tar")
            for stage in read_stages(archive):
                shutil.copytree(folder / stage, prefix, symlinks=True, dirs_exist_ok=True)
    return prefix


def run(*command: str | Path, cwd: Path | None = None) -> str:
    finished = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, cwd=cwd)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_the_sample_is_smaller_than_a_megabyte() -> None:
    assert sum(path.stat().st_size for path in ARCHIVES) < 1_000_000


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.name)
def test_an_archive_has_the_name_and_manifest_of_an_artifact(path: Path) -> None:
    ArtifactName.parse(path.name.removesuffix(".tar.xz"))
    with tarfile.open(path) as archive:
        first, *members = archive.getmembers()
        stages = read_stages(archive)
    assert first.name == "artifact_manifest.txt"
    assert all(any(member.name.startswith(f"{stage}/") for stage in stages) for member in members)


def test_artifacts_with_the_same_prefix_share_no_file() -> None:
    seen: dict[str, str] = {}
    for path in ARCHIVES:
        with tarfile.open(path) as archive:
            stages = read_stages(archive)
            for member in archive.getmembers():
                place = next((member.name[len(stage) + 1 :] for stage in stages if member.name.startswith(stage)), "")
                # Features of one GPU share their index; it must then be the same.
                if member.isdir() or not place or place.endswith("lazy_gfx90a.dat"):
                    continue
                assert seen.setdefault(place, path.name) == path.name, place


def test_target_specific_artifacts_exist_for_each_target_and_feature() -> None:
    names = [ArtifactName.parse(path.name.removesuffix(".tar.xz")) for path in ARCHIVES]
    assert sorted(name.target for name in names if name.name == "blas" and name.target != "generic") == TARGETS


def test_the_manifest_says_that_device_code_is_split(prefix: Path) -> None:
    manifest = json.loads((prefix / "share/therock/therock_manifest.json").read_text())
    assert manifest["flags"] == {"KPACK_SPLIT_ARTIFACTS": True}
    assert manifest["rocm_package_version"] == "7.0.0"
    assert json.loads((prefix / "share/therock/dist_info.json").read_text()) == {
        "dist_amdgpu_targets": "gfx906;gfx90a;gfx1030"
    }


def test_no_link_in_the_complete_prefix_dangles(prefix: Path) -> None:
    assert [path for path in prefix.rglob("*") if path.is_symlink() and not path.exists()] == []


def test_a_library_is_reached_through_a_chain_of_links(prefix: Path) -> None:
    library = prefix / "lib/libamdhip64.so"
    assert str(library.readlink()) == "libamdhip64.so.7"
    assert str((prefix / "lib/libamdhip64.so.7").readlink()) == "libamdhip64.so.7.0.0"
    assert not (prefix / "lib/libamdhip64.so.7.0.0").is_symlink()


@needs_x86_64
def test_every_library_loads_with_all_symbols_bound(prefix: Path) -> None:
    libraries = [path for path in prefix.glob("lib/**/*.so*") if path.suffix != ".hsaco" and not path.is_symlink()]
    assert len(libraries) == 33
    program = "import ctypes, os, sys\nfor path in sys.argv[1:]: ctypes.CDLL(path, mode=os.RTLD_NOW)"
    for library in libraries:
        run(sys.executable, "-c", program, library)


@needs_x86_64
def test_fat_binaries_register_with_the_runtime(prefix: Path) -> None:
    program = """if True:
        import ctypes, sys
        hip, sparse, rand = (ctypes.CDLL(f"{sys.argv[1]}/lib/lib{name}") for name in
                             ("amdhip64.so.7", "rocsparse.so.1", "rocrand.so.1"))
        binaries, kernels = ctypes.c_int(), ctypes.c_int()
        hip.hipSampleGetRegistered(ctypes.byref(binaries), ctypes.byref(kernels))
        print(binaries.value, kernels.value)"""
    assert run(sys.executable, "-c", program, prefix) == "2 2\n"


@needs_x86_64
def test_the_stub_functions_compute(prefix: Path) -> None:
    program = """if True:
        import ctypes, sys
        blas = ctypes.CDLL(f"{sys.argv[1]}/lib/libhipblas.so.3")
        x, y = (ctypes.c_float * 2)(1, 2), (ctypes.c_float * 2)(10, 20)
        assert blas.hipblasSaxpy(2, ctypes.c_float(3), x, y) == 0
        print(list(y))"""
    assert run(sys.executable, "-c", program, prefix) == "[13.0, 26.0]\n"


@needs_x86_64
@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("bin/rocminfo", "Runtime Version: 1.18 (rocwheel sample SDK)"),
        ("bin/rocm-smi", "Devices: 0"),
        ("bin/rocm_agent_enumerator", "gfx000"),
        ("bin/hipconfig", "HIP version: 7.0.0"),
        ("bin/rocprof-compute", "rocprof-compute 3.0.0 (rocwheel sample SDK)"),
    ],
)
def test_a_program_works_without_a_gpu(prefix: Path, program: str, line: str) -> None:
    assert line in run(prefix / program).splitlines()


@needs_x86_64
@pytest.mark.parametrize("program", ["bin/amdclang++", "lib/llvm/bin/clang++", "llvm/bin/clang-22"])
def test_the_compiler_prints_its_name_and_folder(prefix: Path, program: str) -> None:
    lines = run(prefix / program, "-c").splitlines()
    assert lines[1:] == [f"argv[0]: {prefix / program}", f"InstalledDir: {prefix}/lib/llvm/bin", "argv[1]: -c"]


@needs_x86_64
def test_hipcc_runs_the_compiler_from_its_own_sdk(prefix: Path) -> None:
    assert f"argv[0]: {prefix}/bin/../lib/llvm/bin/clang++" in run(prefix / "bin/hipcc").splitlines()


def test_no_file_needs_glibc_newer_than_2_17(prefix: Path) -> None:
    versions = {version for path in prefix.rglob("*") if is_elf(path) for version in read_glibc_versions(path)}
    assert versions == {"GLIBC_2.2.5", "GLIBC_2.17"}


def is_elf(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF"


def read_glibc_versions(path: Path) -> set[str]:
    with path.open("rb") as file:
        sections = [section for section in ELFFile(file).iter_sections() if isinstance(section, GNUVerNeedSection)]
        needs = [need for section in sections for need in section.iter_versions()]
        return {aux.name for need, auxiliaries in needs if need.name == "libc.so.6" for aux in auxiliaries}


def test_the_fat_binary_contains_code_for_the_gpus_with_packages(prefix: Path, tmp_path: Path) -> None:
    bundler, objcopy = shutil.which("clang-offload-bundler-16"), shutil.which("llvm-objcopy-16")
    if not bundler or not objcopy:
        pytest.skip("needs Debian's clang-16 and llvm-16")
    bundle = tmp_path / "bundle"
    library = prefix / "lib/librocsparse.so.1"
    run(objcopy, f"--dump-section=.hip_fatbin={bundle}", library, tmp_path / "unused")
    assert sorted(run(bundler, "-list", "-type=o", f"-input={bundle}").split()) == [
        "hipv4-amdgcn-amd-amdhsa--gfx1030",
        "hipv4-amdgcn-amd-amdhsa--gfx906",
        "hipv4-amdgcn-amd-amdhsa--gfx90a",
        "host-x86_64-unknown-linux",
    ]


@needs_x86_64
def test_cmake_finds_the_packages_and_builds_against_them(prefix: Path, tmp_path: Path) -> None:
    if not shutil.which("cmake") or not shutil.which("cc"):
        pytest.skip("needs cmake and a C compiler")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(sample C)\n"
        "find_package(hip 7.0 CONFIG REQUIRED)\nfind_package(hipblas CONFIG REQUIRED)\n"
        "add_executable(sample sample.c)\ntarget_link_libraries(sample hip::host roc::hipblas)\n"
    )
    (tmp_path / "sample.c").write_text(
        "#include <hip/hip_runtime.h>\n#include <hipblas/hipblas.h>\n#include <stdio.h>\n"
        "int main(void) { int n; puts(hipblasStatusToString(hipGetDeviceCount(&n))); return 0; }\n"
    )
    run("cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=tmp_path)
    run("cmake", "--build", "build", cwd=tmp_path)
    assert run(tmp_path / "build/sample") == "no ROCm-capable device is detected\n"


@pytest.mark.deep
def test_the_sources_reproduce_the_shipped_archives(tmp_path: Path) -> None:
    compiler = Path("/usr/lib/llvm-16/bin/clang")
    if not compiler.exists() or not shutil.which("ld.bfd") or "16.0.6" not in run(compiler, "--version"):
        pytest.skip("needs Debian 12's clang-16, lld-16, llvm-16 and binutils")
    run(sys.executable, "-m", "scripts.build_sample_sdk", tmp_path, cwd=ROOT)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [path.name for path in ARCHIVES]
    for path in ARCHIVES:
        # The archives are compared unpacked: another release of liblzma may pack the same bytes in another way.
        assert lzma.decompress((tmp_path / path.name).read_bytes()) == lzma.decompress(path.read_bytes()), path.name
