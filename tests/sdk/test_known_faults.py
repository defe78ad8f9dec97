"""Faults of other packagings of ROCm that are not to occur here, numbered and named as their users met them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.sdk.installed import BIN, FROM_INDEX, run
from tests.support.interpreters import require_python
from tests.support.loopback import served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType

    from tests.sdk.installed import MakeEnvironment, MakeSet

    Load = Callable[..., Callable[[str], ModuleType]]

pytestmark = pytest.mark.slow

TOOLS = pytest.mark.parametrize("tool", ["pip", "uv"])
FIND = "import rocm_sdk; print(rocm_sdk.find_libraries('hipsparse')[0].name)"


@TOOLS
def test_01_uninstalling_a_device_package_keeps_the_libraries_complete(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str
) -> None:
    environment = make_environment(make_set(), tool)
    environment.install("rocm[libraries,device-gfx906,device-gfx1030]")
    environment.uninstall("rocm-sdk-device-gfx906")
    assert environment.evaluate(FIND) == "libhipsparse.so.1"
    environment.run("rocm-sdk", "test")


def test_02_four_concurrent_compilers_right_after_install_all_succeed(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set(devel=".xz"))
    environment.install("rocm[devel]")
    processes = [subprocess.Popen([str(environment.path / "bin/hipcc")], stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]


@pytest.fixture
def serve() -> Iterator[Callable[[Path], str]]:
    """Yield a function that returns the address at which a folder of distributions is served as a page of links."""
    with ExitStack() as stack:
        yield lambda folder: f"{stack.enter_context(served(folder))}/"


def test_03_pip_cache_does_not_override_explicit_targets(
    make_set: MakeSet, make_environment: MakeEnvironment, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    # Given the selector wheel behind a URL, and a cache of pip that both installs share
    address = serve(make_set(selector="wheel"))
    for target in ("gfx906", "gfx1030"):
        environment = make_environment(make_set(selector="wheel"), "pip", cache=tmp_path / "cache")
        environment.installer("install", "--no-index", "--find-links", address, f"rocm[device-{target}]")
        assert f"rocm_sdk_device_{target}" in environment.dists()


def test_03_a_choice_that_pip_took_from_its_cache_is_reported(
    make_set: MakeSet, make_environment: MakeEnvironment, tmp_path: Path
) -> None:
    # Given an sdist that pip has built before, for another choice
    for target in ("gfx906", "gfx1030"):
        environment = make_environment(make_set(), "pip", cache=tmp_path / "cache")
        environment.install("rocm[device]", ROCM_SDK_TARGET_FAMILY=target)
    assert "rocm_sdk_device_gfx906" in environment.dists(), "pip built anew: nothing to report"
    done = environment.run("rocm-sdk", "test", check=False, ROCM_SDK_TARGET_FAMILY="gfx1030")
    assert done.returncode == 1
    assert "gfx1030 chosen by ROCM_SDK_TARGET_FAMILY=gfx1030, but " in done.stdout
    assert "has device code for gfx906" in done.stdout
    assert "--no-cache-dir" in done.stdout


@TOOLS
def test_04_device_without_a_gpu_never_takes_the_first_target(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str
) -> None:
    environment = make_environment(make_set(), tool)
    assert environment.install("rocm[device]", check=False).returncode != 0
    assert environment.dists() == []


def lock(project: Path, dist: Path, extra: str) -> subprocess.CompletedProcess[str]:
    text = f'[project]\nname = "p"\nversion = "0"\nrequires-python = ">=3.10"\ndependencies = ["rocm[{extra}]"]\n'
    (project / "pyproject.toml").write_text(text)
    options = ["--no-index", "--find-links", str(dist), "--no-cache", "--project", str(project)]
    return run([str(BIN / "uv"), "lock", "--python", sys.executable, *options], check=False)


def test_04_uv_lock_does_not_freeze_an_unchosen_target(make_set: MakeSet, tmp_path: Path) -> None:
    done = lock(tmp_path, make_set(), "device")
    assert done.returncode != 0
    assert "no.amd.gpu.was.found" in "".join(done.stderr.split())
    assert not (tmp_path / "uv.lock").exists()


def test_04_uv_locks_the_targets_named_by_selector_wheel_extras(make_set: MakeSet, tmp_path: Path) -> None:
    assert lock(tmp_path, make_set(selector="wheel"), "libraries,device-gfx1030").returncode == 0
    assert 'name = "rocm-sdk-device-gfx1030"' in (tmp_path / "uv.lock").read_text()


@TOOLS
@pytest.mark.parametrize("selector", ["sdist", "wheel"])
def test_05_a_target_without_packages_is_refused_instead_of_only_causing_a_warning(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str, selector: str
) -> None:
    environment = make_environment(make_set(selector=selector), tool)
    done = environment.install("rocm[device-gfx1100]", check=False)
    assert done.returncode != 0
    assert "gfx1100.is.not.in.this.release" in "".join(f"{done.stdout}{done.stderr}".split())


@TOOLS
def test_06_sdist_builds_without_an_index(make_set: MakeSet, make_environment: MakeEnvironment, tool: str) -> None:
    environment = make_environment(make_set(), tool)
    environment.install("rocm")
    assert environment.run("rocm-sdk", "version").stdout == "7.2.0\n"


def test_07_a_missing_package_is_reported_with_the_install_command(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set())
    environment.install("rocm")
    done = environment.run("python", "-c", FIND, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: ROCm libraries not installed: hipsparse (in the package libraries). "
        f'Install with: pip install "rocm[libraries]==7.2.0" {FROM_INDEX}'
    )


def test_07_a_version_pattern_that_does_not_match_causes_a_warning(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set())
    environment.install("rocm")
    code = "import re, rocm_sdk; rocm_sdk.initialize_process(check_version=re.compile('9[.]'))"
    assert "UserWarning: The program was compiled against a ROCm version matching '9[.]'" in (
        environment.run("python", "-c", code).stderr
    )


def test_08_a_script_run_through_a_link_finds_its_neighbors(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    # Given a script in libexec and a link to it in bin
    environment = make_environment(make_set(extra_devel=(("bin/tool", "../libexec/tool"),)))
    environment.install("rocm[devel]")
    environment.run("rocm-sdk", "init")
    assert (environment.root / "bin/tool").resolve() == environment.root / "libexec/tool"
    assert subprocess.check_output([environment.root / "bin/tool"], text=True) == "tool\n"


def test_10_link_kinds_do_not_depend_on_the_order_in_the_archive(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    kinds = []
    for reverse in (False, True):
        environment = make_environment(make_set(reverse_devel=reverse))
        environment.install("rocm[devel]")
        environment.run("rocm-sdk", "init")
        paths = sorted(environment.root.rglob("*"))
        kinds.append([(path.relative_to(environment.root), path.is_symlink()) for path in paths])
    assert kinds[0] == kinds[1]


def test_11_devel_without_its_link_targets_is_refused_and_keeps_its_archive(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set(loose_devel=True))
    environment.install("rocm[devel]")
    done = environment.run("rocm-sdk", "init", check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "rocm-sdk: error: The ROCm development files link to packages that are not installed: _rocm_sdk_libraries. "
        f'Install with: pip install "rocm[devel,libraries]==7.2.0" {FROM_INDEX}\n'
    )
    assert not environment.root.exists()
    environment.install("rocm[libraries]")
    environment.run("rocm-sdk", "init")


@TOOLS
def test_11_devel_reports_that_its_libraries_were_uninstalled(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str
) -> None:
    environment = make_environment(make_set(), tool)
    environment.install("rocm[devel]")
    environment.run("rocm-sdk", "init")
    environment.uninstall("rocm-sdk-libraries")
    done = environment.run("hipcc", check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "hipcc: The ROCm development files link to packages that are not installed: _rocm_sdk_libraries. "
        f'Install with: pip install "rocm[devel,libraries]==7.2.0" {FROM_INDEX}\n'
    )


def test_12_the_prefix_is_known_without_devel(make_set: MakeSet, make_environment: MakeEnvironment) -> None:
    environment = make_environment(make_set())
    environment.install("rocm")
    assert environment.run("rocm-sdk", "path", "--root").stdout == f"{environment.site}/_rocm_sdk_core\n"


@TOOLS
def test_15_uninstalling_devel_removes_its_whole_tree(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str
) -> None:
    environment = make_environment(make_set(), tool)
    environment.install("rocm[devel,device-gfx906]")
    environment.run("rocm-sdk", "init")
    environment.uninstall("rocm-sdk-devel")
    assert [name for name in environment.files() if name.startswith(("_rocm_sdk_devel", "rocm_sdk_devel"))] == []


def test_16_the_archive_is_removed_after_expansion(make_set: MakeSet, make_environment: MakeEnvironment) -> None:
    environment = make_environment(make_set())
    environment.install("rocm[devel]")
    environment.run("rocm-sdk", "init")
    assert list((environment.site / "rocm_sdk_devel").glob("_devel.tar*")) == []


def test_18_console_scripts_exist_only_for_programs_in_the_package(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set())
    environment.install("rocm[profiler]")
    scripts = {path.name for path in (environment.path / "bin").iterdir()}
    assert {"amdclang++", "hipcc", "rocm-sdk", "rocminfo", "rocprof-compute"} <= scripts
    assert not {"gone", "rocgdb", "rocpd"} & scripts


def test_a_leftover_tree_does_not_prevent_expansion(make_set: MakeSet, make_environment: MakeEnvironment) -> None:
    environment = make_environment(make_set())
    environment.install("rocm[devel]")
    environment.root.mkdir()
    (environment.root / "__init__.py").touch()
    environment.run("rocm-sdk", "init")
    assert (environment.root / "lib/cmake/hip/hip-config.cmake").exists()


def test_a_device_package_installed_by_the_same_process_is_found_at_once(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    # Given a process whose import caches are older than the package
    environment = make_environment(make_set())
    environment.install("rocm[devel]")
    install = ["pip", "install", "-q", "--no-index", "--find-links", str(environment.dist), "--no-cache"]
    command = [str(BIN / "uv"), *install, "--python", str(environment.python), "rocm-sdk-device-gfx906"]
    code = f"""
