"""Run paths that are repaired after the build."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.elf.facts import read_elf
from rocwheel.core.reading import FileRange
from rocwheel.distributions.content.content import FileContent
from rocwheel.distributions.formats.wheel import WheelName
from rocwheel.frameworks.jax.wheel_descriptions import jax_wheel_description
from rocwheel.frameworks.wheel.draft import DraftMember, WheelDraft
from rocwheel.frameworks.wheel.run_paths import IntendedEntries, repair_run_paths
from rocwheel.frameworks.wheel.verify import FaultyWheelError
from rocwheel.installed.reading.read_tree import read_environments
from rocwheel.linking.known.sdk_layout import sdk_search_folders
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.plan import RepairPlanner
from tests.frameworks.wheels import changed, make_outputs, run_job
from tests.support.trees import library, package, tree

if TYPE_CHECKING:
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


def test_repair_fixes_wrong_run_paths_and_leaves_right_files_alone(
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


def test_a_repair_leads_nowhere_that_only_an_older_wheel_of_the_same_name_had(
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
    with pytest.raises(FaultyWheelError, match=r"needs libown\.so\.1, but no package"):
        run_job("pjrt", outputs, tmp_path / "new", sample_dist, Path(old), repair=True)


@pytest.mark.parametrize(
    ("requires", "shown"),
    [(["rocm-sdk-core==7.1.2"], "Library rpath: "), (["rocm-sdk-core"], "Library runpath: ")],
    ids=["of one release", "of others"],
)
@pytest.mark.parametrize("entry", ["/../rocm/lib", CORE], ids=["wrong", "right"])
def test_an_rpath_stays_as_long_as_it_leads_into_packages_of_one_release(
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
def test_a_repair_keeps_right_files_and_intended_entries(
    linked: str, repaired: str, beside: str, tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    outputs = make_outputs(tmp_path / "out", compile_library, hip, f"-Wl,-rpath,{linked}")
    packages = sorted(sample_dist.glob(beside)) if beside else []
    report = run_job("pjrt", outputs, tmp_path, *packages, repair=True, system_run_paths=("/site/lib",))
    assert plugin_run_path(report.path, tmp_path) == repaired
    assert bool(report.repaired) == (linked != repaired)


def test_a_repair_leads_to_libraries_for_the_machine_of_the_file(tmp_path: Path, compile_library: Compile) -> None:
    needed = compile_library(tmp_path / "libx.so", "int x(void) { return 1; }", "-Wl,-soname,libx.so")
    source = "int x(void); int y(void) { return x(); }"
    user = compile_library(tmp_path / "user.so", source, str(needed), "-Wl,-rpath,/../lib")
    elf = read_elf(user.read_bytes(), name="user.so")
    member = DraftMember("demo/user.so", FileContent(FileRange.whole(user)), 0o755, elf, str(user))
    draft = WheelDraft(WheelName("demo", "1.0", "py3-none-any"), (member,), {}, "")
    companions = tree((package("other"), [library("arm/libx.so", machine=183), library("here/libx.so", machine=62)]))
    repaired = repair_run_paths(draft, companions, IntendedEntries(["arm", "here"]))
    assert [made.elf.run_path for made in repaired.members if made.elf] == ["$ORIGIN/../here"]
