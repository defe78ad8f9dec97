"""What PyTorch takes: the initializer against the installed SDK, the run path against CMake."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from rocwheel.core.errors import InputError
from rocwheel.environment.read_tree import read_tree
from rocwheel.frameworks.torch import (
    initializer,
    initializer_for,
    requirements_variable,
    run_path_entries,
    search_folders,
    torch_folder,
)
from rocwheel.targets.errors import UnknownTargetError
from rocwheel.targets.target_set import parse_target_set

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.frameworks.torch import VersionLock
    from rocwheel.repair.options import Mismatch
    from tests.frameworks.conftest import Compile

pytestmark = pytest.mark.slow

needs_x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the sample SDK is for x86-64")


@pytest.fixture(scope="module")
def site(sample_dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that the sample SDK is installed in."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--find-links", str(sample_dist)]
    command = [*pip, "--no-build-isolation", "--target", str(folder), "rocm[libraries]"]
    subprocess.run(command, check=True, env={**os.environ, "PIP_CONFIG_FILE": os.devnull})
    return folder


def use(text: str, site: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "_rocm_init.py").write_text(text)
    program = (
        "import _rocm_init; _rocm_init.initialize()\n"
        "print(*sorted({line.split('/')[-1].strip() for line in open('/proc/self/maps') if '_rocm_sdk' in line}))"
    )
    variables = {"PYTHONPATH": f"{site}:{folder}"}
    return subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=False)


@needs_x86_64
def test_the_initializer_loads_the_libraries_that_the_files_need(
    site: Path, sample_dist: Path, tmp_path: Path, compile_library: Compile
) -> None:
    source = "int hipGetDeviceCount(int *); int use(void) { int n; return hipGetDeviceCount(&n); }"
    compile_library(tmp_path / "own/_C.so", source, str(site / "_rocm_sdk_core/lib/libamdhip64.so.7"))
    text = initializer_for(read_tree([tmp_path / "own"]).loadable, "7.0.0", "exact")
    assert '    names = [\n        "amdhip64",\n    ]\n' in text
    done = use(text, site, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "libamdhip64.so.7" in done.stdout


@needs_x86_64
@pytest.mark.parametrize(
    ("version", "lock"),
    [
        ("7.0.0", "exact"),
        ("7.0", "exact"),
        ("7", "exact"),
        ("v7.0.0", "exact"),
        ("7.0.0.0", "exact"),
        ("7.0.9", "minor"),
    ],
)
def test_sdk_versions_that_match_are_accepted(site: Path, tmp_path: Path, version: str, lock: VersionLock) -> None:
    text = initializer(version, lock)
    checked = "\n".join(line for line in text.splitlines() if not line.startswith('        "'))
    assert use(checked, site, tmp_path).returncode == 0


@needs_x86_64
def test_the_initializer_fails_on_another_sdk_version(site: Path, tmp_path: Path) -> None:
    text = initializer("7.1.0", "minor")
    checked = "\n".join(line for line in text.splitlines() if not line.startswith('        "'))
    done = use(checked, site, tmp_path)
    assert done.returncode == 1
    assert "7.1.*" in done.stderr


@needs_x86_64
@pytest.mark.parametrize("version", ["7.0.1", "7.0.0rc1", "7.0.0.post1", "1!7.0.0", "7.0.0+local", "70.0"])
def test_an_exact_lock_rejects_every_other_version(site: Path, tmp_path: Path, version: str) -> None:
    text = initializer(version, "exact")
    checked = "\n".join(line for line in text.splitlines() if not line.startswith('        "'))
    done = use(checked, site, tmp_path)
    assert done.returncode == 1
    assert "but this Python environment has ROCm 7.0.0" in done.stderr


OTHER_SDK = """
import re, warnings
__version__ = "7.0.0"
def initialize_process(*, preload_shortnames=None, check_version=None, fail_on_version_mismatch=False):
    for name in preload_shortnames:
        if name not in _dist_info.ALL_LIBRARIES:
            raise ModuleNotFoundError(name)
    print(*preload_shortnames)
    assert isinstance(check_version, str), "a mismatch of a pattern ends with an UnboundLocalError"
    if not re.match("^" + re.escape(check_version).replace("\\\\*", ".*") + "$", __version__):
        if fail_on_version_mismatch:
            raise RuntimeError(check_version)
        warnings.warn(check_version)
