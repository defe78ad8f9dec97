"""XLA with the patch for ROCM_WHEEL_RPATH, and rocm-jax's configs: real Bazel links a library with XLA's toolchain."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rocwheel.frameworks.jax.migrate import rocm_jax_proposal
from tests.frameworks.bazel_workspace import EXAMPLE, NEEDS_BAZEL
from tests.support.bazel import STARTUP

XLA = "ROCWHEEL_XLA_CHECKOUT"
"""The variable with a folder that has XLA's third_party/gpus, at the commit in the checkout of rocm-jax."""

CLANG = next((str(path) for path in sorted(Path("/usr/lib").glob("llvm-*/bin/clang"))), "")

pytestmark = [
    pytest.mark.slow,
    *NEEDS_BAZEL,
    pytest.mark.skipif(XLA not in os.environ, reason=f"no checkout of XLA: set {XLA}"),
    pytest.mark.skipif(not CLANG, reason="no clang in /usr/lib/llvm-*"),
]

RUN_PATH = [
    "$ORIGIN/../rocm/lib",
    "$ORIGIN/../rocm/lib/rocm_sysdeps/lib",
    "$ORIGIN/../../rocm/lib",
    "$ORIGIN/../../rocm/lib/rocm_sysdeps/lib",
    "/opt/rocm/lib",
    "/opt/rocm/lib/rocm_sysdeps/lib",
]
"""The run path that patchelf set in the wheels at the commit."""

FILES = {
    "WORKSPACE": """\
workspace(name = "jax_rocm_plugin")
local_repository(name = "bazel_skylib", path = "skylib")
local_repository(name = "rules_cc", path = "rules_cc")
local_repository(name = "rules_java", path = "rules_java")
load("//:local_rocm.bzl", "local_rocm")
local_rocm(name = "local_config_rocm")
""",
    "BUILD": """\
cc_binary(
    name = "plugin.so",
    srcs = ["plugin.cc"],
    linkshared = True,
    deps = ["@local_config_rocm//rocm:hip_runtime"],
)
""",
    "plugin.cc": 'extern "C" int hipInit(unsigned); extern "C" int plugin() { return hipInit(0); }\n',
    "hip.cc": 'extern "C" int hipInit(unsigned) { return 0; }\n',
    "local_rocm.bzl": """\
load("//:rpath.bzl", "wheel_rpath_linkopts")

def _local_rocm(ctx):
    ctx.symlink(ctx.os.environ["ROCM_PATH"], "rocm/rocm_dist")
    ctx.file("rocm/rocm_config/rocm_config.h", "")
    linkopts = wheel_rpath_linkopts(ctx)
    ctx.template("rocm/BUILD", Label("//:xla/BUILD.tpl"), {
        "%{rocm_root}": "rocm_dist",
        "%{wheel_rpath_linkopts}": linkopts,
    })
    ctx.template("rocm/build_defs.bzl", Label("//:xla/build_defs.bzl.tpl"), {
        "%{rocm_extra_copts}": "[]",
        "%{rocm_is_configured}": "True",
        "%{gpu_is_configured}": "if_true",
        "%{cuda_or_rocm}": "if_true",
        "%{rocm_gpu_architectures}": "[]",
        "%{rocm_version_number}": "70200",
        "%{rocm_hipblaslt}": "True",
        "%{single_gpu_rbe_pool}": "",
        "%{multi_gpu_rbe_pool}": "",
    })
    ctx.template("crosstool/BUILD", Label("//:xla/BUILD.rocm.tpl"), {
        "%{host_compiler_path}": "clang/bin/crosstool_wrapper_driver_is_not_gcc",
        "%{host_compiler_prefix}": "/usr/bin",
        "%{linker_bin_path}": "/usr/bin",
        "%{unfiltered_compile_flags}": "",
        "%{cxx_builtin_include_directories}": '"/usr"',
    })
    ctx.template("crosstool/cc_toolchain_config.bzl", Label("//:xla/hipcc_cc_toolchain_config.bzl.tpl"), {})
    ctx.template(
        "crosstool/clang/bin/crosstool_wrapper_driver_is_not_gcc",
        Label("//:xla/crosstool_wrapper_driver_rocm.tpl"),
        {"%{cpu_compiler}": ctx.os.environ["CC"], "%{tmpdir}": "", "%{rocm_root}": "external/rocm_dist"},
    )

local_rocm = repository_rule(implementation = _local_rocm, environ = ["CC", "ROCM_PATH", "ROCM_WHEEL_RPATH"])
""",
    "skylib/WORKSPACE": "",
    "skylib/BUILD": "",
    "skylib/rules/BUILD": "",
    "skylib/bzl_library.bzl": "def bzl_library(**kwargs):\n    pass\n",
    "skylib/rules/common_settings.bzl": """\
def _string_flag(ctx):
    return []

string_flag = rule(
    implementation = _string_flag,
    attrs = {"values": attr.string_list()},
    build_setting = config.string(flag = True),
)
""",
    "rules_cc/cc/cc_library.bzl": "cc_library = native.cc_library\n",
    "rules_cc/cc/toolchains/BUILD": "",
    "rules_cc/cc/toolchains/cc_toolchain_config_info.bzl": (
        'load(":info.bzl", _info = "INFO")\nCcToolchainConfigInfo = _info\n'
    ),
    "rules_cc/cc/toolchains/info.bzl": "INFO = CcToolchainConfigInfo\n",
}


