"""Wheels made from build outputs: read back, installed, and refused when they would not load."""

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

from rocwheel.foundation.errors import InputError, ProblemsError
from rocwheel.frameworks.jax.wheel_descriptions import jax_wheel_description
from rocwheel.frameworks.wheel.verify import FaultyWheelError
from rocwheel.linking.sdk_layout import sdk_search_folders
from tests.frameworks.wheels import HIP, jax_job, make_outputs, run_job

if TYPE_CHECKING:
    from rocwheel.frameworks.jax.wheel_descriptions import JaxWheel
    from tests.frameworks.conftest import Compile

SONAME = ("-Wl,-soname,libother.so.1",)

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the sample SDK is for x86-64")


@pytest.fixture(scope="module")
def hip(sample_dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the HIP library of the sample SDK, taken out of its wheel."""
    folder = tmp_path_factory.mktemp("hip")
    (core,) = sample_dist.glob("rocm_sdk_core-*.whl")
    with zipfile.ZipFile(core) as archive:
        return Path(archive.extract(HIP, folder))


@pytest.fixture
def outputs(tmp_path: Path, compile_library: Compile, hip: Path) -> Path:
    return make_outputs(tmp_path / "bazel-bin", compile_library, hip)


def read(wheel: str, member: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(member)]
        return archive.read(name).decode()


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
    assert read(report.path, "entry_points.txt") == "[jax_plugins]\nxla_rocm7 = jax_plugins.xla_rocm7\n"
    assert "Root-Is-Purelib: false\nTag: py3-none-manylinux_2_5_x86_64\n" in read(report.path, "WHEEL")


def test_the_plugin_wheel_is_for_one_python_and_requires_its_twin(
    outputs: Path, sample_dist: Path, tmp_path: Path
) -> None:
    report = run_job("plugin", outputs, tmp_path, sample_dist, python="3.12")
    assert Path(report.path).name == "jax_rocm7_plugin-0.12.0-cp312-cp312-manylinux_2_5_x86_64.whl"
    metadata = read(report.path, "METADATA")
    assert "Requires-Dist: jax-rocm7-pjrt==0.12.0.*\n" in metadata
    assert "License-Expression: Apache-2.0\nLicense-File: LICENSE\n" in metadata


def test_version_and_commits_are_stamped_as_in_the_metadata(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    wheel = run_job("plugin", outputs, tmp_path, sample_dist, python="3.12").path
    stamped: dict[str, Any] = {}
    exec(read(wheel, "/version.py") + read(wheel, "/commit_info.py"), stamped)
    assert stamped["__version__"] == "0.12.0"
    assert stamped["commits"] == {"ROCm/rocm-jax": "0123456789abcdef0123456789abcdef01234567"}


@pytest.mark.parametrize("kind", ["pjrt", "plugin"])
def test_record_and_contents_agree(kind: JaxWheel, outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    report = run_job(kind, outputs, tmp_path, sample_dist, python="3.12" if kind == "plugin" else "")
    with WheelFile.open(Path(report.path)) as wheel:
        wheel.validate_record(validate_contents=True)


def test_the_same_outputs_elsewhere_make_the_same_bytes(
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


def test_pip_installs_the_pair_beside_the_sdk_and_the_plugin_loads(
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
    with pytest.raises(FaultyWheelError, match=r"needs libamdhip64\.so\.7, which is in _rocm_sdk_core/lib, where its"):
        run_job("pjrt", outputs, tmp_path / "dist", sample_dist)


def test_without_the_sdk_its_known_layout_counts(outputs: Path, tmp_path: Path) -> None:
    assert Path(run_job("pjrt", outputs, tmp_path).path).is_file()


def test_a_folder_of_the_sdk_that_this_one_lacks_is_no_fault(
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


def test_an_absolute_entry_that_the_description_means_is_right(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    options = ("-Wl,-rpath,$ORIGIN/../../_rocm_sdk_core/lib:/opt/rocm/lib",)
    outputs = make_outputs(tmp_path / "out", compile_library, hip, *options)
    assert run_job("pjrt", outputs, tmp_path, sample_dist).repaired == ()


def test_repair_mends_wrong_run_paths_and_leaves_right_files_alone(
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


def test_inputs_may_come_from_a_runfiles_manifest(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "MANIFEST"
    rows = [f"_main/{path.relative_to(outputs)} {path}\n" for path in outputs.rglob("*") if path.is_file()]
    manifest.write_text("".join(rows))
    empty = tmp_path / "empty"
    empty.mkdir()
    by_manifest = run_job("pjrt", empty, tmp_path / "a", sample_dist, runfiles_manifest=manifest)
    by_folder = run_job("pjrt", outputs, tmp_path / "b", sample_dist)
    assert Path(by_manifest.path).read_bytes() == Path(by_folder.path).read_bytes()


def test_extension_modules_without_a_known_python_are_refused(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        run_job("plugin", outputs, tmp_path, sample_dist)
    assert str(caught.value) == (
        "jax_rocm7_plugin/_hybrid.so: is an extension module whose name has no Python version. "
        "Give --python, such as --python 3.12."
    )


def test_a_python_that_the_description_rules_out_is_refused(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        run_job("plugin", outputs, tmp_path, sample_dist, python="3.9")
    assert str(caught.value).startswith("jax_rocm7_plugin/_hybrid.so: is for Python 3.9; expected one of >=3.11.")
    assert not list(tmp_path.glob("*.whl"))


def changed(kind: JaxWheel, **fields: Any) -> dict[str, Any]:
    return {**jax_wheel_description(kind), **fields}


def test_an_init_in_a_shared_namespace_is_refused(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    description = changed("pjrt", texts={"jax_plugins/__init__.py": "", "jax_plugins/xla_rocm7/version.py": ""})
    with pytest.raises(ProblemsError) as caught:
        run_job("pjrt", outputs, tmp_path, sample_dist, description=description)
    assert [str(problem) for problem in caught.value.problems] == [
        (
            "jax-rocm7-pjrt: has jax_plugins/__init__.py, but shares jax_plugins with others. Leave it out: it would "
            "hide the other distributions' part of the namespace."
        )
    ]


def test_two_files_at_one_place_are_refused(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    rows = [{"from": "python/__init__.py", "to": "x/"}, {"from": "__init__.py", "to": "x/__init__.py"}]
    with pytest.raises(ProblemsError) as caught:
        run_job("pjrt", outputs, tmp_path, sample_dist, description=changed("pjrt", files=rows, **{"entry-points": {}}))
    origin = outputs / "pjrt/python/__init__.py"
    assert [str(problem) for problem in caught.value.problems] == [
        f"jax-rocm7-pjrt: puts two files at x/__init__.py: {origin} and {origin}; expected one file"
    ]


def test_an_entry_point_without_its_module_is_refused(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    rows = [{"from": "pjrt_c_api_gpu_plugin.so", "to": "jax_plugins/xla_rocm7/"}]
    with pytest.raises(ProblemsError) as caught:
        run_job("pjrt", outputs, tmp_path, sample_dist, description=changed("pjrt", files=rows))
    assert [str(problem) for problem in caught.value.problems] == [
        (
            "jax-rocm7-pjrt: has the entry point jax_plugins: xla_rocm7 = jax_plugins.xla_rocm7, whose module it "
            "lacks; expected jax_plugins/xla_rocm7/__init__.py or jax_plugins/xla_rocm7.py in the wheel"
        )
    ]


def test_a_wrong_requirement_is_refused(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    with pytest.raises(ProblemsError, match="jax-rocm7-pjrt: 1 problem\n"):
        run_job("pjrt", outputs, tmp_path, sample_dist, description=changed("pjrt", requires=["not a requirement!"]))


def test_an_output_of_another_name_than_its_tags_give_is_refused(
    outputs: Path, sample_dist: Path, tmp_path: Path
) -> None:
    job = jax_job("pjrt", outputs, tmp_path, sample_dist)
    wrong = tmp_path / "jax_rocm7_pjrt-0.12.0-py3-none-manylinux_2_28_x86_64.whl"
    with pytest.raises(InputError) as caught:
        type(job)(job.source, job.description, job.values, job.build, output=wrong).run()
    assert str(caught.value).startswith(f"{wrong}: is not the wheel's name (platform: jax_plugins/xla_rocm7/")
    assert not wrong.exists()


@pytest.mark.parametrize(("text", "found"), [("", "is not an ELF file"), ("not a library", "is not an ELF file")])
def test_an_output_that_is_no_library_is_refused(
    text: str, found: str, outputs: Path, sample_dist: Path, tmp_path: Path
) -> None:
    library = outputs / "pjrt/pjrt_c_api_gpu_plugin.so"
    library.write_text(text)
    with pytest.raises(ProblemsError) as caught:
        run_job("pjrt", outputs, tmp_path / "dist", sample_dist)
    assert [str(problem) for problem in caught.value.problems] == [
        (
            f"{library}: {found}; expected a shared library, to stand at jax_plugins/xla_rocm7/xla_rocm_plugin.so. "
            "Build it again."
        )
    ]
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(("option", "kind"), [("-c", "relocatable"), ("-pie", "executable")])
def test_an_object_file_or_a_program_is_no_library(
    option: str, kind: str, outputs: Path, sample_dist: Path, tmp_path: Path
) -> None:
    library = outputs / "pjrt/pjrt_c_api_gpu_plugin.so"
    command = ["gcc", option, "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input="int main(void) { return 0; }", text=True, check=True)
    with pytest.raises(ProblemsError, match=rf"is an ELF file of another kind \({kind}\); expected a shared library"):
        run_job("pjrt", outputs, tmp_path / "dist", sample_dist)


def test_two_license_texts_of_one_name_are_both_there(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (outputs / "third_party" / name).mkdir(parents=True)
        (outputs / "third_party" / name / "NOTICE").write_text(name)
    description = changed("pjrt", **{"license-files": ["LICENSE", "third_party/*/NOTICE"]})
    report = run_job("pjrt", outputs, tmp_path / "dist", sample_dist, description=description)
    assert read(report.path, "licenses/third_party/a/NOTICE") == "a"
    assert "License-File: third_party/b/NOTICE\n" in read(report.path, "METADATA")


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("win_amd64", "is 'win_amd64'; expected a tag for the files' machine, such as manylinux_2_5_x86_64"),
        (
            "manylinux_2_28_x86_64.manylinux_2_28_aarch64",
            "is 'manylinux_2_28_aarch64'; expected a tag for the files' machine, such as manylinux_2_5_x86_64",
        ),
        ("any", "is 'any'; expected a tag for the files' machine, such as manylinux_2_5_x86_64"),
        ("../x y", "is '../x y'; expected a tag such as manylinux_2_28_x86_64"),
    ],
)
def test_a_platform_tag_that_is_not_for_the_files_is_refused(
    tag: str, text: str, outputs: Path, sample_dist: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        run_job("pjrt", outputs, tmp_path / "dist", sample_dist, platform_tag=tag)
    assert str(caught.value) == f"--platform-tag: {text}"
    assert not (tmp_path / "dist").exists()


def test_files_for_a_machine_without_a_known_tag_need_one(outputs: Path, tmp_path: Path) -> None:
    library = outputs / "pjrt/pjrt_c_api_gpu_plugin.so"
    data = bytearray(library.read_bytes())
    data[18:20] = (258).to_bytes(2, "little")  # e_machine: LoongArch
    library.write_bytes(data)
    with pytest.raises(InputError) as caught:
        run_job("pjrt", outputs, tmp_path / "dist", verify=False)
    assert str(caught.value) == (
        f"{library}: is for a machine that no platform tag is known for (ELF machine 258). Give --platform-tag."
    )
    report = run_job("pjrt", outputs, tmp_path / "dist", verify=False, platform_tag="linux_loongarch64")
    assert Path(report.path).name == "jax_rocm7_pjrt-0.12.0-py3-none-linux_loongarch64.whl"
    assert "Root-Is-Purelib: false\n" in read(report.path, "WHEEL")


def test_an_init_in_a_namespace_below_another_is_refused(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    description = changed("pjrt", namespaces=["jax_plugins.xla_rocm7"])
    with pytest.raises(
        ProblemsError, match=r"has jax_plugins/xla_rocm7/__init__\.py, but shares jax_plugins\.xla_rocm7"
    ):
        run_job("pjrt", outputs, tmp_path, sample_dist, description=description)


def test_each_absolute_entry_has_to_be_meant(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    entries = "-Wl,-rpath,$ORIGIN/../../_rocm_sdk_core/lib:/opt/rocm/lib:/site/rocm/lib:/usr/local/lib"
    outputs = make_outputs(tmp_path / "out", compile_library, hip, entries)
    with pytest.raises(FaultyWheelError) as caught:
        run_job("pjrt", outputs, tmp_path, sample_dist, system_run_paths=("/site/rocm/lib",))
    (problem,) = caught.value.problems
    assert "searches '/usr/local/lib' of the host" in str(problem)
    meant = ("/site/rocm/lib", "/usr/local/lib")
    assert Path(run_job("pjrt", outputs, tmp_path, sample_dist, system_run_paths=meant).path).is_file()


def test_wheels_are_made_again_beside_those_of_the_last_time(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
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


def test_a_folder_that_the_description_searches_may_be_missing(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    core = "$ORIGIN/../../_rocm_sdk_core/lib"
    outputs = make_outputs(tmp_path / "out", compile_library, hip, f"-Wl,-rpath,{core}:{core}/later")
    with pytest.raises(FaultyWheelError, match="run-path-dead"):
        run_job("pjrt", outputs, tmp_path, sample_dist)
    description = changed("pjrt", search=["_rocm_sdk_core/lib", "_rocm_sdk_core/lib/later"])
    assert Path(run_job("pjrt", outputs, tmp_path, sample_dist, description=description).path).is_file()


def test_a_repair_keeps_the_kind_of_run_path(
    tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    options = ("-Wl,--disable-new-dtags", "-Wl,-rpath,/../rocm/lib")
    outputs = make_outputs(tmp_path / "out", compile_library, hip, *options)
    report = run_job("pjrt", outputs, tmp_path, sample_dist, repair=True, verify=False)
    with zipfile.ZipFile(report.path) as archive:
        library = archive.extract("jax_plugins/xla_rocm7/xla_rocm_plugin.so", tmp_path)
    shown = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    assert "Library rpath: [$ORIGIN/../../_rocm_sdk_core/lib]" in shown


CORE = "$ORIGIN/../../_rocm_sdk_core/lib"
SDK_ENTRIES = ":".join(f"$ORIGIN/../../{folder}" for folder in sdk_search_folders())


def plugin_run_path(wheel: str, folder: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        library = archive.extract("jax_plugins/xla_rocm7/xla_rocm_plugin.so", folder)
    shown = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    return "".join(line.partition("Library runpath: [")[2].rstrip("]") for line in shown.splitlines())


@pytest.mark.parametrize("beside", ["", "rocm_sdk_libraries-*.whl", "*.whl"], ids=["nothing", "one package", "all"])
@pytest.mark.parametrize(
    ("linked", "mended"),
    [
        (SDK_ENTRIES, SDK_ENTRIES),
        (CORE, CORE),
        (f"{CORE}:/opt/rocm/lib", f"{CORE}:/opt/rocm/lib"),
        (f"/opt/rocm/lib:{CORE}:/site/lib", f"/opt/rocm/lib:{CORE}:/site/lib"),
        ("/../rocm/lib", CORE),
        ("/opt/rocm/lib", f"{CORE}:/opt/rocm/lib"),
        (f"/opt/rocm/lib:/home/me/rocm:{CORE}:/opt/rocm/lib", f"{CORE}:/opt/rocm/lib"),
        (f"{CORE}:/opt/rocm/lib:/opt/rocm/lib", f"{CORE}:/opt/rocm/lib"),
    ],
    ids=["default entries", "one entry", "meant", "meant first", "eaten", "only meant", "wrong and meant", "repeated"],
)
def test_a_repair_keeps_right_files_and_entries_that_are_meant(
    linked: str, mended: str, beside: str, tmp_path: Path, compile_library: Compile, hip: Path, sample_dist: Path
) -> None:
    outputs = make_outputs(tmp_path / "out", compile_library, hip, f"-Wl,-rpath,{linked}")
    packages = sorted(sample_dist.glob(beside)) if beside else []
    report = run_job("pjrt", outputs, tmp_path, *packages, repair=True, system_run_paths=("/site/lib",))
    assert plugin_run_path(report.path, tmp_path) == mended
    assert bool(report.repaired) == (linked != mended)


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