import subprocess
from rocm_sdk._devel import get_devel_root
before = list(get_devel_root().rglob("*gfx906.co"))
subprocess.run({command!r}, check=True)
print(len(before), len(list(get_devel_root().rglob("*gfx906.co"))))
"""
    assert environment.evaluate(code) == "0 1"


def test_several_gpus_are_selected_in_node_order(load_sdk: Load) -> None:
    modules = load_sdk(devices=("gfx1030", "gfx906", "gfx90a"))
    system = modules("rocm_sdk._system").System(environ={"ROCM_BOOTSTRAP_FORCE_GFX_ARCH": "gfx90a,gfx906,gfx1030"})
    assert modules("rocm_sdk._select").select(system).families == ("gfx90a", "gfx906", "gfx1030")


def test_features_of_a_gpu_do_not_hide_its_packages(load_sdk: Load) -> None:
    modules = load_sdk(devices=("gfx90a",))
    system = modules("rocm_sdk._system").System(environ={"ROCM_BOOTSTRAP_FORCE_GFX_ARCH": "gfx90a:xnack-"})
    assert modules("rocm_sdk._select").select(system).families == ("gfx90a",)


def test_a_choice_cannot_inject_code_into_the_package(make_set: MakeSet, make_environment: MakeEnvironment) -> None:
    hostile = "gfx906'; import os; os.abort(); '"
    done = make_environment(make_set()).install("rocm", check=False, ROCM_SDK_TARGET_FAMILY=hostile)
    assert "has no packages for gfx906', import, os" in done.stderr


def test_every_script_respects_the_nonce_in_module_names(make_set: MakeSet, make_environment: MakeEnvironment) -> None:
    environment = make_environment(make_set(nonce="_abc"))
    environment.install("rocm[devel,profiler]")
    assert environment.run("rocminfo").stdout == f"script {environment.site}/_rocm_sdk_core_abc/bin\n"
    assert environment.run("hipcc").stdout == f"script {environment.root}/bin\n"
    assert f"{environment.site}/_rocm_sdk_core_abc/lib" in environment.run("rocprof-compute").stdout


def test_paths_with_commas_and_spaces_are_quoted_in_record(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set())
    environment.install("rocm[devel]")
    environment.run("rocm-sdk", "init")
    assert '\n"_rocm_sdk_devel/include/hip/hip, runtime.h",sha256=' in (
        next(environment.site.glob("rocm_sdk_devel-*/RECORD")).read_text()
    )


def test_a_library_in_both_trees_is_loaded_once_if_hard_links_became_copies(
    make_set: MakeSet, make_environment: MakeEnvironment, tmp_path: Path
) -> None:
    # Given an image layer: links stay links, and every hard link is a file of its own
    environment = make_environment(make_set())
    environment.install("rocm[devel]", "--link-mode=copy")
    environment.run("rocm-sdk", "init")
    copy = tmp_path / "copy"
    shutil.copytree(environment.site, copy, symlinks=True)
    pair = ("_rocm_sdk_devel", "_rocm_sdk_libraries")
    devel, libraries = ((copy / package / "lib/libhipsparse.so.1").stat() for package in pair)
    assert devel.st_ino == libraries.st_ino


def test_an_environment_path_with_spaces_works(make_set: MakeSet, make_environment: MakeEnvironment) -> None:
    environment = make_environment(make_set())
    assert " " in str(environment.path)
    environment.install("rocm[devel]")
    environment.run("rocm-sdk", "test")


@pytest.mark.deep
@pytest.mark.parametrize("version", ["3.9", "3.10", "3.12", "3.13", "3.14"])
def test_packages_work_on_every_python_version(
    make_set: MakeSet, make_environment: MakeEnvironment, version: str
) -> None:
    environment = make_environment(make_set(devel=".xz"), python=str(require_python(version)))
    environment.install("rocm[libraries,devel,device-all,profiler]")
    environment.run("rocm-sdk", "test")
    environment.run("hipcc")
