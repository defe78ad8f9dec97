"""Promotion of PyTorch's wheels, with the SDK's packages in the same folder and without them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.build.planning.options import PlanOptions
from rocwheel.build.promoting.promote import PromoteJob
from rocwheel.build.promoting.versions import VersionChange
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.demo import SAMPLE_SDK
from rocwheel.frameworks.torch import initializer
from tests.support.command_line import rocwheel
from tests.support.environments import make_venv, pip_for
from tests.support.framework_wheels import make_framework_wheels
from tests.support.libraries import needs_compiler
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_compiler]

OLD, NEW = "10.0.0rc1", "10.0.0"
PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"
TAG = f"{PYTHON}-{PYTHON}-manylinux_2_5_x86_64"


@pytest.fixture(scope="module")
def frameworks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("frameworks") / "dist"
    make_framework_wheels(folder, OLD, tag=TAG)
    return folder


@pytest.fixture(scope="module")
def everything(frameworks: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with SDK and frameworks; not to be changed."""
    folder = tmp_path_factory.mktemp("everything")
    BuildJob(PlanJob(SAMPLE_SDK, options=PlanOptions(version=OLD)), folder).run()
    shutil.copytree(frameworks, folder / "dist", dirs_exist_ok=True)
    return folder / "dist"


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """Return an empty folder for wheels."""
    (tmp_path / "dist").mkdir()
    return tmp_path / "dist"


def member(folder: Path, wheel: str, name: str) -> str:
    (path,) = folder.glob(f"{wheel}-[0-9]*.whl")
    (found,) = [data for member, data in members(path).items() if member.endswith(name)]
    return found.decode()


def headers(folder: Path, wheel: str, *names: str) -> list[str]:
    lines = member(folder, wheel, ".dist-info/METADATA").split("\n\n")[0].splitlines()
    return [line for line in lines if line.startswith(names)]


def problems(dist: Path, to: str, *targets: str) -> list[str]:
    """Return the problems that stop a promotion, which writes nothing."""
    out = dist.parent / "out"
    with pytest.raises(RocwheelError) as caught:
        PromoteJob(dist, to, out, targets).run()
    assert not out.exists()
    found = caught.value.problems if isinstance(caught.value, ProblemsError) else (caught.value,)
    return [str(problem).replace(str(dist), "DIST") for problem in found]


def test_frameworks_and_sdk_in_one_folder_are_promoted_together(everything: Path, tmp_path: Path) -> None:
    result = PromoteJob(everything, NEW, tmp_path / "out").run()
    assert (result.old_version, result.version) == (OLD, NEW)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        f"amd_torch_device_gfx10-2.9.0+rocm10.0.0-{TAG}.whl",
        f"amd_torch_device_gfx1030-2.9.0+rocm10.0.0-{TAG}.whl",
        f"amd_torch_device_gfx906-2.9.0+rocm10.0.0-{TAG}.whl",
        f"amd_torchvision_device_gfx10-0.24.0+rocm10.0.0-{TAG}.whl",
        f"amd_torchvision_device_gfx1030-0.24.0+rocm10.0.0-{TAG}.whl",
        f"amd_torchvision_device_gfx906-0.24.0+rocm10.0.0-{TAG}.whl",
        "rocm-10.0.0.tar.gz",
        "rocm_bootstrap-0.3.0-py3-none-any.whl",
        "rocm_profiler-10.0.0-py3-none-manylinux_2_5_x86_64.whl",
        "rocm_sdk_core-10.0.0-py3-none-manylinux_2_17_x86_64.whl",
        "rocm_sdk_devel-10.0.0-py3-none-manylinux_2_5_x86_64.whl",
        "rocm_sdk_device_gfx1030-10.0.0-py3-none-manylinux_2_5_x86_64.whl",
        "rocm_sdk_device_gfx906-10.0.0-py3-none-manylinux_2_5_x86_64.whl",
        "rocm_sdk_device_gfx90a-10.0.0-py3-none-manylinux_2_5_x86_64.whl",
        "rocm_sdk_libraries-10.0.0-py3-none-manylinux_2_5_x86_64.whl",
        f"torch-2.9.0+rocm10.0.0-{TAG}.whl",
        f"torchaudio-2.9.1a0+rocm10.0.0-{TAG}.whl",
        f"torchvision-0.24.0+rocm10.0.0-{TAG}.whl",
        f"triton-3.5.0+rocm10.0.0-{TAG}.whl",
    ]


