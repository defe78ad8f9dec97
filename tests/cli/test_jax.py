"""``rocwheel jax`` as a user runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel, run_json

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SETTINGS = 'schema = 1\ncompiler = "/usr/bin/gcc"\ntargets = ["gfx90a"]\npython-versions = ["3.12"]\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "rocm.toml").write_text(SETTINGS)
    return tmp_path


def test_bazelrc_prints_the_fragment(project: Path) -> None:
    first, second = (rocwheel("jax", "bazelrc", cwd=project) for _ in range(2))
    assert first.returncode == 0
    assert first.stdout.startswith("# Made by rocwheel jax bazelrc from rocm.toml; sha256 of what follows: ")
    assert "build:rocm_build --repo_env=CC=/usr/bin/gcc\n" in first.stdout
    assert first.stdout == second.stdout


def test_bazelrc_prints_what_changes_in_its_file(project: Path) -> None:
    assert rocwheel("jax", "bazelrc", "-o", "rocm.bazelrc", cwd=project).returncode == 0
    assert rocwheel("jax", "bazelrc", "-o", "rocm.bazelrc", cwd=project).stdout == ""
    (project / "rocm.toml").write_text(SETTINGS.replace("3.12", "3.13"))
    changed = rocwheel("jax", "bazelrc", "-o", "rocm.bazelrc", cwd=project).stdout.splitlines()
    assert "-build:python312 --repo_env=HERMETIC_PYTHON_VERSION=3.12" in changed
    assert "+build:python313 --repo_env=HERMETIC_PYTHON_VERSION=3.13" in changed


def test_bazelrc_leaves_an_edited_file_alone_unless_forced(project: Path) -> None:
    (project / "rocm.bazelrc").write_text("build --jobs=1\n")
    refused = rocwheel("jax", "bazelrc", "-o", "rocm.bazelrc", cwd=project)
    assert refused.returncode == 1
    assert refused.stderr == (
        "error: rocm.bazelrc: was edited by hand, or made by something else. Put the changes elsewhere, or give "
        "--force to lose them.\n"
    )
    assert (project / "rocm.bazelrc").read_text() == "build --jobs=1\n"
    forced = rocwheel("jax", "bazelrc", "-o", "rocm.bazelrc", "--force", cwd=project)
    assert (forced.returncode, "-build --jobs=1" in forced.stdout) == (0, True)


def test_check_fails_on_a_change_and_writes_nothing(project: Path) -> None:
    for command in (["bazelrc", "-o", "rocm.bazelrc"], ["starlark", "rules"]):
        assert rocwheel("jax", *command, cwd=project).returncode == 0
        assert rocwheel("jax", *command, "--check", cwd=project).returncode == 0
    for file in ("rocm.bazelrc", "rules/run_path.bzl"):
        (project / file).write_text("mine\n")
    bazelrc = rocwheel("jax", "bazelrc", "-o", "rocm.bazelrc", "--check", cwd=project)
    assert (bazelrc.returncode, "-mine\n" in bazelrc.stdout) == (1, True)
    starlark = rocwheel("jax", "starlark", "rules", "--check", cwd=project)
    assert (starlark.returncode, "-mine\n" in starlark.stderr) == (1, True)
    assert {(project / file).read_text() for file in ("rocm.bazelrc", "rules/run_path.bzl")} == {"mine\n"}


def test_check_needs_a_file_to_compare_with(project: Path) -> None:
    failed = rocwheel("jax", "bazelrc", "--check", cwd=project)
    assert failed.returncode == 2
    assert "--check compares with a file: name it with --output" in failed.stderr


def test_unknown_targets_are_named(project: Path) -> None:
    (project / "rocm.toml").write_text(SETTINGS.replace("gfx90a", "gfx90b"))
    failed = rocwheel("jax", "bazelrc", cwd=project)
    assert failed.returncode == 2
    assert "rocm.toml: targets" in failed.stderr
    assert "gfx90b" in failed.stderr


def test_missing_settings_are_bad_usage(tmp_path: Path) -> None:
    failed = rocwheel("jax", "commands", "--version", "1.0", cwd=tmp_path)
    assert (failed.returncode, failed.stderr) == (
        2,
        "error: rocm.toml: cannot be read (No such file or directory). Check --settings.\n",
    )


@pytest.mark.parametrize(("form", "start"), [("shell", "#!/bin/sh\n"), ("makefile", ".PHONY:"), ("ci", "- name: ")])
def test_commands_have_three_forms(project: Path, form: str, start: str) -> None:
    made = rocwheel("jax", "commands", "--version", "0.12.0", "--form", form, cwd=project)
    assert made.returncode == 0
    assert made.stdout.startswith(start)


def test_starlark_writes_a_package_and_prints_its_declaration(project: Path) -> None:
    made = rocwheel("jax", "starlark", "rocm_wheel", "--quiet", cwd=project)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith('load("//rocm_wheel:rocm_wheel_repository.bzl"')
    assert (project / "rocm_wheel/BUILD.bazel").is_file()


def test_commands_build_remotely_where_the_settings_say_how(project: Path) -> None:
    refused = rocwheel("jax", "commands", "--version", "1.0", "--remote", cwd=project)
    assert (refused.returncode, refused.stderr) == (
        2,
        "error: rocm.toml: has no remote-execution; expected a file that defines the config rocm_rbe\n",
    )
    (project / "rocm.toml").write_text(SETTINGS + 'remote-execution = "rbe.bazelrc"\n')
    made = rocwheel("jax", "commands", "--version", "1.0", "--remote", cwd=project)
    assert made.stdout.count("\nbazel build --config=rocm_build_remote --config=python312 //") == 2


def test_translate_takes_a_command_line_behind_two_dashes(tmp_path: Path) -> None:
    old = [
        "python",
        "build/build.py",
        "build",
        "--wheels=jax-rocm-pjrt",
        "--bazel_options=--linkopt=-Wl,-rpath,$ORIGIN",
    ]
    made = rocwheel("jax", "translate", "--version", "1.0", "--", *old, cwd=tmp_path)
    assert made.returncode == 0
    assert "bazel build --config=rocm_build --config=python312 '--linkopt=-Wl,-rpath,$ORIGIN' //pjrt" in made.stdout
    assert "#   --linkopt=-Wl,-rpath,$ORIGIN: went through a second shell" in made.stdout


@pytest.mark.parametrize(
    ("arguments", "schema", "keys"),
    [
        (["jax", "bazelrc"], "rocwheel.jax.bazelrc/1", {"text", "diff"}),
        (["jax", "commands", "--version", "1.0"], "rocwheel.jax.commands/1", {"form", "text"}),
        (["jax", "starlark", "x", "-q"], "rocwheel.jax.starlark/1", {"files", "declaration", "diff"}),
        (
            ["jax", "translate", "--", "build.py", "build", "--wheels=jax-rocm-pjrt"],
            "rocwheel.jax.translate/1",
            {"settings", "commands", "kept", "assumed", "dropped", "wrong"},
        ),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_every_command_speaks_json(project: Path, arguments: list[str], schema: str, keys: set[str]) -> None:
    value = run_json(*arguments, cwd=project)
    assert value.pop("schema") == schema
    assert set(value) == keys


@pytest.mark.parametrize("command", ["bazelrc", "starlark", "commands", "translate"])
def test_the_help_has_an_example(command: str, tmp_path: Path) -> None:
    assert "Example: " in rocwheel("jax", command, "--help", cwd=tmp_path).stdout