from . import _dist_info
"""


@pytest.mark.parametrize(
    ("version", "lock", "mismatch", "status", "said"),
    [
        ("7.0", "exact", "fail", 0, ""),
        ("7.0.9", "minor", "fail", 0, ""),
        ("7.1.0", "exact", "fail", 1, "RuntimeError: 7.1.0"),
        ("7.1.0", "exact", "warn", 0, "UserWarning: 7.1.0"),
        ("7.1.0", "minor", "warn", 0, "UserWarning: 7.1.*"),
    ],
)
def test_the_initializer_works_with_an_older_reference_release(
    tmp_path: Path, version: str, lock: VersionLock, mismatch: Mismatch, status: int, said: str
) -> None:
    # Given packages of the reference, whose release has no names for amd_smi and others
    (tmp_path / "rocm_sdk").mkdir()
    (tmp_path / "rocm_sdk/__init__.py").write_text(OTHER_SDK)
    (tmp_path / "rocm_sdk/_dist_info.py").write_text("ALL_LIBRARIES = {'amdhip64': 1, 'hipblas': 2, 'hiprtc': 3}\n")
    done = use(initializer(version, lock, mismatch), tmp_path, tmp_path)
    assert done.returncode == status, done.stderr
    assert said in done.stderr
    assert bool(said) == bool(done.stderr)
    assert done.stdout.splitlines()[0] == "amdhip64 hiprtc hipblas"


@needs_x86_64
def test_the_initializer_can_warn_instead_of_fail_on_another_sdk_version(site: Path, tmp_path: Path) -> None:
    done = use(initializer("7.1.0", "exact", "warn"), site, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "UserWarning: The program was compiled against a ROCm version matching '7.1.0'" in done.stderr
    assert "libamdhip64.so.7" in done.stdout


@pytest.mark.parametrize(
    ("version", "installed"),
    [
        ("7.14", "7.14.0"),
        ("7.14.0", "7.14.0+local1"),
        ("7.14.0a20260101", "7.14.0a20260101"),
        ("7.14.0.dev1", "7.14.0.dev1+abc"),
        ("1!7.10", "1!7.10.0"),
        ("7.14.0", "7.14.0.1"),
        ("7.14.0", "7.140"),
        ("7.14.0a1", "7.14.0a12"),
    ],
)
def test_the_initializer_accepts_the_same_versions_as_the_requirement(version: str, installed: str) -> None:
    (pattern,) = re.findall(r're\.match\(r"(.*)", rocm_sdk', initializer(version, "exact"))
    requirement = requirements_variable(version, "exact").partition("'")[2].rstrip("'\n")
    satisfies = Requirement(requirement).specifier.contains(installed, prereleases=True)
    assert (re.match(pattern, installed) is not None) == satisfies


@pytest.mark.parametrize(
    ("lock", "targets", "text"),
    [
        ("exact", "", "PYTORCH_EXTRA_INSTALL_REQUIREMENTS='rocm[libraries,device]==7.14.0'\n"),
        ("minor", "", "PYTORCH_EXTRA_INSTALL_REQUIREMENTS='rocm[libraries,device]==7.14.*'\n"),
        (
            "exact",
            "gfx90a:xnack+;gfx942;gfx90a:xnack-",
            "PYTORCH_EXTRA_INSTALL_REQUIREMENTS='rocm[libraries,device-gfx90a,device-gfx942]==7.14.0'\n",
        ),
        ("exact", "all", "PYTORCH_EXTRA_INSTALL_REQUIREMENTS='rocm[libraries,device-all]==7.14.0'\n"),
    ],
)
def test_the_requirement_contains_the_packages_and_the_version(lock: VersionLock, targets: str, text: str) -> None:
    chosen = parse_target_set(targets) if targets else None
    assert requirements_variable("7.14.0", lock, chosen) == text


def test_the_requirement_can_be_parsed_by_packaging() -> None:
    value = subprocess.run(
        ["sh", "-c", f"{requirements_variable('7.14.0', 'minor').strip()}; echo $PYTORCH_EXTRA_INSTALL_REQUIREMENTS"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert "7.14.3" in Requirement(value).specifier


def test_a_malformed_version_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        requirements_variable("newest", "exact")
    assert str(caught.value) == "--rocm: is 'newest'; expected a version such as 7.14.0 (PEP 440)"


def test_files_that_need_no_sdk_library_are_refused(tmp_path: Path, compile_library: Compile) -> None:
    compile_library(tmp_path / "own/_C.so", "int nothing;")
    with pytest.raises(InputError, match="doesn't need any of the SDK's public libraries"):
        initializer_for(read_tree([tmp_path / "own"]).loadable, "7.0.0", "exact")


def test_the_run_path_points_from_the_torch_folder_to_the_sdk() -> None:
    assert run_path_entries(["_rocm_sdk_core/lib"]) == ("$ORIGIN", "$ORIGIN/../../_rocm_sdk_core/lib")
    assert run_path_entries(["_rocm_sdk_core/lib"], "ext") == ("$ORIGIN", "$ORIGIN/../_rocm_sdk_core/lib")
    assert torch_folder() == "torch/lib"


@pytest.mark.parametrize("folder", ["../x", "/usr/lib", "a/../../b"])
def test_a_folder_outside_site_packages_is_refused(folder: str) -> None:
    with pytest.raises(InputError, match=r"^--at: is .*; expected a folder in site-packages, such as torch/lib$"):
        run_path_entries(["_rocm_sdk_core/lib"], folder)


def test_a_family_has_its_own_libraries_folder() -> None:
    assert search_folders("gfx94X-dcgpu")[0] == "_rocm_sdk_libraries_gfx94X_dcgpu/lib"


@pytest.mark.parametrize("family", ["a b", "a/b", "$HOME", "gfx90a:x", "é"])
def test_a_malformed_family_is_refused(family: str) -> None:
    with pytest.raises(InputError) as caught:
        search_folders(family)
    assert str(caught.value) == f"--family: is {family!r}; expected a target family such as gfx94X-dcgpu"


@pytest.mark.parametrize(
    ("family", "rest"),
    [
        ("gfx99999", "Similar names: gfx909."),
        ("gfx94x-dcgpu", "Similar names: gfx94X-dcgpu"),
        ("gfx-mine", ""),
    ],
)
def test_an_unknown_family_that_looks_like_an_amd_family_is_refused(family: str, rest: str) -> None:
    with pytest.raises(UnknownTargetError) as caught:
        search_folders(family)
    assert str(caught.value).startswith(f"--family: {family!r} isn't a known GPU target or family. {rest}")


@pytest.mark.parametrize("family", ["gfx942", "gfx110X-all", "mine"])
def test_a_target_or_custom_word_is_accepted_as_a_family(family: str) -> None:
    assert search_folders(family)[0] == f"_rocm_sdk_libraries_{family.replace('-', '_')}/lib"


def test_a_library_can_be_directly_in_site_packages() -> None:
    assert run_path_entries(["_rocm_sdk_core/lib"], "") == ("$ORIGIN", "$ORIGIN/_rocm_sdk_core/lib")


@pytest.mark.parametrize(
    ("version", "locked"),
    [
        ("7.14.0a20260101", "7.14.0a20260101"),
        ("7.14.0.dev1+local", "7.14.0.dev1"),
        ("1!7.14.0", "1!7.14.*"),
        ("7.14.0.post1", "7.14.*"),
    ],
)
def test_a_version_satisfies_the_requirement_generated_for_it(version: str, locked: str) -> None:
    made = requirements_variable(version, "minor").partition("'")[2].rstrip("'\n")
    assert made == f"rocm[libraries,device]=={locked}"
    assert Requirement(made).specifier.contains(version, prereleases=True)
