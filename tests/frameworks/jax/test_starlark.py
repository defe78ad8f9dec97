"""Tests of `rocwheel.frameworks.jax.starlark`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.settings import BazelSettings
from rocwheel.frameworks.jax.starlark import (
    HandEditedFilesError,
    RuleCall,
    WheelTool,
    make_wheel_tool,
    parse_cpu_tags,
    read_rule_call,
    render_wheel_targets,
    starlark_package,
)
from tests.frameworks.bazel_workspace import NEEDS_BAZEL
from tests.support.bazel import STARTUP

WORDS = [
    *("--output_path", "bazel-out/bin/jaxlib/tools/dist"),
    *("--cpu", "x86_64"),
    *("--jaxlib_git_hash", "0123456789abcdef"),
    *("--enable-rocm", "True"),
    *("--platform_version", "7"),
    "--srcs=jax_plugins/rocm/__init__.py",
    "--srcs=bazel-out/bin/jaxlib/rocm/_solver.so",
    "--srcs=jax_plugins/rocm/__init__.py",
]
CALL = RuleCall(
    Path("bazel-out/bin/jaxlib/tools/dist"),
    "x86_64",
    "7",
    {"jax": "0123456789abcdef"},
    (Path("jax_plugins/rocm/__init__.py"), Path("bazel-out/bin/jaxlib/rocm/_solver.so")),
)


def test_the_arguments_of_the_jax_wheel_rule_are_parsed() -> None:
    assert read_rule_call(WORDS) == CALL


def test_a_parameter_file_has_one_word_or_one_option_with_value_per_line(tmp_path: Path) -> None:
    words = tmp_path / "words.params"
    words.write_text("\n".join([*WORDS, ""]))
    flags = tmp_path / "flags.params"
    pairs = ["=".join(WORDS[index : index + 2]) for index in range(0, 10, 2)]
    flags.write_text("\n".join([*pairs, *WORDS[10:], ""]))
    assert [read_rule_call([f"@{path}"]) for path in (words, flags)] == [CALL, CALL]


def test_a_build_outside_git_has_no_commit() -> None:
    words = [word.replace("0123456789abcdef", "") for word in WORDS]
    assert read_rule_call(words).commits == {}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            [],
            (
                "the call to jax_wheel: is invalid (the following arguments are required: --output_path, --cpu, "
                "--platform_version). Only the rule jax_wheel should call this program; to build a wheel by hand, "
                "use rocwheel jax wheel."
            ),
        ),
        ([*WORDS, "--skip_gpu_kernels"], "is invalid (unrecognized arguments: --skip_gpu_kernels)"),
        ([*WORDS, "--editable"], "requests an editable wheel; expected a regular wheel"),
        ([*WORDS, "--enable-rocm", "False"], "isn't for ROCm; expected only enable_rocm = True"),
        ([*WORDS, "--enable-cuda", "True"], "isn't for ROCm; expected only enable_rocm = True"),
        (WORDS[:10], "has no files (--srcs); expected the files from wheel_sources in source_files"),
        ([*WORDS, "--platform_version", "seven"], "platform_version: is 'seven'; expected a version"),
        ([*WORDS, "--jaxlib_git_hash", "main"], "jaxlib_git_hash: is 'jax=main'; expected REPOSITORY=COMMIT"),
        ([*WORDS, "--srcs=--"], "--srcs: is '--', which ends the options; expected a value"),
        ([*WORDS, "--enable-rocm=--"], "--enable_rocm: is '--', which ends the options; expected a value"),
        (["@absent.params"], "absent.params: can't be read as a parameter file"),
        (["@."], "can't be read as a parameter file"),
    ],
)
def test_invalid_calls_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_rule_call(words)
    assert message in str(caught.value)


@given(st.lists(st.text(max_size=20), max_size=12))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    try:
        read_rule_call([word for word in words if not word.startswith("@")])
    except InputError:
        return


@given(st.binary(max_size=300))
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("call") / "file.params"
    path.write_bytes(data)
    try:
        read_rule_call([f"@{path}"])
    except InputError:
        return


def test_cpu_tags_are_parsed_by_cpu() -> None:
    texts = ["x86_64=manylinux_2_27_x86_64", "aarch64=manylinux_2_27_aarch64"]
    assert parse_cpu_tags(texts, "--cpu-tag") == {
        "x86_64": "manylinux_2_27_x86_64",
        "aarch64": "manylinux_2_27_aarch64",
    }


@pytest.mark.parametrize("text", ["x86_64", "=manylinux_2_27_x86_64", "x86_64=", ""])
def test_a_tag_without_a_cpu_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"--cpu-tag: is .*; expected CPU=TAG, such as x86_64=manylinux_2_27_x86_64"):
        parse_cpu_tags([text], "--cpu-tag")


COMMON = {
    "BUILD.bazel",
    "cc.bzl",
    "rocm_shared_library.bzl",
    "rocm_wheel.bzl",
    "rocm_wheel_repository.bzl",
    "run_path.bzl",
    "runtime_library.bzl",
}


def test_a_workspace_declares_the_repository(tmp_path: Path) -> None:
    (tmp_path / "WORKSPACE").touch()
    package = starlark_package(tmp_path / "third_party/rocm_wheel", "workspace")
    assert set(package.files) == COMMON
    assert package.declaration == (
        'load("//third_party/rocm_wheel:rocm_wheel_repository.bzl", "rocm_wheel_repository")\n\n'
        'rocm_wheel_repository(name = "rocm_wheel")\n'
    )


def test_a_module_uses_the_extension(tmp_path: Path) -> None:
    package = starlark_package(tmp_path / "rocm_wheel", "bzlmod")
    assert set(package.files) == COMMON | {"extensions.bzl"}
    assert package.declaration == (
        'bazel_dep(name = "rules_cc", version = "0.1.1")\n\n'
        'rocm_wheel = use_extension("//rocm_wheel:extensions.bzl", "rocm_wheel")\n'
        'use_repo(rocm_wheel, "rocm_wheel")\n'
    )


def test_the_wheel_binary_for_the_jax_rules_is_only_for_workspace(tmp_path: Path) -> None:
    package = starlark_package(tmp_path, "workspace", jax_rules=True)
    assert set(package.files) == COMMON | {"jax_wheel_binary.bzl"}


def test_a_bzlmod_package_is_not_silently_replaced_by_a_workspace_package(tmp_path: Path) -> None:
    starlark_package(tmp_path, "bzlmod").write(tmp_path)
    with pytest.raises(InputError) as caught:
        starlark_package(tmp_path, "workspace")
    assert str(caught.value) == (
        f"{tmp_path}: has the files for MODULE.bazel; expected the files for WORKSPACE, or no files. "
        "Add --bzlmod, or delete extensions.bzl."
    )
    (tmp_path / "extensions.bzl").write_text("# of somebody else\n")
    assert set(starlark_package(tmp_path, "workspace").files) == COMMON


def test_only_the_cc_rules_differ_between_workspace_and_bzlmod(tmp_path: Path) -> None:
    old, new = (starlark_package(tmp_path, kind).files for kind in ("workspace", "bzlmod"))
    assert [name for name in sorted(COMMON) if old[name] != new[name]] == ["cc.bzl"]


def test_edited_files_are_reported_and_nothing_is_written(tmp_path: Path) -> None:
    package = starlark_package(tmp_path, "workspace")
    package.write(tmp_path)
    assert package.write(tmp_path) == ""
    (tmp_path / "BUILD.bazel").unlink()
    for name in ("cc.bzl", "run_path.bzl"):
        (tmp_path / name).write_text("mine")
    with pytest.raises(HandEditedFilesError) as caught:
        package.write(tmp_path)
    found = (
        "was edited by hand, or rocwheel didn't write it. Move the changes to another file, or add --force to "
        "discard them."
    )
    assert [str(problem) for problem in caught.value.problems] == [
        f"{tmp_path / name}: {found}" for name in ("cc.bzl", "run_path.bzl")
    ]
    assert not (tmp_path / "BUILD.bazel").exists()
    assert "-mine\n" in package.write(tmp_path, force=True)


def test_the_root_of_the_workspace_is_the_package_with_the_empty_name(tmp_path: Path) -> None:
    (tmp_path / "WORKSPACE").touch()
    assert starlark_package(tmp_path, "workspace").declaration.startswith('load("//:rocm_wheel_repository.bzl"')


def test_a_folder_that_cannot_be_a_bazel_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be a Bazel package"):
        starlark_package(tmp_path / 'a b"c', "workspace")


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
def test_bazel_builds_the_targets_with_a_stand_in_for_the_jax_rules(
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


def test_rocwheel_is_the_wheel_binary_with_the_options_in_the_settings() -> None:
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
def test_invalid_labels_are_refused(rules: str, library: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        make_wheel_tool(rules, library)
    assert str(caught.value) == message
