"""Tests of `rocwheel.frameworks.wheel`."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from installer.sources import WheelFile

from rocwheel.binary.elf.facts import read_elf
from rocwheel.core.errors import InputError
from rocwheel.core.reading import FileRange
from rocwheel.environment.read_tree import read_environments
from rocwheel.environment.sdk_layout import sdk_search_folders
from rocwheel.frameworks.jax.starlark import jax_wheel_description
from rocwheel.frameworks.wheel import FaultyWheelError, IntendedEntries, repair_run_paths
from rocwheel.frameworks.wheel_draft import DraftMember, WheelDraft
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.repair_plan import RepairPlanner
from rocwheel.wheels.content import FileContent
from rocwheel.wheels.writing import WheelName
from tests.frameworks.wheels import changed, make_outputs, read_member, run_job
from tests.support.trees import library, package, tree

if TYPE_CHECKING:
    from rocwheel.frameworks.jax.starlark import JaxWheel
    from tests.frameworks.conftest import Compile


CORE = "$ORIGIN/../../_rocm_sdk_core/lib"
SDK_ENTRIES = ":".join(f"$ORIGIN/../../{folder}" for folder in sdk_search_folders())

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the sample SDK is for x86-64"),
]


def plugin_run_path(wheel: str, folder: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        library = archive.extract("jax_plugins/xla_rocm7/xla_rocm_plugin.so", folder)
    shown = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    return "".join(line.partition("Library runpath: [")[2].rstrip("]") for line in shown.splitlines())


def test_repair_fixes_wrong_run_paths_and_leaves_correct_files_unchanged(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    outputs = make_outputs(tmp_path / "out", compile_library, hip, "-Wl,-rpath,/../rocm/lib")
    report = run_job("pjrt", outputs, tmp_path, sample_dist, repair=True)
    assert report.repaired == ("jax_plugins/xla_rocm7/xla_rocm_plugin.so",)
    with zipfile.ZipFile(report.path) as archive:
        library = archive.extract("jax_plugins/xla_rocm7/xla_rocm_plugin.so", tmp_path)
    shown = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    assert "Library runpath: [$ORIGIN/../../_rocm_sdk_core/lib]" in shown
    right = run_job("plugin", outputs, tmp_path, sample_dist, python="3.12", repair=True)
    assert right.repaired == ()
    with zipfile.ZipFile(right.path) as archive:
        shipped = hashlib.sha256(archive.read("jax_rocm7_plugin/_linalg.so")).digest()
    assert shipped == hashlib.sha256((outputs / "rocm/_linalg.so").read_bytes()).digest()


def test_repair_ignores_libraries_that_only_an_older_wheel_of_the_same_name_had(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    own = compile_library(
        tmp_path / "own/libown.so.1", "int hipGetDeviceCount(int *n) { return *n; }", "-Wl,-soname,libown.so.1"
    )
    outputs = make_outputs(tmp_path / "out", compile_library, own, "-Wl,-rpath,$ORIGIN/lib")
    shutil.copy(own, outputs / "libown.so.1")
    row = {"from": "libown.so.1", "to": "jax_plugins/xla_rocm7/lib/"}
    files = [*jax_wheel_description("pjrt")["files"], row]
    old = run_job("pjrt", outputs, tmp_path / "old", sample_dist, description=changed("pjrt", files=files)).path
    with pytest.raises(FaultyWheelError, match=r"needs libown\.so\.1, but neither the packages"):
        run_job("pjrt", outputs, tmp_path / "new", sample_dist, Path(old), repair=True)


@pytest.mark.parametrize(
    ("requires", "shown"),
    [(["rocm-sdk-core==7.1.2"], "Library rpath: "), (["rocm-sdk-core"], "Library runpath: ")],
    ids=["of one release", "of others"],
)
@pytest.mark.parametrize("entry", ["/../rocm/lib", CORE], ids=["wrong", "right"])
def test_an_rpath_is_kept_only_if_it_points_into_packages_of_a_single_release(
    tmp_path: Path, compile_library: Compile, hip: Path, entry: str, requires: list[str], shown: str
) -> None:
    outputs = make_outputs(tmp_path / "out", compile_library, hip, "-Wl,--disable-new-dtags", f"-Wl,-rpath,{entry}")
    described = changed("pjrt", requires=requires)
    report = run_job("pjrt", outputs, tmp_path, repair=True, verify=False, description=described)
    with zipfile.ZipFile(report.path) as archive:
        library = archive.extract("jax_plugins/xla_rocm7/xla_rocm_plugin.so", tmp_path)
    text = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    assert f"{shown}[{CORE}]" in text
    wheels = read_environments([Path(report.path)])
    (owner,) = wheels.everything.distributions
    assert RepairPlanner(wheels, RepairOptions()).plan(owner).edits == {}


@pytest.mark.deep
@pytest.mark.parametrize("beside", ["", "rocm_sdk_libraries-*.whl", "*.whl"], ids=["nothing", "one package", "all"])
@pytest.mark.parametrize(
    ("linked", "repaired"),
    [
        (SDK_ENTRIES, SDK_ENTRIES),
        (CORE, CORE),
        (f"{CORE}:/opt/rocm/lib", f"{CORE}:/opt/rocm/lib"),
        (f"/opt/rocm/lib:{CORE}:/site/lib", f"/opt/rocm/lib:{CORE}:/site/lib"),
        ("/../rocm/lib", CORE),
        ("/opt/rocm/lib", f"{CORE}:/opt/rocm/lib"),
        (f"/opt/rocm/lib:/home/me/rocm:{CORE}:/opt/rocm/lib", f"/opt/rocm/lib:{CORE}"),
        (f"{CORE}:/opt/rocm/lib:/opt/rocm/lib", f"{CORE}:/opt/rocm/lib"),
    ],
    ids=[
        "default entries",
        "one entry",
        "intended",
        "intended first",
        "eaten",
        "only intended",
        "wrong and intended",
        "repeated",
    ],
)
def test_repair_keeps_correct_run_paths_and_intended_entries(
    linked: str, repaired: str, beside: str, tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    outputs = make_outputs(tmp_path / "out", compile_library, hip, f"-Wl,-rpath,{linked}")
    packages = sorted(sample_dist.glob(beside)) if beside else []
    report = run_job("pjrt", outputs, tmp_path, *packages, repair=True, system_run_paths=("/site/lib",))
    assert plugin_run_path(report.path, tmp_path) == repaired
    assert bool(report.repaired) == (linked != repaired)


def test_repair_points_to_libraries_for_the_machine_of_the_file(tmp_path: Path, compile_library: Compile) -> None:
    needed = compile_library(tmp_path / "libx.so", "int x(void) { return 1; }", "-Wl,-soname,libx.so")
    source = "int x(void); int y(void) { return x(); }"
    user = compile_library(tmp_path / "user.so", source, str(needed), "-Wl,-rpath,/../lib")
    elf = read_elf(user.read_bytes(), name="user.so")
    member = DraftMember("demo/user.so", FileContent(FileRange.whole(user)), 0o755, elf, str(user))
    draft = WheelDraft(WheelName("demo", "1.0", "py3-none-any"), (member,), {}, "")
    companions = tree((package("other"), [library("arm/libx.so", machine=183), library("here/libx.so", machine=62)]))
    repaired = repair_run_paths(draft, companions, IntendedEntries(["arm", "here"]))
    assert [made.elf.run_path for made in repaired.members if made.elf] == ["$ORIGIN/../here"]


SONAME = ("-Wl,-soname,libother.so.1",)


def test_a_missing_library_is_reported_and_no_wheel_is_written(
    tmp_path: Path, compile_library: Compile, sample_dist: Path
) -> None:
    other = compile_library(tmp_path / "libother.so.1", "int hipGetDeviceCount(int *n) { return *n; }", *SONAME)
    outputs = make_outputs(tmp_path / "out", compile_library, other)
    with pytest.raises(FaultyWheelError) as caught:
        run_job("pjrt", outputs, tmp_path / "dist", sample_dist)
    assert str(caught.value) == (
        "jax_rocm7_pjrt-0.12.0-py3-none-manylinux_2_5_x86_64.whl wasn't written: 1 problem\n"
        "  jax_plugins/xla_rocm7/xla_rocm_plugin.so: needs libother.so.1, but neither the packages, the SDK, nor "
        "the allowed system libraries include it (unresolved-library). Ship the library, "
        "require the package that provides it, or "
        "build against the required SDK version."
    )
    assert caught.value.exit_status == 1
    assert list((tmp_path / "dist").iterdir()) == []


def test_a_run_path_that_misses_the_sdk_is_reported(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    outputs = make_outputs(tmp_path / "out", compile_library, hip, "-Wl,-rpath,$ORIGIN")
    with pytest.raises(FaultyWheelError, match=r"needs libamdhip64\.so\.7, which is in _rocm_sdk_core/lib, but its"):
        run_job("pjrt", outputs, tmp_path / "dist", sample_dist)


def test_the_known_layout_is_used_without_the_sdk(outputs: Path, tmp_path: Path) -> None:
    assert Path(run_job("pjrt", outputs, tmp_path).path).is_file()


def test_an_entry_for_a_folder_that_this_sdk_lacks_is_accepted(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    core = "$ORIGIN/../../_rocm_sdk_core/lib"
    outputs = make_outputs(tmp_path / "out", compile_library, hip, f"-Wl,-rpath,{core}:{core}/host-math/lib")
    assert Path(run_job("pjrt", outputs, tmp_path, sample_dist).path).is_file()


@pytest.mark.deep
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
def test_a_wrong_entry_is_refused_even_if_the_library_is_found(
    entry: str, rule: str, tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    entries = f"-Wl,-rpath,$ORIGIN/../../_rocm_sdk_core/lib:{entry}"
    outputs = make_outputs(tmp_path / "out", compile_library, hip, entries)
    with pytest.raises(FaultyWheelError) as caught:
        run_job("pjrt", outputs, tmp_path, sample_dist)
    (problem,) = caught.value.problems
    assert str(problem).startswith("jax_plugins/xla_rocm7/xla_rocm_plugin.so: ")
    assert f"({rule})" in str(problem)


def test_an_absolute_entry_allowed_by_the_description_is_accepted(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    options = ("-Wl,-rpath,$ORIGIN/../../_rocm_sdk_core/lib:/opt/rocm/lib",)
    outputs = make_outputs(tmp_path / "out", compile_library, hip, *options)
    assert run_job("pjrt", outputs, tmp_path, sample_dist).repaired == ()


def test_each_absolute_entry_must_be_allowed(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    entries = "-Wl,-rpath,$ORIGIN/../../_rocm_sdk_core/lib:/opt/rocm/lib:/site/rocm/lib:/usr/local/lib"
    outputs = make_outputs(tmp_path / "out", compile_library, hip, entries)
    with pytest.raises(FaultyWheelError) as caught:
        run_job("pjrt", outputs, tmp_path, sample_dist, system_run_paths=("/site/rocm/lib",))
    (problem,) = caught.value.problems
    assert "searches '/usr/local/lib' on the host" in str(problem)
    intended = ("/site/rocm/lib", "/usr/local/lib")
    assert Path(run_job("pjrt", outputs, tmp_path, sample_dist, system_run_paths=intended).path).is_file()


def test_an_entry_that_is_always_wrong_cannot_be_allowed(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    outputs = make_outputs(tmp_path / "out", compile_library, hip)
    with pytest.raises(InputError, match=r"--system-run-path: searches 'lib' relative to the working directory"):
        run_job("pjrt", outputs, tmp_path, sample_dist, system_run_paths=("lib",))


def test_a_search_folder_in_the_description_may_be_missing(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    core = "$ORIGIN/../../_rocm_sdk_core/lib"
    outputs = make_outputs(tmp_path / "out", compile_library, hip, f"-Wl,-rpath,{core}:{core}/later")
    with pytest.raises(FaultyWheelError, match="run-path-dead"):
        run_job("pjrt", outputs, tmp_path, sample_dist)
    description = changed("pjrt", search=["_rocm_sdk_core/lib", "_rocm_sdk_core/lib/later"])
    assert Path(run_job("pjrt", outputs, tmp_path, sample_dist, description=description).path).is_file()


def test_a_plugin_for_every_python_may_not_need_libpython(
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


def test_the_pjrt_wheel_has_the_layout_that_jax_discovers(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    report = run_job("pjrt", outputs, tmp_path, sample_dist)
    assert Path(report.path).name == "jax_rocm7_pjrt-0.12.0-py3-none-manylinux_2_5_x86_64.whl"
    info = "jax_rocm7_pjrt-0.12.0.dist-info"
    with zipfile.ZipFile(report.path) as archive:
        assert archive.namelist() == [
            "jax_plugins/xla_rocm7/__init__.py",
            "jax_plugins/xla_rocm7/commit_info.py",
            "jax_plugins/xla_rocm7/version.py",
            "jax_plugins/xla_rocm7/xla_rocm_plugin.so",
            f"{info}/licenses/LICENSE",
            f"{info}/METADATA",
            f"{info}/WHEEL",
            f"{info}/entry_points.txt",
            f"{info}/RECORD",
        ]
        modes = {info.filename: oct(info.external_attr >> 16 & 0o777) for info in archive.infolist()}
    assert modes["jax_plugins/xla_rocm7/xla_rocm_plugin.so"] == "0o755"
    assert modes["jax_plugins/xla_rocm7/version.py"] == "0o644"
    assert read_member(report.path, "entry_points.txt") == "[jax_plugins]\nxla_rocm7 = jax_plugins.xla_rocm7\n"
    assert "Root-Is-Purelib: false\nTag: py3-none-manylinux_2_5_x86_64\n" in read_member(report.path, "WHEEL")


def test_the_plugin_wheel_is_for_one_python_and_requires_the_pjrt_wheel(
    outputs: Path, sample_dist: Path, tmp_path: Path
) -> None:
    report = run_job("plugin", outputs, tmp_path, sample_dist, python="3.12")
    assert Path(report.path).name == "jax_rocm7_plugin-0.12.0-cp312-cp312-manylinux_2_5_x86_64.whl"
    metadata = read_member(report.path, "METADATA")
    assert "Requires-Dist: jax-rocm7-pjrt==0.12.0.*\n" in metadata
    assert "License-Expression: Apache-2.0\nLicense-File: LICENSE\n" in metadata


def test_the_stamped_version_and_commits_match_the_metadata(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    wheel = run_job("plugin", outputs, tmp_path, sample_dist, python="3.12").path
    stamped: dict[str, Any] = {}
    exec(read_member(wheel, "/version.py") + read_member(wheel, "/commit_info.py"), stamped)
    assert stamped["__version__"] == "0.12.0"
    assert stamped["commits"] == {"ROCm/rocm-jax": "0123456789abcdef0123456789abcdef01234567"}


@pytest.mark.parametrize("kind", ["pjrt", "plugin"])
def test_the_record_matches_the_contents(kind: JaxWheel, outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    report = run_job(kind, outputs, tmp_path, sample_dist, python="3.12" if kind == "plugin" else "")
    with WheelFile.open(Path(report.path)) as wheel:
        wheel.validate_record(validate_contents=True)


def test_the_same_build_outputs_in_another_folder_produce_the_same_wheel(
    outputs: Path, sample_dist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run_job("pjrt", outputs, tmp_path / "one", sample_dist)
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(outputs, elsewhere, copy_function=shutil.copy)
    for path in elsewhere.rglob("*"):
        os.utime(path, (0, 1_000_000_000))
    monkeypatch.chdir(elsewhere)
    second = run_job("pjrt", elsewhere, tmp_path / "two", sample_dist)
    assert Path(first.path).read_bytes() == Path(second.path).read_bytes()


def test_pip_installs_the_pair_with_the_sdk_and_the_plugin_loads(
    outputs: Path, sample_dist: Path, tmp_path: Path
) -> None:
    this, any_python = f"3.{sys.version_info.minor}", {"requires-python": ""}
    wheels = [
        run_job("pjrt", outputs, tmp_path / "dist", sample_dist, description=changed("pjrt", **any_python)).path,
        run_job(
            "plugin", outputs, tmp_path / "dist", sample_dist, description=changed("plugin", **any_python), python=this
        ).path,
    ]
    site = tmp_path / "site"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-index",
        "--find-links",
        str(sample_dist),
        "--target",
        str(site),
    ]
    subprocess.run([*pip, *wheels, "rocm-sdk-core"], check=True, env={"PIP_CONFIG_FILE": os.devnull})
    load = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).GetPjrtApi())"
    plugin = site / "jax_plugins/xla_rocm7/xla_rocm_plugin.so"
    loaded = subprocess.run([sys.executable, "-c", load, plugin], env={}, capture_output=True, text=True, check=True)
    assert loaded.stdout == "100\n"


def test_inputs_can_come_from_a_runfiles_manifest(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "MANIFEST"
    rows = [f"_main/{path.relative_to(outputs)} {path}\n" for path in outputs.rglob("*") if path.is_file()]
    manifest.write_text("".join(rows))
    empty = tmp_path / "empty"
    empty.mkdir()
    by_manifest = run_job("pjrt", empty, tmp_path / "a", sample_dist, runfiles_manifest=manifest)
    by_folder = run_job("pjrt", outputs, tmp_path / "b", sample_dist)
    assert Path(by_manifest.path).read_bytes() == Path(by_folder.path).read_bytes()


def test_wheels_can_be_rebuilt_next_to_existing_wheels(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    dist = shutil.copytree(sample_dist, tmp_path / "dist")
    for _ in range(2):
        run_job("pjrt", outputs, dist, dist)
        for python in ("3.11", "3.12"):
            run_job("plugin", outputs, dist, dist, python=python)
    names = {path.name for path in dist.glob("jax*")}
    assert names == {
        "jax_rocm7_pjrt-0.12.0-py3-none-manylinux_2_5_x86_64.whl",
        "jax_rocm7_plugin-0.12.0-cp311-cp311-manylinux_2_5_x86_64.whl",
        "jax_rocm7_plugin-0.12.0-cp312-cp312-manylinux_2_5_x86_64.whl",
    }
