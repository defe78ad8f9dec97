"""The API of ``rocm_sdk``: finding, preloading, initialising."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sdk.installed import Installed, MakeEnvironment, MakeSet

pytestmark = pytest.mark.slow


ERROR = """
import rocm_sdk
try:
    {}
except Exception as e:
    print(type(e).__name__, e, sep="|")
"""


@pytest.fixture(scope="module")
def environment(make_set: MakeSet, make_environment: MakeEnvironment) -> Installed:
    environment = make_environment(make_set())
    environment.install("rocm[libraries]")
    return environment


def error(environment: Installed, code: str, **environ: str) -> str:
    return environment.evaluate(ERROR.format(code), **environ)


def test_libraries_are_found_in_the_requested_order(environment: Installed) -> None:
    printed = environment.evaluate(
        "import rocm_sdk; print(*rocm_sdk.find_libraries('hipsparse', 'amdhip64'), sep='\\n')"
    )
    assert printed.splitlines() == [
        f"{environment.site}/_rocm_sdk_libraries/lib/libhipsparse.so.1",
        f"{environment.site}/_rocm_sdk_core/lib/libamdhip64.so.6",
    ]


def test_a_missing_optional_library_is_left_out(environment: Installed) -> None:
    code = "import rocm_sdk; print([p.name for p in rocm_sdk.find_libraries('rocdxg', 'amdhip64')])"
    assert environment.evaluate(code) == "['libamdhip64.so.6']"


def test_an_unknown_library_is_refused_with_the_known_libraries(environment: Installed) -> None:
    assert error(environment, "rocm_sdk.find_libraries('hipsparce')") == (
        "ModuleNotFoundError|Unknown ROCm library 'hipsparce'. Known libraries: amdhip64, rocdxg, hipsparse"
    )


def test_a_library_missing_from_its_package_is_refused(make_set: MakeSet, make_environment: MakeEnvironment) -> None:
    environment = make_environment(make_set(lacking_library=True))
    environment.install("rocm[libraries]")
    assert error(environment, "rocm_sdk.find_libraries('rccl')") == (
        "FileNotFoundError|ROCm library 'rccl': nothing matches 'librccl.so*' in "
        f"{environment.site}/_rocm_sdk_libraries/lib. Reinstall the package."
    )


def test_preloaded_libraries_are_kept_once_by_name(environment: Installed) -> None:
    code = """
import rocm_sdk
rocm_sdk.preload_libraries("rocdxg", "hipsparse", "amdhip64")
first = dict(rocm_sdk._ALL_CDLLS)
rocm_sdk.preload_libraries("hipsparse")
print(list(first), first == rocm_sdk._ALL_CDLLS, first["hipsparse"].sparse())
"""
    assert environment.evaluate(code) == "['hipsparse', 'amdhip64'] True 6"


@pytest.mark.parametrize(("rtld_global", "visible"), [(True, "True"), (False, "False")])
def test_symbols_are_global_only_on_request(environment: Installed, rtld_global: bool, visible: str) -> None:
    code = f"""
import ctypes, rocm_sdk
rocm_sdk.initialize_process(preload_shortnames=["amdhip64"], rtld_global={rtld_global})
print(hasattr(ctypes.CDLL(None), "hip"))
"""
    assert environment.evaluate(code) == visible


@pytest.mark.parametrize("value", ["hipsparse,amdhip64", " hipsparse ; amdhip64;"])
def test_a_variable_adds_libraries_to_preload(environment: Installed, value: str) -> None:
    code = "import rocm_sdk; rocm_sdk.initialize_process(); print(*rocm_sdk._ALL_CDLLS)"
    assert environment.evaluate(code, ROCM_SDK_PRELOAD_LIBRARIES=value) == "hipsparse amdhip64"


def test_the_preload_variable_is_ignored_if_the_program_says_so(environment: Installed) -> None:
    code = "import rocm_sdk; rocm_sdk.initialize_process(env_override=False); print(*rocm_sdk._ALL_CDLLS)"
    assert environment.evaluate(code, ROCM_SDK_PRELOAD_LIBRARIES="hipsparse") == ""


def test_the_invalid_variable_is_named_in_the_error(environment: Installed) -> None:
    assert error(environment, "rocm_sdk.initialize_process()", ROCM_SDK_PRELOAD_LIBRARIES="nonsense") == (
        "RuntimeError|Correct or unset ROCM_SDK_PRELOAD_LIBRARIES='nonsense': Unknown ROCm library 'nonsense'. "
        "Known libraries: amdhip64, rocdxg, hipsparse"
    )


def test_unknown_future_arguments_are_ignored(environment: Installed) -> None:
    assert environment.evaluate("import rocm_sdk; print(rocm_sdk.initialize_process(future=1))") == "None"


@pytest.mark.parametrize("version", ["'7.2.0'", "'7.*'", "'*'", "re.compile('7[.]2')"])
def test_a_matching_version_passes(environment: Installed, version: str) -> None:
    code = f"import re; rocm_sdk.initialize_process(check_version={version}, fail_on_version_mismatch=True)"
    assert error(environment, code) == ""


@pytest.mark.parametrize(
    ("version", "shown"), [("'7.2'", "7.2"), ("'6.*'", "6.*"), ("re.compile('7[.]3')", "7[.]3")], ids=str
)
def test_a_mismatched_version_fails_on_request(environment: Installed, version: str, shown: str) -> None:
    code = f"import re; rocm_sdk.initialize_process(check_version={version}, fail_on_version_mismatch=True)"
    assert error(environment, code) == (
        f"RuntimeError|The program was compiled against a ROCm version matching {shown!r}, "
        "but this Python environment has ROCm 7.2.0."
    )


def test_a_mismatched_version_causes_a_warning_at_the_caller(environment: Installed) -> None:
    code = "import rocm_sdk\nrocm_sdk.initialize_process(check_version='6.*')"
    done = environment.run("python", "-c", code)
    assert done.stderr.startswith(
        "<string>:2: UserWarning: The program was compiled against a ROCm version matching '6.*', "
        "but this Python environment has ROCm 7.2.0. The program may fail."
    )


def test_import_defers_slow_modules(environment: Installed) -> None:
    names = ["argparse", "ctypes", "json", "pathlib", "re", "typing", "rocm_sdk._build_info", "rocm_sdk._process"]
    code = (
        f"import sys; before = set(sys.modules); import rocm_sdk; print({{*{names!r}}} & ({{*sys.modules}} - before))"
    )
    assert environment.evaluate(code) == "set()"


def test_the_names_that_frameworks_use_exist(environment: Installed) -> None:
    code = """
