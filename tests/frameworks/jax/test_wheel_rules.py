"""Targets and commands for JAX's own wheel rules; Bazel builds those for JAX's tools with a stand-in of the rules.

Those for rocwheel are test_bazel_jax_rules.py's to prove. The stand-in has the names and parameters of
``//jaxlib:jax.bzl`` as JAX had them in 2025, and makes files of that name: JAX's own need XLA and a network.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.commands import BuildOptions, spell_commands
from rocwheel.frameworks.jax.makefile import render_makefile
from rocwheel.frameworks.jax.settings import BazelSettings
from rocwheel.frameworks.jax.wheel_rules import (
    WheelTool,
    make_wheel_tool,
    render_wheel_targets,
    wheel_rule_commands,
)
from tests.frameworks.bazel_workspace import NEEDS_BAZEL
from tests.support.bazel import STARTUP

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = BazelSettings(1, "gcc", ("3.12",), ())
RULES = """
def _wheel_impl(ctx):
    tag = "py3-none" if ctx.attr.no_abi else "cp312-cp312"
    wheel = ctx.actions.declare_file("dist/%s-1.0-%s-linux_x86_64.whl" % (ctx.attr.wheel_name, tag))
    content = [file.short_path for file in ctx.files.source_files] + [ctx.attr.platform_version, ctx.attr.git_hash]
    ctx.actions.write(wheel, "\\n".join(content))
    return [DefaultInfo(files = depset([wheel]))]

_wheel = rule(implementation = _wheel_impl, attrs = {
    "wheel_name": attr.string(mandatory = True),
    "no_abi": attr.bool(),
    "platform_version": attr.string(),
    "git_hash": attr.string(),
    "source_files": attr.label_list(allow_files = True),
    "wheel_binary": attr.label(mandatory = True),
})

def jax_wheel(
        name,
        wheel_binary,
        wheel_name,
        no_abi = False,
        platform_independent = False,
        editable = False,
        enable_cuda = False,
        enable_rocm = False,
        platform_version = "",
        source_files = []):
    if enable_cuda == enable_rocm or platform_independent or editable:
        fail("not a wheel for ROCm")
    _wheel(
        name = name,
        wheel_binary = wheel_binary,
        wheel_name = wheel_name,
        no_abi = no_abi,
        platform_version = platform_version,
        source_files = source_files,
    )

def wheel_sources(name, py_srcs = [], data_srcs = [], symlink_data_srcs = [], hdr_srcs = [], static_srcs = []):
    native.filegroup(name = name + "_py", srcs = py_srcs)
    native.filegroup(name = name + "_data", srcs = data_srcs)
    native.filegroup(name = name, srcs = [name + "_py", name + "_data"] + static_srcs)
"""
TOOLS = """
load("//jaxlib:jax.bzl", "jax_wheel", "wheel_sources")

