"""``rocwheel jax bazelrc`` as a user runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow


def test_bazelrc_prints_the_fragment(project: Path) -> None:
    first, second = (rocwheel("jax", "bazelrc", cwd=project, environ={"PYTHONHASHSEED": seed}) for seed in "12")
    assert first.returncode == 0
    assert first.stdout.startswith("# Made by rocwheel jax bazelrc from rocm.toml; sha256 of what follows: ")
    assert "build:rocm_build --repo_env=CC=/usr/bin/gcc\n" in first.stdout
    assert first.stdout == second.stdout


def test_bazelrc_prints_what_changes_in_its_file(project: Path) -> None:
    assert rocwheel("jax", "bazelrc", "-o", "rocm.bazelrc", cwd=project).returncode == 0
    assert rocwheel("jax", "bazelrc", "-o", "rocm.bazelrc", cwd=project).stdout == ""
    settings = project / "rocm.toml"
    settings.write_text(settings.read_text().replace("3.12", "3.13"))
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


def test_check_needs_a_file_to_compare_with(project: Path) -> None:
    failed = rocwheel("jax", "bazelrc", "--check", cwd=project)
    assert failed.returncode == 2
    assert "--check compares with a file: name it with --output" in failed.stderr


def test_unknown_targets_are_named(project: Path) -> None:
    settings = project / "rocm.toml"
    settings.write_text(settings.read_text().replace("gfx90a", "gfx90b"))
    failed = rocwheel("jax", "bazelrc", cwd=project)
    assert failed.returncode == 2
    assert "rocm.toml: targets" in failed.stderr
    assert "gfx90b" in failed.stderr


@pytest.mark.parametrize("option", [(), ("--force",), ("--check",)], ids=["plain", "force", "check"])
def test_bazelrc_never_writes_over_its_settings(project: Path, option: tuple[str, ...]) -> None:
    before = (project / "rocm.toml").read_text()
    (project / "link").symlink_to("rocm.toml")
    for output in ("rocm.toml", "link"):
        done = rocwheel("jax", "bazelrc", "--output", output, *option, cwd=project)
        expected = f"error: {output}: is the file with the settings; expected another file to write to\n"
        assert (done.returncode, done.stderr) == (2, expected)
    assert (project / "rocm.toml").read_text() == before
