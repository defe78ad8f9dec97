"""``rocwheel jax``, ``rocwheel wheel`` and ``rocwheel torch`` as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = 'schema = 1\ncompiler = "/usr/bin/gcc"\ntargets = ["gfx90a"]\npython-versions = ["3.12"]\n'
SPEC = """
schema = 1
name = "demo"
version = "1.0"
[[files]]
from = "demo/__init__.py"
to = "demo/"
"""


def run(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rocwheel", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "rocm.toml").write_text(SETTINGS)
    (tmp_path / "demo.toml").write_text(SPEC)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/__init__.py").touch()
    return tmp_path


def test_bazelrc_prints_the_fragment(project: Path) -> None:
    first, second = (run("jax", "bazelrc", cwd=project) for _ in range(2))
    assert first.returncode == 0
    assert first.stdout.startswith("# Made by rocwheel jax bazelrc from rocm.toml; sha256 of what follows: ")
    assert "build:rocm_build --repo_env=CC=/usr/bin/gcc\n" in first.stdout
    assert first.stdout == second.stdout


def test_bazelrc_prints_what_changes_in_its_file(project: Path) -> None:
    assert run("jax", "bazelrc", "-o", "rocm.bazelrc", cwd=project).returncode == 0
    assert run("jax", "bazelrc", "-o", "rocm.bazelrc", cwd=project).stdout == ""
    (project / "rocm.toml").write_text(SETTINGS.replace("3.12", "3.13"))
    changed = run("jax", "bazelrc", "-o", "rocm.bazelrc", cwd=project).stdout.splitlines()
    assert "-build:python312 --repo_env=HERMETIC_PYTHON_VERSION=3.12" in changed
    assert "+build:python313 --repo_env=HERMETIC_PYTHON_VERSION=3.13" in changed


def test_bazelrc_leaves_an_edited_file_alone_unless_forced(project: Path) -> None:
    (project / "rocm.bazelrc").write_text("build --jobs=1\n")
    refused = run("jax", "bazelrc", "-o", "rocm.bazelrc", cwd=project)
    assert refused.returncode == 1
    assert refused.stderr == (
        "error: rocm.bazelrc: was edited by hand, or made by something else. Put the changes elsewhere, or give "
        "--force to lose them.\n"
    )
    assert (project / "rocm.bazelrc").read_text() == "build --jobs=1\n"
    forced = run("jax", "bazelrc", "-o", "rocm.bazelrc", "--force", cwd=project)
    assert (forced.returncode, "-build --jobs=1" in forced.stdout) == (0, True)


def test_check_fails_on_a_change_and_writes_nothing(project: Path) -> None:
    for command in (["bazelrc", "-o", "rocm.bazelrc"], ["starlark", "rules"]):
        assert run("jax", *command, cwd=project).returncode == 0
        assert run("jax", *command, "--check", cwd=project).returncode == 0
    for file in ("rocm.bazelrc", "rules/run_path.bzl"):
        (project / file).write_text("mine\n")
    bazelrc = run("jax", "bazelrc", "-o", "rocm.bazelrc", "--check", cwd=project)
    assert (bazelrc.returncode, "-mine\n" in bazelrc.stdout) == (1, True)
    starlark = run("jax", "starlark", "rules", "--check", cwd=project)
    assert (starlark.returncode, "-mine\n" in starlark.stderr) == (1, True)
    assert {(project / file).read_text() for file in ("rocm.bazelrc", "rules/run_path.bzl")} == {"mine\n"}


def test_check_needs_a_file_to_compare_with(project: Path) -> None:
    failed = run("jax", "bazelrc", "--check", cwd=project)
    assert failed.returncode == 2
    assert "--check compares with a file: name it with --output" in failed.stderr


def test_unknown_targets_are_named(project: Path) -> None:
    (project / "rocm.toml").write_text(SETTINGS.replace("gfx90a", "gfx90b"))
    failed = run("jax", "bazelrc", cwd=project)
    assert failed.returncode == 2
    assert "rocm.toml: targets" in failed.stderr
    assert "gfx90b" in failed.stderr


def test_missing_settings_are_bad_usage(tmp_path: Path) -> None:
    failed = run("jax", "commands", "--version", "1.0", cwd=tmp_path)
    assert (failed.returncode, failed.stderr) == (
        2,
        "error: rocm.toml: cannot be read (No such file or directory). Check --settings.\n",
    )


@pytest.mark.parametrize(("form", "start"), [("shell", "#!/bin/sh\n"), ("makefile", ".PHONY:"), ("ci", "- name: ")])
def test_commands_have_three_forms(project: Path, form: str, start: str) -> None:
    made = run("jax", "commands", "--version", "0.12.0", "--form", form, cwd=project)
    assert made.returncode == 0
    assert made.stdout.startswith(start)


def test_starlark_writes_a_package_and_prints_its_declaration(project: Path) -> None:
    made = run("jax", "starlark", "rocm_wheel", "--quiet", cwd=project)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith('load("//rocm_wheel:rocm_wheel_repository.bzl"')
    assert (project / "rocm_wheel/BUILD.bazel").is_file()


def test_commands_build_remotely_where_the_settings_say_how(project: Path) -> None:
    refused = run("jax", "commands", "--version", "1.0", "--remote", cwd=project)
    assert (refused.returncode, refused.stderr) == (
        2,
        "error: rocm.toml: has no remote-execution; expected a file that defines the config rocm_rbe\n",
    )
    (project / "rocm.toml").write_text(SETTINGS + 'remote-execution = "rbe.bazelrc"\n')
    made = run("jax", "commands", "--version", "1.0", "--remote", cwd=project)
    assert made.stdout.count("\nbazel build --config=rocm_build_remote --config=python312 //") == 2


def test_translate_takes_a_command_line_behind_two_dashes(tmp_path: Path) -> None:
    old = [
        "python",
        "build/build.py",
        "build",
        "--wheels=jax-rocm-pjrt",
        "--bazel_options=--linkopt=-Wl,-rpath,$ORIGIN",
    ]
    made = run("jax", "translate", "--version", "1.0", "--", *old, cwd=tmp_path)
    assert made.returncode == 0
    assert "bazel build --config=rocm_build --config=python312 '--linkopt=-Wl,-rpath,$ORIGIN' //pjrt" in made.stdout
    assert "#   --linkopt=-Wl,-rpath,$ORIGIN: went through a second shell" in made.stdout


def test_a_wheel_whose_path_is_known_is_assembled_in_silence(project: Path) -> None:
    output = "out/demo-1.0-py3-none-any.whl"
    made = run("wheel", "--quiet", "--spec", "demo.toml", "--src", ".", "--output", output, cwd=project)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    assert (project / output).is_file()


def test_a_wheel_is_assembled_and_named(project: Path) -> None:
    made = run("wheel", "--spec", "demo.toml", "--src", ".", "--dest-dir", "out", cwd=project)
    assert (made.returncode, made.stdout) == (0, "out/demo-1.0-py3-none-any.whl\n")
    with zipfile.ZipFile(project / "out/demo-1.0-py3-none-any.whl") as archive:
        assert "Root-Is-Purelib: true\n" in archive.read("demo-1.0.dist-info/WHEEL").decode()


def test_a_missing_input_is_bad_usage(project: Path) -> None:
    failed = run("wheel", "--spec", "demo.toml", cwd=project)
    assert (failed.returncode, failed.stderr) == (
        2,
        (
            "error: demo/__init__.py: is not among the inputs (none are given). Build the target that makes it, or "
            "name its folder with --src.\n"
        ),
    )


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
        (
            ["wheel", "--spec", "demo.toml", "--src", "."],
            "rocwheel.wheel/1",
            {"path", "size", "floor_reason", "repaired"},
        ),
        (["torch", "init", "--sdk-version", "7.0"], "rocwheel.torch.init/1", {"text"}),
        (["torch", "requirements", "--sdk-version", "7.0"], "rocwheel.torch.requirements/1", {"text"}),
        (["torch", "runpath"], "rocwheel.torch.runpath/1", {"text"}),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_every_command_speaks_json(project: Path, arguments: list[str], schema: str, keys: set[str]) -> None:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    value = json.loads(run(*arguments[:end], "--json", *arguments[end:], cwd=project).stdout)
    assert value.pop("schema") == schema
    assert set(value) == keys


COMMANDS = (
    *("jax bazelrc", "jax starlark", "jax commands", "jax wheel", "jax translate", "wheel"),
    *("torch init", "torch requirements", "torch runpath"),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_has_an_example(command: str, tmp_path: Path) -> None:
    assert "Example: " in run(*command.split(), "--help", cwd=tmp_path).stdout


@pytest.mark.parametrize("rocm", ["", "7.2.0", "x"])
def test_the_rocm_of_a_wheel_is_a_major_version(rocm: str, project: Path) -> None:
    failed = run("jax", "wheel", "pjrt", "--version", "1.0", "--rocm", rocm, cwd=project)
    assert (failed.returncode, failed.stderr) == (
        2,
        f"error: --rocm: is {rocm!r}; expected a major version, such as 7\n",
    )