from rocm_sdk import __version__, find_libraries, initialize_process, preload_libraries
from rocm_sdk import _dist_info as di
import rocm_sdk
print(__version__, di.__version__, rocm_sdk.__all__)
print(di.ALL_PACKAGES["core"].get_py_package_name(), di.ALL_PACKAGES["libraries"].has_py_package())
print([name for name, package in di.ALL_PACKAGES.items() if name != "device" and package.has_py_package()])
print(di.ALL_PACKAGES["device"].get_dist_package_require("gfx906"), di.ALL_LIBRARIES["hipsparse"].package.logical_name)
print(di.AVAILABLE_TARGET_FAMILIES, di.LINUX_TARGET_FAMILIES, di.WINDOWS_TARGET_FAMILIES)
print(di.determine_target_family(), di.discover_current_target_family())
print(repr(di.get_target_family_platform_marker("gfx906")), di.build_install_requires())
print(di.build_per_target_extras()["device-gfx906"])
"""
    assert environment.evaluate(code, ROCM_BOOTSTRAP_FORCE_GFX_ARCH="gfx1100,gfx1030").splitlines() == [
        "7.2.0 7.2.0 ['__version__', 'find_libraries', 'initialize_process', 'preload_libraries']",
        "_rocm_sdk_core True",
        "['meta', 'core', 'libraries']",
        "rocm-sdk-device-gfx906==7.2.0 libraries",
        "['gfx906', 'gfx1030'] ['gfx906', 'gfx1030'] []",
        "gfx1030 gfx1030",
        "'' ['rocm-sdk-core==7.2.0']",
        "[\"rocm-sdk-device-gfx906==7.2.0; sys_platform == 'linux'\"]",
    ]


def test_a_device_package_is_present_only_if_its_own_target_is_installed(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set())
    environment.install("rocm[libraries,device-gfx906]")
    code = """
from rocm_sdk._dist_info import ALL_PACKAGES
device = ALL_PACKAGES["device"]
for target in ("gfx906", "gfx1030"):
    spec = device.get_py_package(target)
    print(device.has_py_package(target), spec and spec.name)
"""
    assert environment.evaluate(code) == "True _rocm_sdk_libraries\nFalse None"


@pytest.mark.parametrize("installed", [("gfx94X-dcgpu",), ("gfx94X-dcgpu", "gfx103X-dgpu")], ids=["one", "several"])
def test_family_libraries_are_found_despite_an_invalid_choice(
    make_set: MakeSet, make_environment: MakeEnvironment, installed: tuple[str, ...]
) -> None:
    families = (("gfx94X-dcgpu", ("gfx942",)), ("gfx103X-dgpu", ("gfx1030",)))
    environment = make_environment(make_set(families=families))
    environment.install("rocm[libraries]", ROCM_SDK_TARGET_FAMILY=",".join(installed))
    variables = {"ROCM_SDK_TARGET_FAMILY": "nope", "ROCM_BOOTSTRAP_FORCE_GFX_ARCH": "gfx1030"}
    found = environment.evaluate("import rocm_sdk; print(rocm_sdk.find_libraries('hipsparse')[0])", **variables)
    family = installed[-1].replace("-", "_")
    assert found == f"{environment.site}/_rocm_sdk_libraries_{family}/lib/libhipsparse.so.1"


def test_binaries_are_found_in_a_separate_platlib_folder(
    make_set: MakeSet, make_environment: MakeEnvironment, tmp_path: Path
) -> None:
    # Given a machine that keeps packages with binaries in lib64
    environment = make_environment(make_set())
    environment.install("rocm")
    environment.install("--target", str(tmp_path / "lib64"), "rocm[libraries]")
    environment.uninstall("rocm-sdk-core")
    code = "import rocm_sdk; print(rocm_sdk.find_libraries('hipsparse')[0])"
    found = environment.evaluate(f"import sys; sys.path.append({str(tmp_path / 'lib64')!r}); {code}")
    assert found == f"{tmp_path}/lib64/_rocm_sdk_libraries/lib/libhipsparse.so.1"
