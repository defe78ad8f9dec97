"""``import rocm_sdk``: what it tells, what it loads and what it leaves alone."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rocwheel
from tests.reference.conftest import build, shared, write_artifact
from tests.sdk.installed import BIN, FROM_INDEX

if TYPE_CHECKING:
    from tests.reference.conftest import Compile, MakeEnvironment
    from tests.sdk.installed import Installed

pytestmark = pytest.mark.slow

LOADED = """
print(sorted({line.split("/")[-1].strip() for line in open("/proc/self/maps") if "_rocm_" in line}))
"""
LATE_INSTALL = """
import os, pathlib, subprocess, sys
import rocm_sdk
site = pathlib.Path(rocm_sdk.__file__).parents[1]
time = site.stat().st_mtime_ns
try:
    rocm_sdk.find_libraries("hipsparse")
except ModuleNotFoundError:
    subprocess.run(sys.argv[1:], check=True, capture_output=True)
    os.utime(site, ns=(time, time))
rocm_sdk.preload_libraries("hipsparse")
from rocm_sdk._devel import get_devel_root
print(rocm_sdk.find_libraries("hipsparse")[0].name, get_devel_root().name)
"""


def test_a_library_of_a_missing_package_is_an_import_error_with_the_install_command(
    core_only: Installed,
) -> None:
    code = (
        "import rocm_sdk\n"
        "try: rocm_sdk.find_libraries('amdhip64', 'hipsparse')\n"
        "except ModuleNotFoundError as e: print(e)"
    )
    assert core_only.evaluate(code) == (
        "ROCm libraries not installed: hipsparse (in the package libraries). "
        f'Install with: pip install "rocm[libraries]==7.0.0" {FROM_INDEX}'
    )


@pytest.mark.parametrize(
    ("wanted", "shown"), [("re.compile('8[.]')", "'8[.]'"), ("'6.*'", "'6.*'")], ids=["pattern", "text"]
)
def test_a_version_mismatch_warns_or_fails(core_only: Installed, wanted: str, shown: str) -> None:
    text = (
        f"The program was compiled against a ROCm version matching {shown}, but this Python environment has ROCm 7.0.0."
    )
    code = (
        "import re, warnings, rocm_sdk\n"
        "warnings.simplefilter('error')\n"
        f"try: rocm_sdk.initialize_process(check_version={wanted}, fail_on_version_mismatch=FAIL)\n"
        "except (RuntimeError, UserWarning) as e: print(type(e).__name__, e)"
    )
    assert core_only.evaluate(code.replace("FAIL", "True")) == f"RuntimeError {text}"
    assert core_only.evaluate(code.replace("FAIL", "False")) == f"UserWarning {text} The program may fail."


def test_importing_rocm_sdk_loads_no_library(sdk: Installed) -> None:
    assert sdk.evaluate(f"import rocm_sdk\n{LOADED}") == "[]"


def test_preloading_loads_only_the_requested_library_and_its_dependencies(sdk: Installed) -> None:
    code = "import rocm_sdk; rocm_sdk.initialize_process(preload_shortnames=['amd_comgr'])"
    assert sdk.evaluate(f"{code}\n{LOADED}") == "['libLLVM.so.22.0', 'libamd_comgr.so.3']"


def test_packages_installed_later_are_found_by_the_same_process(dist: Path, make_environment: MakeEnvironment) -> None:
    # Given a process whose import system has read the folder, and sees no later time on it
    environment = make_environment(dist)
    environment.install("rocm")
    uv = [str(BIN / "uv"), "pip", "install", "--no-index", "--no-cache"]
    install = [*uv, "--find-links", str(dist), "--python", str(environment.python), "rocm[devel]"]
    assert environment.run("python", "-c", LATE_INSTALL, *install).stdout == "libhipsparse.so.4 _rocm_sdk_devel\n"


def test_libraries_in_the_packages_take_precedence_over_ld_library_path(
    sdk: Installed, compile_c: Compile, tmp_path: Path
) -> None:
    # Given another libamd_comgr.so.3 in LD_LIBRARY_PATH, which libhiprtc needs
    other = compile_c("libamd_comgr.so.3", "int other(void) { return 0; }", *shared("libamd_comgr.so.3"))
    code = f"import rocm_sdk; rocm_sdk.preload_libraries('hiprtc')\n{LOADED}"
    loaded = sdk.evaluate(code, LD_LIBRARY_PATH=str(other.parent))
    assert "libamd_comgr.so.3" in loaded


@pytest.mark.parametrize("name", ["libamd_smi.so", "libhiprtc.so", "libhsa-runtime64.so"])
def test_opening_an_unversioned_name_loads_the_versioned_library(sdk: Installed, name: str) -> None:
    code = f"import ctypes; ctypes.CDLL({str(sdk.site / '_rocm_sdk_core/lib' / name)!r})\n{LOADED}"
    assert f"'{name}." in sdk.evaluate(code)


def test_a_library_can_open_another_by_its_unversioned_name(
    small_sdk: Path, tmp_path: Path, compile_c: Compile, make_environment: MakeEnvironment
) -> None:
    # Given a library that calls dlopen with a name that only development packages used to have
    text = '#include <dlfcn.h>\nvoid *opened(void) { return dlopen("libamdhip64.so", RTLD_NOW); }'
    opener = compile_c("librccl.so.1", text, *shared("librccl.so.1"))
    write_artifact(small_sdk, "rccl_lib_generic", {"lib/librccl.so.1": opener})
    environment = make_environment(build(small_sdk, tmp_path))
    environment.install("rocm[libraries]")
    path = environment.site / "_rocm_sdk_libraries/lib/librccl.so.1"
    code = (
        f"import ctypes; opened = ctypes.CDLL({str(path)!r}).opened; opened.restype = ctypes.c_void_p\n"
        "print(ctypes.CDLL(None, handle=opened()).hip())"
    )
    assert environment.evaluate(code) == "7"


def test_a_folder_named_like_a_library_is_ignored(
    small_sdk: Path, tmp_path: Path, make_environment: MakeEnvironment
) -> None:
    write_artifact(small_sdk, "core-ocl_lib_generic", {"lib/libamdhip64.so.0/note": b"", "lib/plugins.so/note": b""})
    environment = make_environment(build(small_sdk, tmp_path))
    environment.install("rocm[libraries]")
    code = "import rocm_sdk; print(rocm_sdk.find_libraries('amdhip64')[0].name)"
    assert environment.evaluate(code) == "libamdhip64.so.7"
    environment.run("rocm-sdk", "test")


def test_the_self_test_passes_without_a_gpu_and_reports_what_it_skipped(sdk: Installed) -> None:
    output = sdk.run("rocm-sdk", "test", ROCM_BOOTSTRAP_FORCE_GFX_ARCH="").stdout
    assert "left out  all: GPUs are served by the packages installed: no AMD GPU was found\n" in output


def test_the_shipped_source_is_valid_python_3_9() -> None:
    files = sorted((Path(rocwheel.__file__).parent / "sdk").rglob("*.py"))
    assert len(files) > 20
    for file in files:
        ast.parse(file.read_text(), str(file), feature_version=(3, 9))
