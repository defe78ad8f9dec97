"""Tests of `rocwheel.frameworks.jax.translate`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.frameworks.jax.build_py import old_options, old_variables
from rocwheel.frameworks.jax.commands import spell_commands
from rocwheel.frameworks.jax.settings import BazelSettings, read_settings
from rocwheel.frameworks.jax.translate import Translation, translate
from rocwheel.frameworks.jax.words import mark_variables, shown

if TYPE_CHECKING:
    from pathlib import Path

# What the argparse of rocm-jax's build.py declares, its versions of 2025 and 2026 together.
DECLARED = {
    "append": {"bazel_options", "bazel_startup_options"},
    "flag": {
        *("build_cuda_with_clang", "configure_only", "detailed_timestamped_log", "disable_mkl_dnn", "disable_nccl"),
        *("dry_run", "editable", "nightly_update", "rbe", "use_new_wheel_build_rule", "verbose"),
    },
    "optional": {"use_clang"},
    "value": {
        *("bazel_path", "clang_path", "cuda_compute_capabilities", "cuda_major_version", "cuda_version"),
        *("cudnn_version", "gcc_path", "local_xla_path", "output_path", "python_version", "rocm_amdgpu_targets"),
        *("rocm_path", "rocm_version", "target_cpu", "target_cpu_features", "wheels"),
    },
}
BUILD = ("python", "build/build.py", "build", "--wheels=jax-rocm-plugin,jax-rocm-pjrt")
PJRT = ("python", "build/build.py", "build", "--wheels=jax-rocm-pjrt")


def bazel_words(made: Translation) -> tuple[str, ...]:
    return made.commands[0].words


def assembly_words(made: Translation) -> tuple[str, ...]:
    return made.commands[1].words


def wrong(made: Translation) -> dict[str, str]:
    return {note.option: note.text for note in made.wrong}


def test_a_minimal_command_line_builds_both_wheels_with_the_old_defaults() -> None:
    made = translate([*BUILD, "--rocm_path=/opt/rocm"], version="0.12.0")
    assert made.settings_text == (
        "schema = 1\n"
        'compiler = "/usr/lib/llvm-18/bin/clang"\n'
        'rocm-path = "/opt/rocm"\n'
        'rocm-version = "7"\n'
        'targets = ["gfx908", "gfx90a", "gfx9-4-generic", "gfx10-3-generic", "gfx11-generic", "gfx12-generic"]\n'
        'python-versions = ["3.12"]\n'
        'cpu-features = "release"\n'
        'configs = ["rocm_base", "rocm", "clang", "mkl_open_source_only"]\n'
        'options = ["--verbose_failures"]\n'
        'wheel-sources = ["jaxlib_ext/tools/LICENSE.txt", "pjrt/python/__init__.py"]\n'
        'commits = { "ROCm/xla" = "third_party/xla/workspace.bzl:XLA_COMMIT", '
        '"jax" = "third_party/jax/workspace.bzl:JAX_COMMIT" }\n'
    )
    sources = "--src bazel-bin --src jaxlib_ext/tools/LICENSE.txt --src pjrt/python/__init__.py"
    commits = (
        '--commit ROCm/rocm-jax="$(git rev-parse HEAD)" --commit ROCm/xla="$(sed -n '
        '\'s/^XLA_COMMIT *= *"\\([0-9a-f]*\\)".*/\\1/p\' third_party/xla/workspace.bzl)" --commit jax="$(sed -n '
        '\'s/^JAX_COMMIT *= *"\\([0-9a-f]*\\)".*/\\1/p\' third_party/jax/workspace.bzl)"'
    )
    options = f"{sources} {commits} --output dist"
    lines = [line for line in spell_commands(made.commands, "shell").splitlines() if line and line[0] in "br"]
    assert lines == [
        "bazel build --config=rocm_build --config=python312 //pjrt:pjrt_c_api_gpu_plugin.so",
        f"rocwheel jax wheel pjrt --version 0.12.0 --rocm 7 {options}",
        "bazel build --config=rocm_build --config=python312 //jaxlib_ext/tools:build_gpu_kernels_wheel",
        f"rocwheel jax wheel plugin --python-version 3.12 --version 0.12.0 --rocm 7 {options}",
    ]


def test_the_written_settings_can_be_read_for_bazelrc(tmp_path_factory: pytest.TempPathFactory) -> None:
    made = translate([*BUILD, "--rbe", "--rocm_path=/path with blank", "--target_cpu=aarch64"])
    path = tmp_path_factory.mktemp("settings") / "rocm.toml"
    path.write_text(made.settings_text)
    assert read_settings(path) == made.settings


@pytest.mark.parametrize(
    ("option", "field", "value"),
    [
        ("--python_version=3.13-ft", "python_versions", ("3.13-ft",)),
        ("--rocm_version=7.2", "rocm_version", "7"),
        ("--rocm_amdgpu_targets=gfx90a,gfx942", "targets", ("gfx90a", "gfx942")),
        ("--rocm_path=/opt/rocm-7", "rocm_path", "/opt/rocm-7"),
        ("--clang_path=/usr/bin/clang-15", "configs", ("rocm_base", "rocm", "mkl_open_source_only")),
        ("--clang_path=/usr/bin/clang-19", "compiler", "/usr/bin/clang-19"),
        ("--use_clang=false", "compiler", "/usr/bin/gcc"),
        ("--use_clang=false", "configs", ("rocm_base", "mkl_open_source_only")),
        ("--use_clang", "compiler", "/usr/lib/llvm-18/bin/clang"),
        ("--disable_nccl", "configs", ("rocm_base", "rocm", "clang", "nonccl", "mkl_open_source_only")),
        ("--target_cpu=aarch64", "cpu_features", "default"),
        ("--disable_mkl_dnn", "configs", ("rocm_base", "rocm", "clang")),
        ("--target_cpu_features=native", "cpu_features", "native"),
        ("--target_cpu=aarch64", "configs", ("rocm_base", "rocm", "clang", "mkl_aarch64_threadpool")),
        ("--target_cpu=aarch64", "options", ("--verbose_failures", "--cpu=aarch64")),
        ("--rbe", "remote_execution", "rbe.bazelrc"),
    ],
)
def test_an_option_is_translated_to_a_setting(option: str, field: str, value: object) -> None:
    assert msgspec.structs.asdict(translate([*PJRT, option]).settings)[field] == value


@pytest.mark.parametrize(
    ("option", "start"),
    [
        ("--bazel_path=/opt/bazel", ("/opt/bazel", "build", "--config=rocm_build")),
        ("--bazel_startup_options=--host_jvm_args=-Xmx4g", ("bazel", "--host_jvm_args=-Xmx4g", "build")),
        ("--rbe", ("bazel", "build", "--config=rocm_build_remote", "--config=python312")),
    ],
)
def test_an_option_changes_how_bazel_is_called(option: str, start: tuple[str, ...]) -> None:
    assert bazel_words(translate([*PJRT, option]))[: len(start)] == start


def test_bazel_options_come_last_to_take_precedence() -> None:
    options = ("--bazel_options=--jobs=4", "--bazel_options=--copt=-O1", "--detailed_timestamped_log")
    words = bazel_words(translate([*PJRT, *options]))
    assert words[3:] == (
        "--config=python312",
        "--show_timestamps",
        "--jobs=4",
        "--copt=-O1",
        "//pjrt:pjrt_c_api_gpu_plugin.so",
    )


def test_the_output_folder_is_kept() -> None:
    assert assembly_words(translate([*PJRT, "--output_path=/wheel house"]))[-2:] == ("--output", "/wheel house")


def test_a_local_xla_is_overridden_and_its_commit_is_stamped() -> None:
    made = translate([*PJRT, "--local_xla_path=/src/xla"])
    assert "--override_repository=xla=/src/xla" in bazel_words(made)
    text = spell_commands(made.commands, "shell")
    assert '--commit ROCm/xla="$(git -C /src/xla rev-parse HEAD)"' in text
    assert "recorded the pinned commit in commit_info.py" in wrong(made)["--local_xla_path"]


def test_the_commit_of_an_overridden_jax_is_stamped() -> None:
    made = translate([*PJRT, "--bazel_options=--override_repository=jax=/src/jax"])
    assert '--commit jax="$(git -C /src/jax rev-parse HEAD)"' in spell_commands(made.commands, "shell")


@pytest.mark.parametrize(
    ("options", "commit"),
    [
        (("--bazel_options=--override_repository xla=/src/xla",), "ROCm/xla"),
        (("--bazel_options=--override_repository", "--bazel_options=xla=/src/xla"), "ROCm/xla"),
        (("--bazel_options=--override_repository=xla=/elsewhere --override_repository xla=/src/xla",), "ROCm/xla"),
        (("--local_xla_path=/elsewhere", "--bazel_options=--override_repository=xla=/src/xla"), "ROCm/xla"),
        (("--bazel_options=--override_repository jax=/src/xla",), "jax"),
    ],
)
def test_an_override_in_any_spelling_is_stamped_and_reported(options: tuple[str, ...], commit: str) -> None:
    made = translate([*PJRT, *options])
    assert f'--commit {commit}="$(git -C /src/xla rev-parse HEAD)"' in spell_commands(made.commands, "shell")
    name = commit.rpartition("/")[2]
    assert wrong(made)[f"--override_repository={name}"] == (
        f"built a {name} other than the pinned commit, but recorded the pinned commit in commit_info.py; "
        "commit_info.py now records the commit that was built"
    )


def test_other_repositories_can_be_overridden() -> None:
    made = translate([*PJRT, "--bazel_options=--override_repository other=/src"])
    assert bazel_words(made)[-3:-1] == ("--override_repository", "other=/src")
    assert "git -C" not in spell_commands(made.commands, "shell")


def test_configure_only_leaves_no_commands() -> None:
    assert translate([*PJRT, "--configure_only"]).commands == ()


def test_version_variables_are_combined_into_the_version() -> None:
    variables = ("WHEEL_POST_RELEASE=2", "ROCM_VERSION_EXTRA=7.2", "JAX_RELEASE=1", "ROCM_JAX_COMMIT=abcdef0")
    made = translate([*variables, *PJRT], version="0.12.0")
    words = assembly_words(made)
    assert words[words.index("--version") + 1] == "0.12.0.post2+rocm7.2"
    assert "ROCm/rocm-jax=abcdef0" in words
    assert "X.postN doesn't satisfy" in wrong(made)["WHEEL_POST_RELEASE"]


def test_an_origin_that_a_shell_would_have_expanded_is_kept_and_reported() -> None:
    option = "--repo_env=ROCM_WHEEL_RPATH=$ORIGIN/../rocm/lib"
    made = translate([*PJRT, f"--bazel_options={option}"])
    assert option in bazel_words(made)
    assert wrong(made)[option] == ("went through a second shell, which expanded $ORIGIN; now nothing expands it")


def test_an_origin_that_a_shell_has_already_expanded_is_reported() -> None:
    made = translate([*PJRT, "--bazel_options=--repo_env=ROCM_WHEEL_RPATH=/../rocm/lib"])
    assert wrong(made)["--repo_env=ROCM_WHEEL_RPATH=/../rocm/lib"] == (
        "contains /../rocm/lib, so a shell or make has already expanded $ORIGIN; put the option in single quotes"
    )


def test_a_linker_run_path_that_patchelf_used_to_replace_is_reported() -> None:
    made = translate([*PJRT, "--bazel_options=--linkopt=-Wl,-rpath,/opt/rocm/lib"])
    assert wrong(made)["--linkopt=-Wl,-rpath,/opt/rocm/lib"].startswith("patchelf later replaced every run path")


@pytest.mark.parametrize(
    ("arguments", "option", "text"),
    [
        (PJRT, ".jax_configure.bazelrc", "flags were applied twice"),
        (PJRT, "jax-rocm*-pjrt", "its version.py was never stamped"),
        ((*PJRT, "--dry_run"), "--dry_run", "still wrote .jax_configure.bazelrc"),
        ((*PJRT, "--target_cpu=x86_64"), "--target_cpu=x86_64", "failed with a KeyError"),
        ((*PJRT, "--target_cpu=k8"), "--target_cpu=k8", "failed with a KeyError"),
        ((*PJRT, "--target_cpu=aarch64"), "--target_cpu_features=release", "aarch64 has no AVX"),
        (("build.py", "requirements_update"), "requirements_update", "failed with an AttributeError"),
    ],
)
def test_silent_errors_of_the_old_tool_are_reported(arguments: tuple[str, ...], option: str, text: str) -> None:
    assert text in wrong(translate(arguments))[option]


def test_requirements_are_updated_by_bazel() -> None:
    made = translate(["build.py", "requirements_update", "--python_version=3.11"])
    assert [command.words for command in made.commands] == [
        ("bazel", "run", "--config=python311", "//build:requirements.update")
    ]


def test_nightly_requirements_have_their_own_update_target() -> None:
    made = translate(["build.py", "requirements_update", "--nightly_update", "--bazel_options=--jobs=2"])
    assert made.commands[0].words[2:] == ("--config=python312", "--jobs=2", "//build:requirements_nightly.update")


def test_every_option_of_the_old_parser_is_known_with_its_kind() -> None:
    known = old_options()
    assert {kind: {name for name in known if known[name].kind == kind} for kind in DECLARED} == DECLARED
    assert len(known) == sum(map(len, DECLARED.values()))


VALUES = {
    "rocm_path": "/opt/rocm",
    "ROCM_PATH": "/opt/rocm",
    "rocm_amdgpu_targets": "gfx942",
    "python_version": "3.11",
    "target_cpu_features": "native",
    "use_clang": "true",
    "wheels": "jax-rocm-pjrt",
}


@pytest.mark.parametrize("name", sorted(old_options()))
def test_every_option_of_the_old_tool_is_accounted_for(name: str) -> None:
    old_option = old_options()[name]
    assert bool(old_option.now) != bool(old_option.dropped)
    given = [f"--{name}"] if old_option.kind == "flag" else [f"--{name}", VALUES.get(name, "7")]
    made = translate(["build.py", "build", "--wheels=jax-rocm-pjrt", *given])
    told = {note.option for note in (*made.kept, *made.dropped)}
    assert f"--{name}" in told


@pytest.mark.parametrize("name", sorted(old_variables()))
def test_every_variable_of_the_old_tool_is_accounted_for(name: str) -> None:
    made = translate([f"{name}={VALUES.get(name, '1234567')}", *PJRT])
    assert name in {note.option for note in (*made.kept, *made.dropped)}


@pytest.mark.parametrize(
    ("variable", "field", "value"),
    [
        ("ROCM_PATH=/opt/rocm-7", "rocm_path", "/opt/rocm-7"),
        ("ROCM_SDK_TARGET_FAMILY=gfx94X-dcgpu", "target_family", "gfx94X-dcgpu"),
    ],
)
def test_a_variable_is_translated_to_a_setting(variable: str, field: str, value: str) -> None:
    assert msgspec.structs.asdict(translate([variable, *PJRT]).settings)[field] == value


@pytest.mark.parametrize("option", ["--rocm_amd", "--rocm_amdgpu_targets"])
def test_options_may_be_abbreviated(option: str) -> None:
    made = translate([*PJRT, option, "gfx942", "--python", "3.11"])
    assert (made.settings.targets, made.settings.python_versions) == (("gfx942",), ("3.11",))


def test_wheel_names_may_omit_jax() -> None:
    made = translate(["build.py", "build", "--wheels=rocm-plugin,rocm-pjrt"])
    assert [command.words[3] for command in made.commands if command.words[0] == "rocwheel"] == ["pjrt", "plugin"]


def test_the_python_version_is_taken_from_the_interpreter_in_the_command() -> None:
    made = translate(["/usr/bin/python3.11", *PJRT[1:]])
    assert made.settings.python_versions == ("3.11",)
    assert "--python_version" not in {note.option for note in made.assumed}


def test_values_that_depended_on_the_machine_are_reported_as_assumed() -> None:
    assert {note.option: note.text for note in translate(PJRT).assumed} == {
        "--python_version": "was the version of the Python that ran build.py; rocwheel assumes 3.12",
        "--clang_path": "was the first clang on PATH; rocwheel assumes /usr/lib/llvm-18/bin/clang",
        "--rocm_amdgpu_targets": "had different defaults in different versions; rocwheel assumes the last default",
    }
    unknown = (
        "the path doesn't contain the version, which the old tool got from the compiler: set "
        "compiler-version in rocm.toml"
    )
    of_clang = {note.option: note.text for note in translate([*PJRT, "--clang_path=/usr/bin/clang"]).assumed}
    assert of_clang["/usr/bin/clang"].startswith(f"{unknown} (for versions before 19, ")
    assert of_clang["/usr/bin/clang"].endswith(", and for version 16 or later, add clang to configs")
    of_gcc = {note.option: note.text for note in translate([*PJRT, "--use_clang=false"]).assumed}
    assert of_gcc["/usr/bin/gcc"].startswith(f"{unknown} (for versions before 13, ")
    given = ("--python_version=3.11", "--use_clang=false", "--gcc_path=/usr/bin/gcc-13", "--rocm_amdgpu_targets=gfx942")
    assert translate([*PJRT, *given]).assumed == ()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["build.py", "build"],
            (
                "--wheels: lists no wheels, which meant jaxlib and was rejected; expected jax-rocm-plugin or "
                "jax-rocm-pjrt"
            ),
        ),
        (
            ["build.py", "build", "--wheels=jaxlib"],
            "--wheels: lists jaxlib; expected jax-rocm-plugin or jax-rocm-pjrt",
        ),
        (
            [*PJRT, "--nonsense"],
            (
                "command line: unrecognized arguments: --nonsense; expected a command line of build/build.py. "
                "Pass the complete old command line after --."
            ),
        ),
        (
            [*PJRT, "--target_cpu_features=fast"],
            "--target_cpu_features: is 'fast'; expected release, native, or default",
        ),
        ([*PJRT, "--use_clang=no"], "--use_clang: is 'no'; expected true or false"),
        (
            [*PJRT, "--bazel_options=--repo_env=HERMETIC_PYTHON_VERSION=3.11"],
            (
                "--bazel_options: is '--repo_env=HERMETIC_PYTHON_VERSION=3.11'; expected no option that sets the "
                "Python version. Pass the version with --python_version."
            ),
        ),
        (
            [*PJRT, "--bazel_options=--repo_env HERMETIC_PYTHON_VERSION=3.10"],
            (
                "--bazel_options: is 'HERMETIC_PYTHON_VERSION=3.10'; expected no option that sets the Python "
                "version. Pass the version with --python_version."
            ),
        ),
        (
            [*PJRT, "--bazel_options=--copt='x"],
            (
                "command line: has \"--copt='x\", which isn't valid shell syntax (No closing quotation). Add the "
                "missing quote."
            ),
        ),
        *(
            (
                [*PJRT, f"--{name}=$HOME/x"],
                f"--{name}: is '$HOME/x'; expected a literal path, because no second shell expands variables anymore",
            )
            for name in ("bazel_path", "output_path", "rocm_path", "clang_path", "gcc_path", "local_xla_path")
        ),
        ([*PJRT, "--rocm_version=abc"], "--rocm_version: is 'abc'; expected a version such as 7 or 7.2.0"),
        (
            ["WHEEL_VERSION_SUFFIX=.dev20260101", "WHEEL_POST_RELEASE=1", *PJRT],
            "--version: is 'VERSION.dev20260101.post1'; expected a version such as 0.12.0 (PEP 440)",
        ),
        ([*PJRT, "--python_version=312"], "--python_version: is '312'; expected a version such as 3.12 or 3.13-ft"),
        ([*PJRT, "--bazel_options=--"], "--bazel_options: is '--', which ends the options; expected a value"),
        ([*PJRT, "--rocm_path=--"], "--rocm_path: is '--', which ends the options; expected a value"),
        (
            [*PJRT, "--bazel_options=--x", "--bazel_options=--"],
            "--bazel_options: is '--', which ends the options; expected a value",
        ),
    ],
)
def test_arguments_that_the_old_tool_rejected_are_refused(words: list[str], text: str) -> None:
    with pytest.raises(InputError) as caught:
        translate(words)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("--rocm_path=rel/rocm", "rocm-path is 'rel/rocm'; expected an absolute path"),
        (
            "--python_version=3.12-ft",
            "python-versions contains '3.12-ft'; expected versions such as '3.12' or '3.13-ft'",
        ),
    ],
)
def test_settings_that_bazelrc_would_reject_are_refused(option: str, problem: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        translate([*PJRT, option])
    assert [str(found) for found in caught.value.problems] == [f"the command line's settings: {problem}"]
    assert caught.value.exit_status == 2


def test_other_wheels_are_dropped_with_a_reason() -> None:
    made = translate(["build.py", "build", "--wheels=jaxlib,jax-rocm-pjrt"])
    assert {note.option: note.text for note in made.dropped}["--wheels=jaxlib"] == (
        "this workspace builds only the wheels for ROCm"
    )


def test_the_settings_name_the_required_values_explicitly() -> None:
    made = translate(PJRT)
    named = set(re.findall(r"^([a-z-]+) =", made.settings_text, re.MULTILINE))
    assert {"compiler", "targets", "python-versions"} <= named
    assert isinstance(made.settings, BazelSettings)


def test_values_are_split_like_the_old_shell_did() -> None:
    options = ("--bazel_options=--jobs 4", '--bazel_options=--copt="-DX=a b"', "--bazel_startup_options=--a --b")
    made = translate([*PJRT, *options])
    words = bazel_words(made)
    assert words[:4] == ("bazel", "--a", "--b", "build")
    assert words[-4:-1] == ("--jobs", "4", "--copt=-DX=a b")
    assert "split it at spaces" in wrong(made)["--jobs 4"]


def test_variables_before_build_py_are_read() -> None:
    made = translate(["env", "WHEEL_POST_RELEASE=1", "ROCM_PATH=/opt/x", *PJRT], version="0.12.0")
    assert made.settings.rocm_path == "/opt/x"
    assert "0.12.0.post1" in assembly_words(made)


def test_a_version_suffix_is_kept() -> None:
    assert "0.12.0.dev20260101" in assembly_words(
        translate(["WHEEL_VERSION_SUFFIX=.dev20260101", *PJRT], version="0.12.0")
    )


def test_notes_concern_only_the_requested_wheels() -> None:
    plugin = translate(["build.py", "build", "--wheels=jax-rocm-plugin"])
    assert "jax-rocm*-pjrt" not in wrong(plugin)
    assert "patchelf" in {note.option for note in plugin.dropped}
    update = translate(["build.py", "requirements_update"])
    assert "patchelf" not in {note.option for note in update.dropped}


def test_unknown_targets_are_refused() -> None:
    with pytest.raises(RocwheelError, match="gfx9xx"):
        translate([*PJRT, "--rocm_amdgpu_targets=gfx9xx"])


def test_run_path_options_of_the_repository_rule_are_not_reported_as_replaced_by_patchelf() -> None:
    made = translate([*PJRT, "--bazel_options=--repo_env=ROCM_WHEEL_RPATH_TAG=rpath"])
    assert "--repo_env=ROCM_WHEEL_RPATH_TAG=rpath" not in wrong(made)


@pytest.mark.parametrize(("clang", "has_config"), [("15", False), ("16", True)])
def test_the_clang_config_is_used_from_version_16_on(clang: str, has_config: bool) -> None:
    made = translate([*PJRT, f"--clang_path=/usr/lib/llvm-{clang}/bin/clang"])
    assert ("clang" in made.settings.configs) is has_config


def test_a_call_with_the_new_wheel_rules_builds_the_jax_targets() -> None:
    made = translate([*BUILD, "--use_new_wheel_build_rule", "--output_path=out"])
    assert [command.words[-1] for command in made.commands if command.words[0] == "bazel"] == [
        "//jaxlib/tools:jax_rocm_pjrt_wheel",
        "//jaxlib/tools:jax_rocm_plugin_wheel",
    ]
    assert made.commands[-1].words == ("cp", "-rf", "bazel-bin/jaxlib/tools/dist/.", "out")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (
            "--rocm_amdgpu_targets=${T}",
            ["--repo_env=TF_ROCM_AMDGPU_TARGETS=${T}", "--action_env=TF_ROCM_AMDGPU_TARGETS=${T}"],
        ),
        ("--rocm_path=$(R)", ["--repo_env=ROCM_PATH=$(R)", "--action_env=ROCM_PATH=$(R)"]),
        (
            "--clang_path=$C/clang",
            [
                "--repo_env=CC=$C/clang",
                "--repo_env=BAZEL_COMPILER=$C/clang",
                "--action_env=CLANG_COMPILER_PATH=$C/clang",
            ],
        ),
        ("--gcc_path=$G", ["--repo_env=CC=$G", "--repo_env=BAZEL_COMPILER=$G"]),
        ("--target_cpu=$X", ["--cpu=$X"]),
        ("--bazel_options=${ALL}", ["${ALL}"]),
        ("--bazel_options=--jobs=${{ inputs.jobs }}", ["--jobs=${{ inputs.jobs }}"]),
        ("--local_xla_path=$X", ["--override_repository=xla=$X"]),
    ],
)
def test_shell_variables_are_carried_over_to_the_bazel_command(option: str, words: list[str]) -> None:
    made = translate([*PJRT, mark_variables(option)])
    assert [shown(word) for word in bazel_words(made)][4:-1] == words


def test_a_python_version_in_a_shell_variable_replaces_the_config() -> None:
    made = translate([*BUILD, mark_variables("--python_version=${PY}")])
    assert [shown(command.words[3]) for command in made.commands[::2]] == [
        "--repo_env=HERMETIC_PYTHON_VERSION=${PY}"
    ] * 2
    words = [shown(word) for word in made.commands[3].words]
    assert words[words.index("--python-version") + 1] == "${PY}"


@pytest.mark.parametrize(
    ("variable", "position", "value"),
    [
        ("--output_path=$OUT", "--output", "$OUT"),
        ("--rocm_version=${V}", "--rocm", "${V}"),
        ("WHEEL_POST_RELEASE=$N", "--version", "VERSION.post$N"),
    ],
)
def test_shell_variables_are_carried_over_to_the_assembly(variable: str, position: str, value: str) -> None:
    given = mark_variables(variable)
    made = translate([*PJRT, given] if variable.startswith("--") else [given, *PJRT])
    words = [shown(word) for word in assembly_words(made)]
    assert words[words.index(position) + 1] == value


@pytest.mark.parametrize("option", ["--wheels=$W", "--target_cpu_features=$F"])
def test_a_shell_variable_that_determines_the_commands_is_refused(option: str) -> None:
    with pytest.raises(
        InputError, match="whose value isn't known before the command runs; expected a literal value"
    ) as caught:
        translate(["build.py", "build", "--wheels=jax-rocm-pjrt", mark_variables(option)])
    assert str(caught.value).startswith(option.replace("=", ": is ") + ",")


@pytest.mark.parametrize("character", ["\0", "\1", "\2", "\3", "\x1f"])
def test_control_characters_reserved_for_placeholders_are_refused(character: str) -> None:
    """A NUL, a letter and another NUL would be a variable, of a language that there is not."""
    word = f"--bazel_options={character}lb{character}"
    with pytest.raises(InputError) as caught:
        mark_variables(word)
    assert str(caught.value) == (f"{word!a}: isn't text; expected a word without control characters")


def test_carried_shell_variables_are_expanded_by_the_shell(tmp_path: Path) -> None:
    options = ["--rocm_path=$R", "--bazel_options=${ALL}", "--bazel_options=--copt=-DX=$R", "--bazel_options=${NONE}"]
    made = translate([*PJRT, *map(mark_variables, [*options, "--bazel_path=./show"])])
    show = tmp_path / "show"
    show.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    show.chmod(0o755)
    script = spell_commands(made.commands[:1], "shell")
    variables = {"PATH": "/usr/bin:/bin", "R": "/a b", "ALL": "--x --y", "NONE": ""}
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=variables, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)[3:-1] == [
        *("--repo_env=ROCM_PATH=/a b", "--action_env=ROCM_PATH=/a b", "--x", "--y", "--copt=-DX=/a b")
    ]
