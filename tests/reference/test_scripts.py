"""What scripts of the reference's users read and call, on installed packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.demo import SAMPLE_SDK
from tests.sdk.installed import BIN, run
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sdk.installed import Installed

pytestmark = pytest.mark.slow

BUILD_SCRIPT = """
set -e
rocwheel build \\
    --artifact-dir "$BUILD_DIR" \\
    --dest-dir "$PYTHON_PACKAGE_ROOT" \\
    --version "10.0.0+mi50.5" \\
    --linux-amdgpu-families gfx906 \\
    --no-wheel-compression
ls "${PYTHON_PACKAGE_ROOT}/dist"
"""

TEST_MODULES = """
import sys, unittest, rocm_sdk.tests
rocm_sdk.tests.__path__.append(sys.argv[1])
unittest.main("rocm_sdk.tests.self_test_of_the_reference", argv=["tests"])
"""


def test_build_scripts_of_users_run_with_only_the_packager_name_replaced(tmp_path: Path) -> None:
    variables = {"BUILD_DIR": str(SAMPLE_SDK), "PYTHON_PACKAGE_ROOT": str(tmp_path), "PATH": f"{BIN}:/usr/bin:/bin"}
    tag = "manylinux_2_28_x86_64"
    done = run(["sh", "-c", BUILD_SCRIPT], environ=variables | {"ROCM_SDK_WHEEL_PLATFORM_TAG": tag})
    assert f"rocm_sdk_core-10.0.0+mi50.5-py3-none-{tag}.whl\n" in done.stdout
    assert "rocm-10.0.0+mi50.5.tar.gz\n" in done.stdout
    assert done.stderr.startswith("note: --no-wheel-compression is now --level 0\n")


def test_the_reference_test_modules_pass_without_a_gpu(sdk: Installed) -> None:
    path = f"{sdk.path}/bin:/usr/bin:/bin"
    folder = str(ROOT / "tests/reference")
    done = sdk.run("python", "-c", TEST_MODULES, folder, PATH=path, PYTHONDONTWRITEBYTECODE="1", check=False)
    assert done.stderr.endswith("\nOK\n"), done.stdout + done.stderr


def test_the_libraries_folder_is_found_at_run_time_like_frameworks_do(sdk: Installed) -> None:
    # As programs do that set paths for hipBLASLt: everything through one import.
    code = """
import os, rocm_sdk
family = rocm_sdk._dist_info.determine_target_family()
spec = rocm_sdk._dist_info.ALL_PACKAGES["libraries"].get_py_package(family)
print(family, os.path.dirname(spec.origin))
"""
    assert sdk.evaluate(code) == f"gfx906 {sdk.site}/_rocm_sdk_libraries"


def test_libraries_are_found_through_the_table_entries_like_packager_hooks_do(sdk: Installed) -> None:
    code = """
import importlib, platform
from pathlib import Path
from rocm_sdk import _dist_info as di
for name in ("amdhip64", "hipblas"):
    entry = di.ALL_LIBRARIES[name]
    windows = platform.system() == "Windows"
    family = di.determine_target_family() if entry.package.is_target_specific else None
    root = Path(importlib.import_module(entry.package.get_py_package_name(family)).__file__).parent
    folder = root / (entry.windows_relpath if windows else entry.posix_relpath)
    print(sorted(folder.glob(entry.dll_pattern if windows else entry.so_pattern))[0])
"""
    found = sdk.evaluate("import rocm_sdk; print(*rocm_sdk.find_libraries('amdhip64', 'hipblas'), sep='\\n')")
    assert sdk.evaluate(code) == found


@pytest.mark.parametrize("module", ["rocm_sdk_core", "rocm_sdk_libraries", "rocm_sdk_devel", "rocm_profiler"])
def test_each_package_knows_the_other_packages_through_its_own_dist_info(sdk: Installed, module: str) -> None:
    code = f"""
import importlib
facts = importlib.import_module("{module}._dist_info")
print(facts.__version__, repr(facts.PY_PACKAGE_SUFFIX_NONCE), getattr(facts, "nothing", "absent"))
for name in ("core", "devel", "profiler"):
    entry = getattr(facts, "ALL_PACKAGES", {{}})[name]
    folder = "_" + entry.dist_package_template.replace("-", "_") + facts.PY_PACKAGE_SUFFIX_NONCE
    print(entry.pure_py_package_name, folder)
"""
    assert sdk.evaluate(code).splitlines() == [
        "7.0.0 '' absent",
        "rocm_sdk_core _rocm_sdk_core",
        "rocm_sdk_devel _rocm_sdk_devel",
        "rocm_profiler _rocm_profiler",
    ]


def test_a_package_without_the_selector_knows_only_its_own_facts(core_only: Installed) -> None:
    code = """
import sys
sys.modules["rocm_sdk"] = None  # as when it isn't installed
from rocm_sdk_core import _dist_info as facts
print(facts.__version__, repr(facts.PY_PACKAGE_SUFFIX_NONCE), getattr(facts, "ALL_PACKAGES", "absent"))
"""
    assert core_only.evaluate(code) == "7.0.0 '' absent"


def test_the_device_package_template_has_the_placeholder_of_the_reference(sdk: Installed) -> None:
    code = """
from rocm_sdk import _dist_info as di
device = di.ALL_PACKAGES["device"]
print(device.dist_package_template.format(target_family=di.determine_target_family()), device.is_target_specific)
"""
    assert sdk.evaluate(code) == "rocm-sdk-device-gfx906 True"