@pytest.fixture(scope="module")
def xla(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of XLA's files after the patch."""
    folder = tmp_path_factory.mktemp("xla")
    shutil.copytree(Path(os.environ[XLA]) / "third_party/gpus", folder / "third_party/gpus")
    patch = next(file.create for file in rocm_jax_proposal().files if file.path.endswith(".patch"))
    for options in (["--check"], []):
        subprocess.run(["git", "apply", *options, "-"], cwd=folder, input=patch, text=True, check=True)
    return folder / "third_party/gpus"


@pytest.fixture(scope="module")
def workspace(xla: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    shutil.copytree(EXAMPLE / "third_party", folder, dirs_exist_ok=True)
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "xla").mkdir()
    for name in ("rocm/BUILD.tpl", "rocm/build_defs.bzl.tpl", "crosstool/BUILD.rocm.tpl"):
        shutil.copy(xla / name, folder / "xla")
    shutil.copy(xla / "crosstool/hipcc_cc_toolchain_config.bzl.tpl", folder / "xla")
    shutil.copy(xla / "crosstool/clang/bin/crosstool_wrapper_driver_rocm.tpl", folder / "xla")
    configure = (xla / "rocm_configure.bzl").read_text()
    function = re.search(r"^def _wheel_rpath_linkopts\(.*?(?=^def )", configure, re.MULTILINE | re.DOTALL)
    assert function is not None
    (folder / "rpath.bzl").write_text(
        '_ROCM_WHEEL_RPATH = "ROCM_WHEEL_RPATH"\n'
        "def get_host_environ(ctx, name, default):\n    return ctx.os.environ.get(name, default)\n"
        "def auto_configure_fail(message):\n    fail(message)\n"
        f"{function[0]}\nwheel_rpath_linkopts = _wheel_rpath_linkopts\n"
    )
    rocm = folder.parent / f"{folder.name}-rocm/lib"
    rocm.mkdir(parents=True)
    for name, version in (("libamdhip64.so", 7), ("libamd_comgr.so", 3)):
        options = ("-shared", "-fPIC", f"-Wl,-soname,{name}.{version}", "-o", rocm / f"{name}.{version}")
        subprocess.run([CLANG, folder / "hip.cc", *options], check=True)
        (rocm / name).symlink_to(f"{name}.{version}")
    bazelrc = next(file for file in rocm_jax_proposal().files if file.path.endswith("/.bazelrc"))
    lines = re.findall("^build:rocm_(?:base|wheel) .*", bazelrc.edits[0].new, re.MULTILINE)
    lines += [
        f"build --repo_env=ROCM_PATH={rocm.parent}",
        f"build --repo_env=CC={CLANG}",
        "build --crosstool_top=@local_config_rocm//crosstool:toolchain --linkopt=-fuse-ld=lld",
        "build --spawn_strategy=local",
    ]
    (folder / ".bazelrc").write_text("\n".join([*lines, ""]))
    return folder


def bazel(workspace: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["bazel", f"--output_user_root={workspace.parent}/{workspace.name}-bazel", *STARTUP, *arguments]
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(workspace)}
    return subprocess.run(command, cwd=workspace, capture_output=True, text=True, check=False, env=variables)


def run_path(workspace: Path, *options: str) -> list[str]:
    done = bazel(workspace, "build", *options, "//:plugin.so")
    assert done.returncode == 0, done.stderr
    told = subprocess.run(
        ["readelf", "-dW", workspace / "bazel-bin/plugin.so"], capture_output=True, text=True, check=True
    ).stdout
    assert "Shared library: [libamdhip64.so.7]" in told
    (found,) = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", told)
    return str(found).split(":")


def test_the_wheel_config_links_the_run_path_that_patchelf_used_to_set(workspace: Path) -> None:
    assert run_path(workspace, "--config=rocm_base", "--config=rocm_wheel") == RUN_PATH


def test_libraries_in_tests_also_have_this_run_path(workspace: Path) -> None:
    solib, *entries = run_path(workspace, "--config=rocm_base")
    assert solib.startswith("$ORIGIN/_solib_local/")
    assert entries == [*RUN_PATH, "/opt/rocm/lib"]


def test_a_build_without_the_configs_keeps_the_old_run_path(workspace: Path) -> None:
    solib, system = run_path(workspace)
    assert solib.startswith("$ORIGIN/_solib_local/")
    assert system == "/opt/rocm/lib"


def test_a_variable_on_the_command_line_overrides_the_run_path(workspace: Path) -> None:
    option = "--repo_env=ROCM_WHEEL_RPATH=/opt/site/rocm/lib"
    assert run_path(workspace, "--config=rocm_wheel", option) == ["/opt/site/rocm/lib"]


@pytest.mark.parametrize("value", ["/../rocm/lib", "rocm/lib", "$ORIGIN/a b", "$ORIGINAL/lib", ""])
def test_a_malformed_run_path_entry_is_refused(workspace: Path, value: str) -> None:
    done = bazel(workspace, "build", "--nobuild", f"--repo_env=ROCM_WHEEL_RPATH=/opt/rocm/lib:{value}", "//:plugin.so")
    assert done.returncode != 0
    assert f'ROCM_WHEEL_RPATH has the entry "{value}", which isn\'t an absolute path or $ORIGIN/...' in done.stderr