@pytest.mark.parametrize("folder", ["everything", "frameworks"])
def test_every_torch_file_that_states_the_version_is_changed(
    folder: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    PromoteJob(request.getfixturevalue(folder), NEW, tmp_path / "out").run()
    assert headers(tmp_path / "out", "torch", "Version", "Requires-Dist", "Provides-Extra") == [
        "Version: 2.9.0+rocm10.0.0",
        "Requires-Dist: filelock",
        "Requires-Dist: sympy>=1.13.3",
        "Requires-Dist: setuptools; python_version >= '3.12'",
        "Requires-Dist: rocm[libraries]==10.0.0",
        'Requires-Dist: triton==3.5.0+rocm10.0.0; platform_system == "Linux" and platform_machine == "x86_64"',
        'Requires-Dist: opt-einsum>=3.3; extra == "opt-einsum"',
        "Requires-Dist: rocm-bootstrap",
        'Requires-Dist: amd-torch-device-gfx906 == 2.9.0+rocm10.0.0; extra == "device-gfx906"',
        'Requires-Dist: amd-torch-device-gfx1030 == 2.9.0+rocm10.0.0; extra == "device-gfx1030"',
        'Requires-Dist: amd-torch-device-gfx10 == 2.9.0+rocm10.0.0; extra == "device-gfx1030"',
        'Requires-Dist: amd-torch-device-gfx906 == 2.9.0+rocm10.0.0; extra == "device-all"',
        'Requires-Dist: amd-torch-device-gfx1030 == 2.9.0+rocm10.0.0; extra == "device-all"',
        'Requires-Dist: amd-torch-device-gfx10 == 2.9.0+rocm10.0.0; extra == "device-all"',
        "Provides-Extra: opt-einsum",
        "Provides-Extra: device-gfx906",
        "Provides-Extra: device-gfx1030",
        "Provides-Extra: device-all",
    ]
    assert "check_version='10.0.0')\n" in member(tmp_path / "out", "torch", "torch/_rocm_init.py")
    version = member(tmp_path / "out", "torch", "torch/version.py").splitlines()
    assert version[3] == "__version__ = '2.9.0+rocm10.0.0'"
    assert version[-2:] == ["hip: Optional[str] = '7.2.53211'", "rocm: Optional[str] = '10.0.0'"]


def test_wheels_that_require_torch_are_also_changed(frameworks: Path, tmp_path: Path) -> None:
    PromoteJob(frameworks, NEW, tmp_path / "out").run()
    assert headers(tmp_path / "out", "torchvision", "Requires-Dist")[:3] == [
        "Requires-Dist: numpy",
        "Requires-Dist: torch==2.9.0+rocm10.0.0",
        "Requires-Dist: pillow!=8.3.*,>=5.3.0",
    ]
    assert member(tmp_path / "out", "torchaudio", "version.py").startswith("__version__ = '2.9.1a0+rocm10.0.0'\n")
    assert headers(tmp_path / "out", "amd_torch_device_gfx1030", "Requires-Dist") == [
        "Requires-Dist: torch == 2.9.0+rocm10.0.0",
        "Requires-Dist: amd-torch-device-gfx10 == 2.9.0+rocm10.0.0",
        "Requires-Dist: rocm-sdk-device-gfx1030 == 10.0.0",
    ]


def test_the_audit_reports_no_findings_in_a_promoted_folder(everything: Path, tmp_path: Path) -> None:
    PromoteJob(everything, NEW, tmp_path / "out").run()
    done = rocwheel("audit", "--json", tmp_path / "out")
    assert (done.returncode, json.loads(done.stdout)["findings"]) == (0, [])


def test_pip_installs_promoted_frameworks_and_torch_can_be_imported(everything: Path, tmp_path: Path) -> None:
    PromoteJob(everything, NEW, tmp_path / "out").run()
    for name in ("filelock", "sympy", "setuptools", "numpy", "pillow"):
        make_wheel(tmp_path / "others", name, {}, version="99", tag="py3-none-any")
    python = make_venv(tmp_path / "venv")
    install = [*pip_for(python), "install", "-q", "--no-index", "--no-cache-dir", "--no-build-isolation"]
    links = ["--find-links", str(tmp_path / "out"), "--find-links", str(tmp_path / "others")]
    subprocess.run([*install, *links, "torch[device-gfx1030]", "torchvision", "torchaudio"], check=True)
    subprocess.run([*pip_for(python), "check"], check=True)
    code = "import torch, rocm_sdk; print(torch.__version__, torch.version.rocm, rocm_sdk.__version__)"
    done = subprocess.run([python, "-W", "error", "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "2.9.0+rocm10.0.0 10.0.0 10.0.0\n"


def test_the_generated_initializer_accepts_the_new_version(dist: Path, tmp_path: Path) -> None:
    files = {"demo/_rocm_init.py": initializer(OLD, "exact").encode()}
    make_wheel(dist, "demo", files, version="1.0+rocm10.0.0rc1", requires=("rocm[libraries]==10.0.0rc1",))
    PromoteJob(dist, NEW, tmp_path / "out").run()
    assert member(tmp_path / "out", "demo", "_rocm_init.py") == initializer(NEW, "exact")


@pytest.mark.parametrize(
    ("old", "new", "text", "expected"),
    [
        (OLD, NEW, "10.0.0rc1", "10.0.0"),
        (OLD, NEW, "2.9.0+rocm10.0.0rc1", "2.9.0+rocm10.0.0"),
        (OLD, NEW, "2.9.0a0+git1a2b3c4d.rocm10.0.0rc1", "2.9.0a0+git1a2b3c4d.rocm10.0.0"),
        (OLD, NEW, "3.4.0+git12345678-rocm10.0.0rc1", "3.4.0+git12345678-rocm10.0.0"),
        (OLD, NEW, "2.9.0+rocm10.0.0rc1.git7e1940d4", "2.9.0+rocm10.0.0.git7e1940d4"),
        (OLD, NEW, "2.9.0+rocm10.0.0rc11", "2.9.0+rocm10.0.0rc11"),
        (OLD, NEW, "2.9.0+cpu", "2.9.0+cpu"),
        (OLD, NEW, "10.0.0rc2", "10.0.0rc2"),
        ("10.0.0a20260830", "10.0.0rc1", "2.9.0+rocm10.0.0a20260830", "2.9.0+rocm10.0.0rc1"),
        ("10.0.0", "10.0.1", "2.9.0+rocm10.0.0.dev1", "2.9.0+rocm10.0.0.dev1"),
        ("10.0.0.dev0+abc", "10.0.0", "2.9.0+devrocm10.0.0.dev0-abc", "2.9.0+rocm10.0.0"),
        ("10.0.0", "10.0.1.dev0+abc", "2.9.0+rocm10.0.0", "2.9.0+devrocm10.0.1.dev0.abc"),
    ],
)
def test_the_rocm_part_of_local_framework_versions_is_changed(old: str, new: str, text: str, expected: str) -> None:
    assert VersionChange(old, new).version(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rocm[libraries,device-all]==10.0.0rc1", "rocm[libraries,device-all]==10.0.0"),
        ("rocm[libraries] (>=10.0.0rc1,<10.1)", "rocm[libraries] (>=10.0.0,<10.1)"),
        ("rocm-sdk-core~=10.0.0rc1", "rocm-sdk-core~=10.0.0"),
        ("torch===2.9.0+rocm10.0.0rc1; extra == 'a'", "torch===2.9.0+rocm10.0.0; extra == 'a'"),
        ("pytorch-triton-rocm==3.4.0+rocm10.0.0rc1", "pytorch-triton-rocm==3.4.0+rocm10.0.0"),
        ("triton != 3.5.0+rocm10.0.0rc1", "triton != 3.5.0+rocm10.0.0rc1"),
        ("numpy==10.0.0rc1", "numpy==10.0.0rc1"),
        ("rocm @ https://example.org/rocm-10.0.0rc1.tar.gz", "rocm @ https://example.org/rocm-10.0.0rc1.tar.gz"),
    ],
)
def test_framework_requirements_on_the_sdk_are_changed(text: str, expected: str) -> None:
    assert VersionChange(OLD, NEW).requirement(text, any_name=False) == expected


def test_modules_that_would_still_state_the_old_version_stop_the_promotion(dist: Path) -> None:
    wheel = make_wheel(
        dist,
        "demo",
        {
            "demo/__init__.py": b'"""For 10.0.0rc1."""\n# 10.0.0rc1\nNAME = "10.0.0rc11"\n',
            "demo/config.py": b"def show():\n    return {'rocm': '10.0.0rc1'}\n",
            "demo/data.json": b'{"built": "1.0+rocm10.0.0rc1"}',
        },
        version="1.0+rocm10.0.0rc1",
        requires=("torch @ https://example.org/torch-2.9.0%2Brocm10.0.0rc1-cp312-cp312-linux_x86_64.whl",),
    )
    rest = (
        "after the promotion; expected the version only in METADATA, version.py, and _rocm_init.py. "
        "Build the wheel with a module that imports the version from version.py."
    )
    assert problems(dist, NEW) == [
        f"DIST/{wheel.name}!demo/config.py: still states version 10.0.0rc1 (line 2) {rest}",
        f"DIST/{wheel.name}!demo/data.json: still states version 10.0.0rc1 (line 1) {rest}",
        (
            f"DIST/{wheel.name}!demo-1.0+rocm10.0.0rc1.dist-info/METADATA: requires 'torch @ "
            "https://example.org/torch-2.9.0%2Brocm10.0.0rc1-cp312-cp312-linux_x86_64.whl', the URL of a file with the "
            "old version; expected a requirement without a URL. Build the wheel with a requirement such as "
            "torch==VERSION."
        ),
    ]


def test_a_final_version_may_also_be_the_version_of_other_software(dist: Path, tmp_path: Path) -> None:
    files = {"demo/opset.py": b"OPSETS = ['7.0.0']\n", "demo/_dist_info.py": b"__version__ = '7.0.0'\n"}
    make_wheel(dist, "demo", files, version="1.0+rocm7.0.0", requires=("other==7.0.0",))
    PromoteJob(dist, "7.0.1", tmp_path / "out").run()
    assert member(tmp_path / "out", "demo", "opset.py") == "OPSETS = ['7.0.0']\n"
    assert headers(tmp_path / "out", "demo", "Requires-Dist") == ["Requires-Dist: other==7.0.0"]
    (tmp_path / "out").rename(tmp_path / "first")
    make_wheel(dist, "demo", {"demo/a.py": b"V = '1.0+rocm7.0.0'\n"}, version="1.0+rocm7.0.0")
    assert len(problems(dist, "7.0.1")) == 1


@pytest.mark.parametrize(("old", "new", "opset"), [("10.0.0rc1", "10.0.0", "10.0.0"), ("7.0.0", "7.0.1", "7.0.0")])
def test_version_modules_of_namespace_packages_are_changed(
    dist: Path, tmp_path: Path, old: str, new: str, opset: str
) -> None:
    module = f"VERSION = '0.9.1+rocm{old}'\nOPSET = '{old}'\n".encode()
    files = {"jax_plugins/xla_rocm10/__init__.py": b"", "jax_plugins/xla_rocm10/version.py": module}
    make_wheel(dist, "jax-rocm10-pjrt", files, version=f"0.9.1+rocm{old}")
    PromoteJob(dist, new, tmp_path / "out").run()
    text = member(tmp_path / "out", "jax_rocm10_pjrt", "version.py")
    assert text == f"VERSION = '0.9.1+rocm{new}'\nOPSET = '{opset}'\n"


def test_requirements_that_exclude_the_new_version_stop_the_promotion(dist: Path) -> None:
    wheel = make_wheel(dist, "demo", {}, version="1.0+rocm7.14.0", requires=("rocm[libraries]==7.14.*",))
    assert problems(dist, "7.15.0") == [
        (
            f"DIST/{wheel.name}: requires 'rocm[libraries]==7.14.*', but the new version is 7.15.0; expected a "
            "requirement that both the old and the new version satisfy. Build the wheel with a different requirement."
        ),
    ]


def test_a_version_range_that_would_become_empty_stops_the_promotion(dist: Path) -> None:
    requires = ("rocm[libraries]>=10.0.0rc1,<10.0.1",)
    wheel = make_wheel(dist, "demo", {}, version="1.0+rocm10.0.0rc1", requires=requires)
    (found,) = problems(dist, "10.0.1")
    assert found.startswith(
        f"DIST/{wheel.name}: requires 'rocm[libraries]<10.0.1,>=10.0.1', but the new version is 10.0.1; "
    )


def test_without_the_sdk_the_rocm_commit_comes_from_framework_requirements(dist: Path, tmp_path: Path) -> None:
    requires = ("rocm[libraries]==10.0.0.dev0+abc1234",)
    files = {"demo/_rocm_init.py": b"VERSION = '10.0.0.dev0+abc1234'\n"}
    make_wheel(dist, "demo", files, version="2.9.0+devrocm10.0.0.dev0.abc1234", requires=requires)
    PromoteJob(dist, NEW, tmp_path / "out").run()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["demo-2.9.0+rocm10.0.0-py3-none-linux_x86_64.whl"]
    assert headers(tmp_path / "out", "demo", "Requires-Dist") == ["Requires-Dist: rocm[libraries]==10.0.0"]
    assert member(tmp_path / "out", "demo", "_rocm_init.py") == "VERSION = '10.0.0'\n"


def test_a_version_with_an_epoch_is_refused_for_frameworks(dist: Path) -> None:
    wheel = make_wheel(dist, "demo", {}, version="2.9.0+rocm10.0.0rc1")
    assert problems(dist, "1!10.0.0") == [
        (
            f"--to: is 1!10.0.0, whose epoch can't be part of the version of {wheel.name}; expected a version without "
            "an epoch, such as 7.2.0"
        ),
    ]


def test_a_promoted_local_version_equals_a_build_of_the_new_version(tmp_path: Path) -> None:
    folders = {}
    for version in ("10.0.0.dev0+abc1234", NEW):
        folders[version] = tmp_path / version
        BuildJob(PlanJob(SAMPLE_SDK, options=PlanOptions(version=version)), folders[version]).run()
    PromoteJob(folders["10.0.0.dev0+abc1234"] / "dist", NEW, tmp_path / "out").run()
    built, promoted = (
        {path.name: path.read_bytes() for path in folder.iterdir()}
        for folder in (folders[NEW] / "dist", tmp_path / "out")
    )
    assert [name for name, data in promoted.items() if data != built[name]] == []


def test_frameworks_for_different_rocm_versions_are_refused(dist: Path) -> None:
    for version in ("1.0+rocm10.0.0rc1", "1.0+rocm10.0.0rc2"):
        make_wheel(dist, "demo", {}, version=version)
    make_wheel(dist, "numpy", {}, version="2.0")
    tag = "py3-none-linux_x86_64"
    assert problems(dist, NEW) == [
        (
            f"DIST: contains several versions: 10.0.0rc1: demo-1.0+rocm10.0.0rc1-{tag}.whl; 10.0.0rc2: "
            f"demo-1.0+rocm10.0.0rc2-{tag}.whl; 2.0: numpy-2.0-{tag}.whl; expected one version. Keep the files of one "
            "version in the folder, and move the others."
        ),
    ]


def test_targets_can_be_trimmed_without_a_new_version(everything: Path, tmp_path: Path) -> None:
    done = rocwheel("promote", everything, "--targets", "gfx906", "--output", tmp_path / "out")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, f"version {OLD} is unchanged, GPU targets: gfx906")
    names = sorted(path.name.partition("-")[0] for path in (tmp_path / "out").iterdir())
    assert [name for name in names if "device" in name] == [
        "amd_torch_device_gfx906",
        "amd_torchvision_device_gfx906",
        "rocm_sdk_device_gfx906",
    ]
    assert headers(tmp_path / "out", "torch", "Version", "Requires-Dist: amd", "Provides-Extra") == [
        "Version: 2.9.0+rocm10.0.0rc1",
        'Requires-Dist: amd-torch-device-gfx906 == 2.9.0+rocm10.0.0rc1; extra == "device-gfx906"',
        'Requires-Dist: amd-torch-device-gfx906 == 2.9.0+rocm10.0.0rc1; extra == "device-all"',
        "Provides-Extra: opt-einsum",
        "Provides-Extra: device-gfx906",
        "Provides-Extra: device-all",
    ]
    triton = f"triton-3.5.0+rocm10.0.0rc1-{TAG}.whl"
    assert (tmp_path / "out" / triton).read_bytes() == (everything / triton).read_bytes()
    audited = rocwheel("audit", "--json", tmp_path / "out")
    assert (audited.returncode, json.loads(audited.stdout)["findings"]) == (0, [])


def test_frameworks_without_the_sdk_are_trimmed_by_their_own_extras(frameworks: Path, tmp_path: Path) -> None:
    result = PromoteJob(frameworks, NEW, tmp_path / "out", ("gfx1030",)).run()
    assert result.targets == ("gfx1030",)
    names = sorted(path.name.partition("-")[0] for path in (tmp_path / "out").iterdir())
    assert [name for name in names if "device" in name] == [
        "amd_torch_device_gfx10",
        "amd_torch_device_gfx1030",
        "amd_torchvision_device_gfx10",
        "amd_torchvision_device_gfx1030",
    ]


def test_the_device_extra_of_a_dropped_target_is_redirected_to_a_kept_target(dist: Path, tmp_path: Path) -> None:
    rows = (("gfx906", "device"), ("gfx906", "device-gfx906"), ("gfx942", "device-gfx942"), ("gfx942", "device-all"))
    requires = tuple(f'demo-device-{target} == 1.0; extra == "{extra}"' for target, extra in rows)
    extras = ("device", "device-gfx906", "device-gfx942", "device-all")
    make_wheel(dist, "demo", {}, requires=requires, extras=extras)
    PromoteJob(dist, "", tmp_path / "out", ("gfx942",)).run()
    assert headers(tmp_path / "out", "demo", "Requires-Dist", "Provides-Extra") == [
        'Requires-Dist: demo-device-gfx942 == 1.0; extra == "device-gfx942"',
        'Requires-Dist: demo-device-gfx942 == 1.0; extra == "device-all"',
        'Requires-Dist: demo-device-gfx942 == 1.0; extra == "device"',
        "Provides-Extra: device",
        "Provides-Extra: device-gfx942",
        "Provides-Extra: device-all",
    ]


def test_frameworks_without_code_for_a_kept_target_are_refused(everything: Path, tmp_path: Path) -> None:
    dist = shutil.copytree(everything, tmp_path / "dist")
    rest = "has no device wheels for gfx90a; expected at least one of its targets: gfx906, gfx1030."
    assert problems(dist, NEW, "gfx90a") == [
        f"DIST/{name}+rocm10.0.0rc1-{TAG}.whl: {rest} Change --targets, or move the wheel."
        for name in ("torch-2.9.0", "torchvision-0.24.0")
    ]


def test_omitting_both_version_and_targets_is_refused(tmp_path: Path) -> None:
    done = rocwheel("promote", tmp_path, "--output", tmp_path / "out")
    assert (done.returncode, done.stderr) == (
        2,
        (
            "error: rocwheel promote: the option --to is missing. To keep the version and only remove targets, use "
            "--targets. See rocwheel promote --help.\n"
        ),
    )


def test_trimming_without_a_new_version_also_requires_target_packages(frameworks: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"has no packages for gfx90a; expected targets with packages: gfx906, gfx1030"
    ):
        PromoteJob(frameworks, "", tmp_path / "out", ("gfx90a",)).run()
