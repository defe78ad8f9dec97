"""Finished wheels that are not written, since the audit finds faults in them."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.frameworks.wheel.verify import FaultyWheelError
from tests.frameworks.wheels import changed, make_outputs, run_job

if TYPE_CHECKING:
    from tests.frameworks.conftest import Compile

SONAME = ("-Wl,-soname,libother.so.1",)
CORE = "$ORIGIN/../../_rocm_sdk_core/lib"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the sample SDK is for x86-64"),
]


def test_a_library_that_nothing_brings_is_reported_and_nothing_is_written(
    tmp_path: Path, compile_library: Compile, sample_dist: Path
) -> None:
    other = compile_library(tmp_path / "libother.so.1", "int hipGetDeviceCount(int *n) { return *n; }", *SONAME)
    outputs = make_outputs(tmp_path / "out", compile_library, other)
    with pytest.raises(FaultyWheelError) as caught:
        run_job("pjrt", outputs, tmp_path / "dist", sample_dist)
    assert str(caught.value) == (
        "jax_rocm7_pjrt-0.12.0-py3-none-manylinux_2_5_x86_64.whl is not written: 1 problem\n"
        "  jax_plugins/xla_rocm7/xla_rocm_plugin.so: needs libother.so.1, but no package, SDK library or allowed "
        "system library provides it (unresolved-library). Ship the library, require the package that provides it, or "
        "build against the SDK version that is required."
    )
    assert caught.value.exit_status == 1
    assert list((tmp_path / "dist").iterdir()) == []


def test_a_run_path_that_misses_the_sdk_is_reported(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    outputs = make_outputs(tmp_path / "out", compile_library, hip, "-Wl,-rpath,$ORIGIN")
    with pytest.raises(FaultyWheelError, match=r"needs libamdhip64\.so\.7, which is in _rocm_sdk_core/lib, but its"):
        run_job("pjrt", outputs, tmp_path / "dist", sample_dist)


def test_without_the_sdk_its_known_layout_counts(outputs: Path, tmp_path: Path) -> None:
    assert Path(run_job("pjrt", outputs, tmp_path).path).is_file()


def test_a_folder_of_the_sdk_that_this_one_lacks_is_not_a_fault(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    core = "$ORIGIN/../../_rocm_sdk_core/lib"
    outputs = make_outputs(tmp_path / "out", compile_library, hip, f"-Wl,-rpath,{core}:{core}/host-math/lib")
    assert Path(run_job("pjrt", outputs, tmp_path, sample_dist).path).is_file()


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ("/../rocm/lib", "run-path-eaten-origin"),
        ("$ORIGIN/../../_solib_k8/_Urocm", "run-path-build-folder"),
        ("/home/me/x.runfiles/rocm", "run-path-build-folder"),
        ("rocm/lib", "run-path-relative"),
        ("/usr/local/lib", "run-path-absolute"),
        ("$ORIGIN/rocm/lib", "run-path-dead"),
        ("$ORIGIN/../../_rocm_sdk_core/lib", "run-path-repeated"),
    ],
)
def test_a_wrong_entry_is_refused_though_the_library_is_found(
    entry: str, rule: str, tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    entries = f"-Wl,-rpath,$ORIGIN/../../_rocm_sdk_core/lib:{entry}"
    outputs = make_outputs(tmp_path / "out", compile_library, hip, entries)
    with pytest.raises(FaultyWheelError) as caught:
        run_job("pjrt", outputs, tmp_path, sample_dist)
    (problem,) = caught.value.problems
    assert str(problem).startswith("jax_plugins/xla_rocm7/xla_rocm_plugin.so: ")
    assert f"({rule})" in str(problem)


def test_an_absolute_entry_that_the_description_allows_is_right(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    options = ("-Wl,-rpath,$ORIGIN/../../_rocm_sdk_core/lib:/opt/rocm/lib",)
    outputs = make_outputs(tmp_path / "out", compile_library, hip, *options)
    assert run_job("pjrt", outputs, tmp_path, sample_dist).repaired == ()


def test_each_absolute_entry_has_to_be_allowed(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    entries = "-Wl,-rpath,$ORIGIN/../../_rocm_sdk_core/lib:/opt/rocm/lib:/site/rocm/lib:/usr/local/lib"
    outputs = make_outputs(tmp_path / "out", compile_library, hip, entries)
    with pytest.raises(FaultyWheelError) as caught:
        run_job("pjrt", outputs, tmp_path, sample_dist, system_run_paths=("/site/rocm/lib",))
    (problem,) = caught.value.problems
    assert "searches '/usr/local/lib', absolute folders of the host" in str(problem)
    intended = ("/site/rocm/lib", "/usr/local/lib")
    assert Path(run_job("pjrt", outputs, tmp_path, sample_dist, system_run_paths=intended).path).is_file()


def test_an_entry_that_is_wrong_everywhere_cannot_be_allowed(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    outputs = make_outputs(tmp_path / "out", compile_library, hip)
    with pytest.raises(InputError, match=r"--system-run-path: searches 'lib' relative to the folder"):
        run_job("pjrt", outputs, tmp_path, sample_dist, system_run_paths=("lib",))


def test_a_folder_that_the_description_searches_may_be_missing(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    core = "$ORIGIN/../../_rocm_sdk_core/lib"
    outputs = make_outputs(tmp_path / "out", compile_library, hip, f"-Wl,-rpath,{core}:{core}/later")
    with pytest.raises(FaultyWheelError, match="run-path-dead"):
        run_job("pjrt", outputs, tmp_path, sample_dist)
    description = changed("pjrt", search=["_rocm_sdk_core/lib", "_rocm_sdk_core/lib/later"])
    assert Path(run_job("pjrt", outputs, tmp_path, sample_dist, description=description).path).is_file()


def test_a_plugin_for_every_python_needs_the_library_of_none(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    python = compile_library(tmp_path / "libpython3.11.so.1.0", "int Py_x;", "-Wl,-soname,libpython3.11.so.1.0")
    outputs = make_outputs(
        tmp_path / "out", compile_library, hip, f"-Wl,-rpath,{CORE}", "-Wl,--no-as-needed", str(python)
    )
    with pytest.raises(
        FaultyWheelError, match=r"xla_rocm_plugin\.so: needs libpython3\.11\.so\.1\.0.* \(wrong-python\)"
    ):
        run_job("pjrt", outputs, tmp_path / "dist", sample_dist)
