"""``rocwheel jax commands`` as a user runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow


def test_missing_settings_are_bad_usage(tmp_path: Path) -> None:
    failed = rocwheel("jax", "commands", "--version", "1.0", cwd=tmp_path)
    assert (failed.returncode, failed.stderr) == (
        2,
        "error: rocm.toml: can't be read (No such file or directory). Check --settings.\n",
    )


@pytest.mark.parametrize(
    ("form", "start"), [("shell", "#!/bin/sh\n"), ("makefile", "# make, or make wheels:"), ("ci", "- name: ")]
)
def test_commands_have_three_forms(project: Path, form: str, start: str) -> None:
    made = rocwheel("jax", "commands", "--version", "0.12.0", "--form", form, cwd=project)
    assert made.returncode == 0
    assert made.stdout.startswith(start)


def test_commands_build_remotely_where_the_settings_say_how(project: Path) -> None:
    refused = rocwheel("jax", "commands", "--version", "1.0", "--remote", cwd=project)
    assert (refused.returncode, refused.stderr) == (
        2,
        "error: rocm.toml: has no remote-execution; expected a file that defines the config rocm_rbe\n",
    )
    with (project / "rocm.toml").open("a") as settings:
        settings.write('remote-execution = "rbe.bazelrc"\n')
    made = rocwheel("jax", "commands", "--version", "1.0", "--remote", cwd=project)
    assert made.stdout.count("\nbazel build --config=rocm_build_remote --config=python312 //") == 2