exports_files(["LICENSE.txt"])
filegroup(name = "version", srcs = ["LICENSE.txt"])
filegroup(name = "build_gpu_plugin_wheel_tool")
filegroup(name = "build_gpu_kernels_wheel_tool")
"""
SUPPORT = """
package(default_visibility = ["//visibility:public"])
filegroup(name = "rocm_gpu_support", srcs = ["_solver.so"])
filegroup(name = "rocm_plugin_extension", srcs = ["rocm_plugin_extension.so"])
"""
PLUGIN = """
package(default_visibility = ["//visibility:public"])
exports_files(glob(["*.py", "*.toml"]))
filegroup(name = "rocm_plugin", srcs = ["pjrt_c_api_gpu_plugin.so"])
"""


def make_workspace(folder: Path) -> Path:
    """Make a workspace with the packages and files of JAX that the targets name."""
    texts = {
        "WORKSPACE": "",
        "jaxlib/BUILD.bazel": "",
        "jaxlib/jax.bzl": RULES,
        "jaxlib/tools/BUILD.bazel": TOOLS + render_wheel_targets(SETTINGS, None),
        "jaxlib/rocm/BUILD.bazel": SUPPORT,
        "jax_plugins/rocm/BUILD.bazel": PLUGIN,
    }
    names = ["jaxlib/tools/LICENSE.txt", "jaxlib/rocm/_solver.so", "jaxlib/rocm/rocm_plugin_extension.so"]
    plugin = ("__init__.py", "pyproject.toml", "setup.py", "plugin_pyproject.toml", "plugin_setup.py")
    names += [f"jax_plugins/rocm/{name}" for name in (*plugin, "pjrt_c_api_gpu_plugin.so")]
    for name, text in {**texts, **dict.fromkeys(names, "")}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "wheel", "lines"),
    [
        (
            "pjrt",
            "jax_rocm7_pjrt-1.0-py3-none-linux_x86_64.whl",
            [
                "jax_plugins/rocm/__init__.py",
                "jax_plugins/rocm/pjrt_c_api_gpu_plugin.so",
                "jax_plugins/rocm/pyproject.toml",
                "jax_plugins/rocm/setup.py",
                "jaxlib/rocm/_solver.so",
                "jaxlib/tools/LICENSE.txt",
            ],
        ),
        (
            "plugin",
            "jax_rocm7_plugin-1.0-cp312-cp312-linux_x86_64.whl",
            [
                "jax_plugins/rocm/plugin_pyproject.toml",
                "jax_plugins/rocm/plugin_setup.py",
                "jaxlib/rocm/_solver.so",
                "jaxlib/rocm/rocm_plugin_extension.so",
                "jaxlib/tools/LICENSE.txt",
            ],
        ),
    ],
)
@NEEDS_BAZEL[0]
def test_bazel_builds_the_targets_by_a_stand_in_of_the_rules(
    kind: str, wheel: str, lines: list[str], tmp_path: Path
) -> None:
    folder = make_workspace(tmp_path / "jax")
    target = f"//jaxlib/tools:jax_rocm7_{kind}_wheel"
    done = subprocess.run(
        ["bazel", f"--output_user_root={tmp_path / 'bazel'}", "--batch", *STARTUP, "build", target],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    content = (folder / "bazel-bin/jaxlib/tools/dist" / wheel).read_text().split("\n")
    assert (sorted(set(content[:-2])), content[-2]) == (lines, "7")


def test_rocwheel_is_the_wheel_binary_with_what_the_settings_say() -> None:
    settings = BazelSettings(1, "gcc", ("3.12",), (), search=("$SDK", "/opt/rocm/lib"), pjrt_spec="specs/pjrt.toml")
    text = render_wheel_targets(settings, WheelTool("//third_party/rocm_wheel", "@pip//rocwheel"))
    assert text.startswith('load("//third_party/rocm_wheel:jax_wheel_binary.bzl", "jax_wheel_binary")\n')
    assert text.split("\n\n")[1].splitlines() == [
        "jax_wheel_binary(",
        '    name = "jax_rocm7_pjrt_wheel_binary",',
        '    kind = "pjrt",',
        '    spec = "//specs:pjrt.toml",',
        "    system_run_paths = [",
        '        "/opt/rocm/lib",',
        "    ],",
        '    deps = ["@pip//rocwheel"],',
        ")",
    ]
    assert '    wheel_binary = ":jax_rocm7_plugin_wheel_binary",\n' in text
    assert "setup.py" not in text


@pytest.mark.parametrize(
    ("rules", "library", "message"),
    [
        ("rocm_wheel", "@pypi//x", "--rules: is 'rocm_wheel'; expected the label of a package, such as //rocm_wheel"),
        ("//a:b", "@pypi//x", "--rules: is '//a:b'; expected the label of a package, such as //rocm_wheel"),
        ("//a", 'x"', "--library: is 'x\"'; expected a label, such as @pypi//rocwheel"),
    ],
)
def test_what_is_no_label_is_refused(rules: str, library: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        make_wheel_tool(rules, library)
    assert str(caught.value) == message


def test_the_commands_build_the_targets_of_jax_audit_and_copy() -> None:
    text = spell_commands(wheel_rule_commands(SETTINGS, BuildOptions("1", sdk="sdk", kinds=("pjrt",))), "shell")
    assert [line for line in text.splitlines() if line and line[0] != "#"][1:] == [
        (
            "bazel build --config=rocm_build --config=python312 --repo_env=ML_WHEEL_TYPE=release "
            '--//jaxlib/tools:jaxlib_git_hash="$(git rev-parse HEAD)" //jaxlib/tools:jax_rocm_pjrt_wheel'
        ),
        "rocwheel audit bazel-bin/jaxlib/tools/dist --with sdk",
        "mkdir -p dist",
        "cp -rf bazel-bin/jaxlib/tools/dist/. dist",
    ]


def test_targets_of_the_settings_take_the_place_of_those_of_jax() -> None:
    settings = BazelSettings(1, "gcc", ("3.12",), (), plugin_targets=("//jaxlib/tools:jax_rocm7_plugin_wheel",))
    commands = wheel_rule_commands(settings, BuildOptions("1"))
    assert [command.words[-1] for command in commands if command.words[0] == "bazel"] == [
        "//jaxlib/tools:jax_rocm_pjrt_wheel",
        "//jaxlib/tools:jax_rocm7_plugin_wheel",
    ]


def test_the_makefile_has_a_target_for_each_wheel_of_the_rules() -> None:
    text = render_makefile(SETTINGS, BuildOptions("1"), wheel_rule_commands)
    assert "jax-rocm-pjrt:\n\t$(BAZEL) build --config=$(CONFIG) --config=python312 " in text
    assert "\t$(ROCWHEEL) audit bazel-bin/jaxlib/tools/dist $(if $(SDK),--with $(SDK))\n" in text
    assert "jax-rocm-plugin-3.12:\n" in text
