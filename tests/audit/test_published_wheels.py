"""Published wheels with known faults: found for the right reasons, and repaired so that they load; good ones: none."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from rocwheel.audit.audit import audit
from rocwheel.audit.finding import Finding, Severity
from rocwheel.audit.settings import AuditSettings
from rocwheel.environment.read_tree import read_environments
from tests.support.command_line import rocwheel
from tests.support.libraries import needs_compiler
from tests.support.published_wheels import good_wheel, jax_wheel
from tests.support.stub_sdk import make_stub_sdk

pytestmark = [pytest.mark.corpus, needs_compiler]

PJRT_7, PJRT_60 = "jax_rocm7_pjrt-0.12.0", "jax_rocm60_pjrt-0.5.0"
PLUGIN_7, PLUGIN_60 = "jax_rocm7_plugin-0.10.2", "jax_rocm60_plugin-0.5.0"


KEPT = {
    PLUGIN_7: {"run-path-absolute": 2, "run-path-wrong-depth": 2},
    PLUGIN_60: {"run-path-absolute": 2},
    PJRT_7: {},
    PJRT_60: {"rpath-into-others": 1},
}
"""Findings on entries that stay, as a file opens libraries by name, or what inherits its RPATH is not at hand."""


def findings(path: Path, *beside: Path) -> list[Finding]:
    return list(audit(read_environments([path], beside), AuditSettings()).findings)


def counted(found: list[Finding]) -> dict[str, int]:
    return dict(Counter(finding.rule for finding in found if finding.severity is not Severity.NOTE))


def test_three_of_the_bundled_system_libraries_in_the_sdk_do_not_resolve() -> None:
    found = findings(jax_wheel(PJRT_7))
    lost = [finding.found.partition(",")[0] for finding in found if finding.rule == "unreachable-library"]
    assert lost == [
        "needs librocm_sysdeps_drm.so.2",
        "needs librocm_sysdeps_drm_amdgpu.so.1",
        "needs librocm_sysdeps_numa.so.1",
    ]
    assert counted(found) == {
        "elf-in-purelib": 1,
        "license-missing": 1,
        "run-path-absolute": 1,
        "run-path-wrong-depth": 1,
        "undeclared-requirement": 2,
        "unreachable-library": 3,
    }


def test_run_paths_into_build_folders_and_the_missing_license_are_found() -> None:
    found = findings(jax_wheel(PLUGIN_7))
    assert counted(found) == {
        "license-missing": 1,
        "run-path-absolute": 8,
        "run-path-wrong-depth": 8,
        "undeclared-requirement": 2,
    }
    in_build = [finding.found for finding in found if finding.rule == "run-path-build-folder"]
    assert ["_solib_x86_64" in text for text in in_build] == [True] * 8


def test_a_relative_run_path_entry_is_resolved_against_the_working_directory() -> None:
    found = findings(jax_wheel(PLUGIN_60))
    (relative,) = [finding for finding in found if finding.rule == "run-path-relative"]
    assert relative.file.endswith("!jax_rocm60_plugin/_rnn.so")
    assert relative.found.startswith("searches 'local_config_rocm/rocm/rocm_dis/lib' relative to the working directory")


def test_files_that_use_hip_without_linking_to_the_library_are_reported() -> None:
    found = {Path(f.file).name: f.found for f in findings(jax_wheel(PLUGIN_60)) if f.rule == "undefined-symbol"}
    assert found.keys() == UNDERLINKED[PLUGIN_60]
    assert found["_hybrid.so"] == (
        "has 3 undefined symbols that no loaded library defines: "
        "hipGetErrorString, hipMemcpyAsync, hipStreamSynchronize"
    )


def test_an_old_rpath_and_machine_code_in_a_pure_wheel_are_reported(tmp_path: Path) -> None:
    path = jax_wheel(PJRT_60)
    found = counted(findings(path, *make_stub_sdk(path, tmp_path)))
    assert found == {
        "elf-in-purelib": 1,
        "license-missing": 1,
        "rpath-into-others": 1,
        "unreachable-library": 10,
    }


@pytest.mark.parametrize("stem", [PLUGIN_7, PLUGIN_60, PJRT_7, PJRT_60])
def test_repaired_wheels_load_in_an_empty_environment(tmp_path: Path, stem: str) -> None:
    published = jax_wheel(stem)
    sdk = make_stub_sdk(published, tmp_path / "sdk")
    before = install(tmp_path / "before", published, *sdk)
    # Of the 81 entries of one of them, two are right.
    assert any("cannot open shared object file" in load(path) for path in libraries(before)) is (stem != PLUGIN_7)
    beside = [argument for path in sdk for argument in ("--with", str(path))]
    output = ["--output", str(tmp_path / "out"), "--quiet"]
    assert rocwheel("repair", published, *output, *beside).returncode == (1 if stem in UNDERLINKED else 0)
    (repaired,) = (tmp_path / "out").glob("*.whl")
    # The stand-ins may define a symbol twice, where it can't be told which library has it.
    found = findings(repaired, *sdk)
    underlinked = UNDERLINKED.get(stem, set())
    expected = {"license-missing": 1, "symbol-collision": 0, "undefined-symbol": len(underlinked), **KEPT[stem]}
    assert counted(found) | {"symbol-collision": 0, "undefined-symbol": len(underlinked)} == expected
    assert {Path(f.file).name for f in found if f.rule == "undefined-symbol"} == underlinked
    after = install(tmp_path / "after", repaired, *sdk)
    failed = {path.name: error for path in libraries(after) if (error := load(path))}
    assert set(failed) == underlinked
    assert all(": undefined symbol: " in error for error in failed.values())


# These use HIP or MIOpen without naming them as NEEDED, and so load only where something else has made those global.
UNDERLINKED = {PLUGIN_60: {"_hybrid.so", "_prng.so", "_rnn.so", "_triton.so"}}


def install(target: Path, *wheels: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--ignore-requires-python"]
    platforms = ["--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_27_x86_64"]
    subprocess.run([*pip, *platforms, "--platform", "manylinux_2_5_x86_64", "--target", target, *wheels], check=True)
    return target


def libraries(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.so") if "_rocm_sdk" not in str(path))


def load(path: Path) -> str:
    """Return what the loader says, nothing when all is well, with nothing in the environment."""
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, path], env={}, cwd="/", capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stderr.splitlines()[-1]


GOOD: dict[str, dict[str, int]] = {
    "numpy-2.4.6": {},
    "lxml-6.1.3": {},
    "pillow-13.0.0": {},
    # One library of each names /usr/local/lib64, or a folder of the build, and has RUNPATH among RPATHs; scipy also
    # brings two copies of libgfortran and libquadmath into one process.
    "shapely-2.2.0": {"run-path-absolute": 1, "run-path-mixed": 1},
    "scipy-1.17.1": {"inherited-run-path": 1, "run-path-mixed": 1, "symbol-collision": 2},
}


@pytest.mark.parametrize("stem", GOOD)
def test_good_linux_wheels_cause_no_false_alarms(stem: str) -> None:
    assert counted(findings(good_wheel(stem, "linux"))) == GOOD[stem]


WINDOWS: dict[str, dict[str, int]] = {
    "numpy-2.5.5": {},
    "lxml-6.1.3": {},
    "pillow-13.0.0": {},
    "scipy-1.18.1": {},
    "onnxruntime-1.32.0": {},
    # A service that is no part of Python, whose installer copies the DLL.
    "pywin32-312": {"dll-unreachable": 1},
}


@pytest.mark.parametrize("stem", WINDOWS)
def test_good_windows_wheels_cause_no_false_alarms(stem: str) -> None:
    assert counted(findings(good_wheel(stem, "windows"))) == WINDOWS[stem]


def test_the_signatures_of_published_dlls_match_their_bytes() -> None:
    found = findings(good_wheel("onnxruntime-1.32.0", "windows"))
    assert [finding.rule for finding in found].count("image-signed") == 3
