"""Tests of `rocwheel.frameworks.jax.jax_tree`: JAX's own tree, its names, its commands, and its translation."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.bazelrc import JAX_ROCM_BAZELRC, render_bazelrc
from rocwheel.frameworks.jax.build_py import old_options, old_variables
from rocwheel.frameworks.jax.commands import BuildOptions, render_makefile, spell_commands
from rocwheel.frameworks.jax.jax_tree import jax_tree, wheel_rule_commands
from rocwheel.frameworks.jax.settings import BazelSettings, read_settings
from rocwheel.frameworks.jax.starlark import render_wheel_targets
from rocwheel.frameworks.jax.translate import Translation, translate
from rocwheel.frameworks.jax.words import mark_variables
from rocwheel.targets.target_set import parse_target_set
from scripts.check_tables.__main__ import main as check_tables
from tests.support.jax_checkout import CHECKOUT

BUILD = ("python", "build/build.py", "build", "--wheels=jax-rocm-plugin,jax-rocm-pjrt")
PJRT = ("python", "build/build.py", "build", "--wheels=jax-rocm-pjrt")
SETTINGS = BazelSettings(1, "", ("3.12",), ("gfx90a",), "jax")


def test_the_commands_build_jax_targets_and_audit_and_copy_the_wheels() -> None:
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


def test_targets_in_the_settings_replace_the_default_jax_targets() -> None:
    settings = BazelSettings(1, "gcc", ("3.12",), (), plugin_targets=("//jaxlib/tools:jax_rocm7_plugin_wheel",))
    commands = wheel_rule_commands(settings, BuildOptions("1"))
    assert [command.words[-1] for command in commands if command.words[0] == "bazel"] == [
        "//jaxlib/tools:jax_rocm_pjrt_wheel",
        "//jaxlib/tools:jax_rocm7_plugin_wheel",
    ]


def test_the_makefile_has_a_target_for_each_wheel_of_the_jax_rules() -> None:
    text = render_makefile(SETTINGS, BuildOptions("1"), wheel_rule_commands)
    assert "jax-rocm-pjrt:\n\t$(BAZEL) build --config=$(CONFIG) --config=python312 " in text
    assert "\t$(ROCWHEEL) audit bazel-bin/jaxlib/tools/dist $(if $(SDK),--with $(SDK))\n" in text
    assert "jax-rocm-plugin-3.12:\n" in text


@pytest.fixture(scope="module")
def jax() -> Path:
    if CHECKOUT not in os.environ:
        pytest.skip(f"no checkout of JAX: set {CHECKOUT}")
    return Path(os.environ[CHECKOUT])


def test_the_names_in_the_table_match_jax(jax: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "jax-bazelrc": ".bazelrc",
        "jax": JAX_ROCM_BAZELRC,
        "jax-wheels": "jaxlib/tools/BUILD.bazel",
        "jax-workspace": "WORKSPACE",
    }
    options = [word for name, file in files.items() for word in ("--source", f"{name}={jax / file}")]
    assert check_tables(["jax-tree", *options]) == 0, capsys.readouterr().out


def test_the_jax_bazelrc_imports_the_user_file_but_not_the_rocm_bazelrc(jax: Path) -> None:
    lines = (jax / ".bazelrc").read_text().splitlines()
    imports = [line.split()[1] for line in lines if re.match("(try-)?import ", line)]
    assert imports == ["%workspace%/.jax_configure.bazelrc", "%workspace%/.bazelrc.user"]


def test_the_files_and_labels_that_rocwheel_writes_exist_in_jax(jax: Path) -> None:
    assert (jax / jax_tree().requirements).is_file()
    text = render_wheel_targets(SETTINGS, None)
    own = set(re.findall(r'name = "(\w+)"', text))
    for package, name in re.findall(r'"(?://([\w/]+))?:(\w[\w.]*)"', text):
        (build,) = (path for path in (jax / (package or "jaxlib/tools")).iterdir() if path.stem == "BUILD")
        assert name in own or f'"{name}"' in build.read_text(), (package, name)


def test_the_table_lists_only_options_of_the_old_tool() -> None:
    tree = jax_tree()
    assert tree.options.keys() <= old_options().keys()
    assert tree.variables.keys() <= old_variables().keys()
    assert (tree.source, tree.commit, tree.date) == (
        "https://github.com/jax-ml/jax",
        "cec06d116c05f0d52adfceee3d3b730fdbcb0ce5",
        "2026-08-08",
    )


OWN_CONFIGS = {"rocm_build", "rocm_build_remote", "python312"}


def names_in(text: str) -> set[str]:
    """Return the configs, labels, and imported files that a text names."""
    configs = set(re.findall(r"--config=([\w.-]+)", text)) - OWN_CONFIGS
    labels = set(re.findall(r"(?<![\w:])(?://|--//)[\w/]+:\w+", text))
    files = set(re.findall(r"import %workspace%/(\S+)", text))
    return configs | {label.removeprefix("--") for label in labels} | files


def test_every_jax_name_that_rocwheel_writes_is_in_the_table() -> None:
    tree = jax_tree()
    known = {name for names in tree.configs.values() for name in names} | tree.configs.keys()
    known |= {tree.git_hash.removeprefix("--"), *tree.targets.values()}
    known |= {f"{target}_editable" for target in tree.targets.values()}
    for options in (
        [],
        ["--editable", "--rbe", "--disable_nccl"],
        ["--target_cpu=aarch64", "--target_cpu_features=native"],
    ):
        made = translate([*BUILD, "--use_clang=true", "--bazel_options=--config=rocm_base", *options], tree="jax")
        fragment = render_bazelrc(made.settings, parse_target_set(made.settings.targets))
        names = names_in(fragment + spell_commands(made.commands, "shell")) | set(made.settings.configs)
        assert names <= known
        assert {"rocm_release_wheel", JAX_ROCM_BAZELRC} <= names


def bazel_lines(made: Translation) -> list[str]:
    return [line for line in spell_commands(made.commands, "shell").splitlines() if line.startswith("bazel ")]


def test_an_old_command_line_is_translated_to_settings_and_jax_targets(tmp_path: Path) -> None:
    made = translate([*BUILD, "--rocm_path=/opt/rocm", "--rocm_version=7", "--rocm_amdgpu_targets=gfx90a"], tree="jax")
    assert made.settings_text == (
        'schema = 1\ntree = "jax"\nrocm-path = "/opt/rocm"\ntargets = ["gfx90a"]\npython-versions = ["3.12"]\n'
        'cpu-features = "release"\nconfigs = ["mkl_open_source_only"]\noptions = ["--verbose_failures"]\n'
    )
    start = (
        "bazel build --config=rocm_build --config=python312 --repo_env=ML_WHEEL_TYPE=release "
        '--//jaxlib/tools:jaxlib_git_hash="$(git rev-parse HEAD)"'
    )
    assert bazel_lines(made) == [
        f"{start} //jaxlib/tools:jax_rocm_pjrt_wheel",
        f"{start} //jaxlib/tools:jax_rocm_plugin_wheel",
    ]
    path = tmp_path / "rocm.toml"
    path.write_text(made.settings_text)
    assert read_settings(path) == made.settings


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--local_xla_path=/xla"], "--override_repository=xla=/xla //jaxlib/tools:jax_rocm_pjrt_wheel"),
        (["--bazel_options=--jobs=4"], "--jobs=4 //jaxlib/tools:jax_rocm_pjrt_wheel"),
        (["--editable"], "//jaxlib/tools:jax_rocm_pjrt_wheel_editable"),
        (["--bazel_options=--config=rocm_rbe"], "//jaxlib/tools:jax_rocm_pjrt_wheel"),
    ],
)
def test_an_option_is_translated_to_the_end_of_the_command_for_jax(words: list[str], options: str) -> None:
    (line,) = bazel_lines(translate([*PJRT, *words], tree="jax"))
    assert line.endswith(f'"$(git rev-parse HEAD)" {options}')


@pytest.mark.parametrize(
    ("variable", "option"),
    [
        ("WHEEL_POST_RELEASE=2", "--repo_env=ML_WHEEL_VERSION_SUFFIX=.post2"),
        ("ROCM_VERSION_EXTRA=7.2", "--repo_env=ML_WHEEL_VERSION_SUFFIX=+rocm7.2"),
        ("JAX_GIT_HASH=0123456", "--//jaxlib/tools:jaxlib_git_hash=0123456"),
    ],
)
def test_a_variable_is_translated_to_an_option_of_the_command_for_jax(variable: str, option: str) -> None:
    (line,) = bazel_lines(translate([variable, *PJRT], tree="jax"))
    assert option in line.split()


def test_a_jax_config_becomes_a_setting_before_the_release_config() -> None:
    words = ["--config=rocm_clang_hermetic_local_sysroot", "--config debug_symbols", "--config=rocm", "--config=python"]
    made = translate([*PJRT, *(f"--bazel_options={word}" for word in words)], tree="jax")
    assert made.settings.configs == ("mkl_open_source_only", "rocm_clang_hermetic_local_sysroot", "debug_symbols")
    assert [(note.option, note.text) for note in made.dropped if note.option.startswith("--config")] == [
        ("--config=rocm", "rocm_build includes this config"),
        ("--config=python", "JAX's tree doesn't define this config"),
    ]


def test_options_without_effect_in_jax_are_reported() -> None:
    words = [
        *("--rocm_version=7", "--clang_path=/usr/bin/clang-18", "--use_clang=true", "--gcc_path=/usr/bin/gcc"),
        *("--verbose", "--dry_run", "--use_new_wheel_build_rule", "--cuda_version=12"),
        "--bazel_options=--override_repository=jax=/jax",
        "--bazel_options=--repo_env=ROCM_WHEEL_RPATH=/x",
        "--bazel_startup_options=--bazelrc=build/rocm/rocm.bazelrc",
    ]
    made = translate(["ROCM_JAX_COMMIT=0123456", *BUILD, *words], tree="jax")
    assert {note.option for note in made.dropped} == {
        *("--rocm_version", "--clang_path", "--use_clang", "--gcc_path", "--verbose", "--dry_run", "--cuda_version"),
        *("--use_new_wheel_build_rule", "--override_repository=jax=/jax", "--repo_env=ROCM_WHEEL_RPATH=/x"),
        *("--bazelrc=build/rocm/rocm.bazelrc", "ROCM_JAX_COMMIT", "patchelf"),
    }
    assert {line.partition(" --")[0] for line in bazel_lines(made)} == {"bazel build"}
    assert not any("override" in line or "RPATH" in line for line in bazel_lines(made))


def test_a_dropped_jax_wheel_is_reported_with_its_target() -> None:
    made = translate([*PJRT[:-1], "--wheels=jaxlib,jax-rocm-pjrt,jax-cuda-pjrt"], tree="jax")
    assert [(note.option, note.text) for note in made.dropped if "wheels" in note.option] == [
        ("--wheels=jaxlib", "isn't for ROCm; JAX's target is //jaxlib/tools:jaxlib_wheel"),
        ("--wheels=jax-cuda-pjrt", "isn't for ROCm"),
    ]


def test_a_command_without_rocm_wheels_is_refused_with_the_jax_target() -> None:
    with pytest.raises(InputError) as caught:
        translate([*PJRT[:-1], "--wheels=jaxlib"], tree="jax")
    assert str(caught.value) == (
        "--wheels: lists jaxlib; expected jax-rocm-plugin or jax-rocm-pjrt. For jaxlib, build "
        "//jaxlib/tools:jaxlib_wheel."
    )


def test_options_in_a_variable_are_kept_with_a_note() -> None:
    made = translate([*PJRT, mark_variables("--bazel_options=$MORE")], tree="jax")
    assert " $MORE //jaxlib" in bazel_lines(made)[0]
    assert {note.option: note.text for note in made.assumed}["$MORE"] == (
        "isn't known before the command runs; rocwheel assumes that it has only options for JAX's tree"
    )
    assert not any("--commit" in note.text for note in made.wrong)


def test_a_shell_variable_stays_an_option_of_the_command() -> None:
    words = [*PJRT, "--rocm_path=$ROCM", "--clang_path=$CLANG", "--python_version=$PYTHON"]
    (line,) = bazel_lines(translate(list(map(mark_variables, words)), tree="jax"))
    assert '--repo_env=HERMETIC_PYTHON_VERSION="$PYTHON"' in line
    assert '--repo_env=ROCM_PATH="$ROCM"' in line
    assert "action_env" not in line
    assert "CLANG" not in line


def test_a_python_version_that_jax_does_not_support_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        translate([*PJRT, "--python_version=3.11"], tree="jax")
    assert str(caught.value) == (
        "--python_version: is '3.11'; expected one of 3.12, 3.13, 3.14, 3.14-ft, because JAX has no requirements for "
        "other versions"
    )


def test_jax_requirements_are_updated_by_the_script_in_jax() -> None:
    made = translate(["build/build.py", "requirements_update", "--nightly_update"], tree="jax")
    assert [command.words for command in made.commands] == [("python", "build/update_requirements_uv.py", "--nightly")]


def test_options_other_than_nightly_are_dropped_for_the_requirements_script() -> None:
    words = [
        "requirements_update",
        "--nightly_update",
        "--bazel_options=--jobs=4",
        mark_variables("--python_version=${PY}"),
    ]
    made = translate(["JAX_RELEASE=1", "build/build.py", *words], tree="jax")
    text = "has no effect on build/update_requirements_uv.py, which updates the requirements of every Python version"
    assert {note.option: note.text for note in made.dropped} == {
        "--python_version": text,
        "--bazel_options": text,
        "JAX_RELEASE": text,
    }
    assert [note.option for note in made.kept] == ["--nightly_update"]
    assert made.assumed == ()


@pytest.mark.parametrize("joined", ["=", " "])
def test_the_rocm_jax_run_path_option_is_dropped_in_both_spellings(joined: str) -> None:
    made = translate([*PJRT, f"--bazel_options=--repo_env{joined}ROCM_WHEEL_RPATH=/x"], tree="jax")
    assert "--repo_env=ROCM_WHEEL_RPATH=/x" in [note.option for note in made.dropped]
    assert not any("ROCM_WHEEL_RPATH" in word for command in made.commands for word in command.words)
