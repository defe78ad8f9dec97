"""What the commands of ``rocwheel torch`` have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel, run_json

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow


@pytest.mark.parametrize("command", ["init", "requirements"])
def test_a_malformed_version_is_bad_usage(command: str, tmp_path: Path) -> None:
    failed = rocwheel("torch", command, "--sdk-version", "seven", cwd=tmp_path)
    assert (failed.returncode, failed.stdout, failed.stderr) == (
        2,
        "",
        "error: --sdk-version: is 'seven'; expected a version such as 7.14.0 (PEP 440)\n",
    )


@pytest.mark.parametrize(
    ("command", "arguments"),
    [("init", ["--sdk-version", "7.0"]), ("requirements", ["--sdk-version", "7.0"]), ("runpath", [])],
)
def test_machines_get_the_same_text(command: str, arguments: list[str], tmp_path: Path) -> None:
    text = rocwheel("torch", command, *arguments, cwd=tmp_path).stdout
    value = run_json("torch", command, *arguments, cwd=tmp_path)
    assert value == {"schema": f"rocwheel.torch.{command}/1", "text": text}


@pytest.mark.parametrize("command", ["init", "requirements", "runpath"])
def test_the_help_has_an_example(command: str, tmp_path: Path) -> None:
    assert "Example: " in rocwheel("torch", command, "--help", cwd=tmp_path).stdout
