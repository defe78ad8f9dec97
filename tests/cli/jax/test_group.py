"""What the commands of ``rocwheel jax`` have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel, run_json

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize(
    ("arguments", "schema", "keys"),
    [
        (["jax", "bazelrc"], "rocwheel.jax.bazelrc/1", {"text", "diff"}),
        (["jax", "commands", "--version", "1.0"], "rocwheel.jax.commands/1", {"form", "text"}),
        (["jax", "wheel-targets"], "rocwheel.jax.wheel_targets/1", {"text"}),
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


@pytest.mark.parametrize("option", ["--rules", "--library"])
def test_labels_of_rocwheel_are_refused_beside_jax_own_programs(project: Path, option: str) -> None:
    made = rocwheel("jax", "wheel-targets", "--tool", "jax", option, "//x:y", cwd=project)
    assert (made.returncode, made.stdout) == (2, "")
    said = f"{option}: is '//x:y', but --tool jax doesn't use rocwheel. Leave it out, or give --tool rocwheel."
    assert said in " ".join(made.stderr.split())


@pytest.mark.parametrize("command", ["bazelrc", "starlark", "commands", "translate", "wheel-targets", "wheel-binary"])
def test_the_help_has_an_example(command: str, tmp_path: Path) -> None:
    assert "Example: " in rocwheel("jax", command, "--help", cwd=tmp_path).stdout
