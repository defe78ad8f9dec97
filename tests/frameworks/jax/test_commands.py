"""Tests of `rocwheel.frameworks.jax.commands`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.commands import BuildOptions, Command, commit_in, commit_of, spell_commands, wheel_commands
from rocwheel.frameworks.jax.settings import BazelSettings

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.frameworks.jax.words import CommandForm


WORDS = [
    "plain",
    "with blank",
    "$ORIGIN/../lib",
    "$$",
    "it's",
    'say "x"',
    "back\\slash",
    "`date`",
    "$(date)",
    "#hash",
    "*",
    "~",
    "",
    "a;b&c|d",
    "${{ secrets.X }}",
    "%",
    "!x",
    "=a=",
]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with a commit in it and a program that prints its arguments."""
    if shutil.which("git") is None:
        pytest.skip("no git")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@localhost"]
    subprocess.run([*git, "init", "-q", tmp_path], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=tmp_path, check=True)
    program = tmp_path / "show"
    program.write_text(f"#!{sys.executable}\nimport json, sys\nprint('ARGUMENTS', json.dumps(sys.argv[1:]))\n")
    program.chmod(0o755)
    return tmp_path


def run_text(text: str, form: CommandForm, folder: Path) -> list[list[str]]:
    """Run the text as its tool does and return the arguments that arrived."""
    if form == "makefile":
        if shutil.which("make") is None:
            pytest.skip("no make")
        (folder / "Makefile").write_text(text)
        command = ["make", "-s", "wheels"]
    elif form == "shell":
        (folder / "run.sh").write_text(text)
        command = ["sh", "run.sh"]
    else:
        lines = text.splitlines()
        starts = [index for index, line in enumerate(lines) if line == "  run: |"]
        assert all(lines[index - 1].startswith("- name: ") for index in starts)
        assert "${{" not in text
        (folder / "step.sh").write_text("".join(lines[index + 1].removeprefix("    ") + "\n" for index in starts))
        command = ["bash", "-e", "step.sh"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    shown = [line for line in done.stdout.splitlines() if line.startswith("ARGUMENTS ")]
    return [json.loads(line.removeprefix("ARGUMENTS ")) for line in shown]


@pytest.mark.parametrize("form", ["shell", "makefile", "ci"])
def test_every_word_is_passed_to_the_command_unchanged(form: CommandForm, checkout: Path) -> None:
    commands = [Command("Show", ("./show", *WORDS)), Command("Show again", ("./show", "x"))]
    assert run_text(spell_commands(commands, form), form, checkout) == [WORDS, ["x"]]


@pytest.mark.parametrize("form", ["shell", "makefile", "ci"])
def test_commits_are_looked_up_when_the_commands_run(form: CommandForm, checkout: Path) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True, check=True)
    other = checkout / "with blank"
    other.symlink_to(checkout)
    words = ("./show", f"ROCm/jax={commit_of()}", f"ROCm/xla={commit_of(str(other))}:x")
    arrived = run_text(spell_commands([Command("Show", words)], form), form, checkout)
    commit = head.stdout.strip()
    assert arrived == [[f"ROCm/jax={commit}", f"ROCm/xla={commit}:x"]]


@pytest.mark.parametrize("form", ["shell", "makefile", "ci"])
def test_a_commit_pinned_in_a_starlark_file_is_read_from_that_file(form: CommandForm, checkout: Path) -> None:
    (checkout / "a b.bzl").write_text('OTHER_XLA_COMMIT = "1"\nXLA_COMMIT = "06f1f17fe8"  # pinned\n\ndef repo():\n')
    words = ("./show", f"ROCm/xla={commit_in('a b.bzl', 'XLA_COMMIT')}")
    assert run_text(spell_commands([Command("Show", words)], form), form, checkout) == [["ROCm/xla=06f1f17fe8"]]


def test_commits_in_the_settings_are_stamped_unless_overridden() -> None:
    pinned = {"ROCm/xla": "abcdef0", "jax": "pins.bzl:JAX_COMMIT"}
    settings = BazelSettings(1, "gcc", ("3.12",), (), commits=pinned)
    (command,) = wheel_commands(settings, BuildOptions("1", kinds=("pjrt",), commits={"ROCm/xla": "1234567"}))[1:]
    words = list(command.words)
    stamped = [words[index + 1] for index, word in enumerate(words) if word == "--commit"]
    assert stamped == [
        f"ROCm/rocm-jax={commit_of()}",
        "ROCm/xla=1234567",
        f"jax={commit_in('pins.bzl', 'JAX_COMMIT')}",
    ]


def test_both_wheels_are_built_for_each_python() -> None:
    settings = BazelSettings(1, "gcc", ("3.11", "3.12"), ("gfx90a",))
    titles = [command.title for command in wheel_commands(settings, BuildOptions("0.12.0"))]
    assert titles == [
        "Build the PJRT plugin",
        "Assemble the PJRT wheel",
        "Build the extension modules for Python 3.11",
        "Assemble the plugin wheel for Python 3.11",
        "Build the extension modules for Python 3.12",
        "Assemble the plugin wheel for Python 3.12",
    ]


def test_the_commands_contain_configs_sources_and_the_sdk() -> None:
    settings = BazelSettings(1, "gcc", ("3.12",), (), wheel_sources=("LICENSE",), plugin_spec="plugin.toml")
    commands = wheel_commands(settings, BuildOptions("0.12.0", sdk="sdk dist", kinds=("plugin",)))
    assert spell_commands(commands, "shell").splitlines()[-4:] == [
        "bazel build --config=rocm_build --config=python312 //jaxlib_ext/tools:build_gpu_kernels_wheel",
        "",
        "# Assemble the plugin wheel for Python 3.12.",
        (
            "rocwheel jax wheel plugin --python-version 3.12 --spec plugin.toml --version 0.12.0 --rocm 7 "
            "--src bazel-bin --src LICENSE "
            "--commit ROCm/rocm-jax=\"$(git rev-parse HEAD)\" --with 'sdk dist' --output dist"
        ),
    ]


def test_absolute_search_folders_are_allowed_in_the_wheels() -> None:
    settings = BazelSettings(1, "gcc", ("3.12",), ("gfx90a",), search=("/site/rocm/lib", "$SDK", "/opt/rocm/lib"))
    for command in wheel_commands(settings, BuildOptions("1.0"))[1::2]:
        words = command.words
        given = [words[index + 1] for index, word in enumerate(words) if word == "--system-run-path"]
        assert given == ["/site/rocm/lib", "/opt/rocm/lib"]


@pytest.mark.parametrize("version", ["not a version", "", "VERSION!", "VERSION.dev1.post1"])
def test_invalid_versions_are_refused(version: str) -> None:
    with pytest.raises(InputError) as caught:
        wheel_commands(BazelSettings(1, "gcc", ("3.12",), ("gfx90a",)), BuildOptions(version))
    assert str(caught.value) == f"--version: is {version!r}; expected a version such as 0.12.0 (PEP 440)"


@pytest.mark.parametrize("version", ["VERSION", "VERSION.post1", "0.12.0rc1"])
def test_the_version_may_be_a_placeholder(version: str) -> None:
    made = wheel_commands(BazelSettings(1, "gcc", ("3.12",), ("gfx90a",)), BuildOptions(version))
    assert version in made[1].words
