"""Tests of what make runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ROOT


def test_make_corpus_runs_every_script_that_fetches_test_files() -> None:
    recipe = re.search(r"^corpus:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    scripts = {path.name for path in (ROOT / "scripts").glob("fetch_*.sh")}
    assert scripts == set(re.findall(r"scripts/(fetch_\w+\.sh)", recipe[1]))
    assert "fetch_device_code_corpus.sh" in scripts


def test_bytecode_is_compiled_even_if_python_may_not_write_bytecode(tmp_path: Path) -> None:
    # Given a copy of the sources and the line that setup, demo and the tests run
    for name in ("Makefile", "src/rocwheel/__init__.py", "src/rocwheel/__main__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "all.mk").write_text("include Makefile\ncompile:\n\t$(COMPILE)\n")
    command = ["make", "-s", "-f", "all.mk", "compile", f"BIN={Path(sys.executable).parent}"]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, check=True)
    compiled = [path.name.partition(".")[0] for path in (tmp_path / "src/rocwheel/__pycache__").iterdir()]
    assert sorted(compiled) == ["__init__", "__main__"]


@pytest.mark.parametrize("target", ["$(VENV)/.demo", "test", "test-fast"])
def test_make_targets_that_start_many_commands_compile_first(target: str) -> None:
    recipe = re.search(rf"^{re.escape(target)}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    assert "\t$(COMPILE)\n" in recipe[1]


def test_processes_started_by_tests_may_write_bytecode() -> None:
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ


def test_setup_installs_the_locked_packages(tmp_path: Path) -> None:
    commands = _commands(tmp_path, "setup")
    assert "--require-hashes --requirement .ci/requirements-demo.txt" in commands
    assert "--require-hashes --requirement .ci/requirements.txt" in commands
    assert ".[" not in commands, "pip would choose versions itself"


def test_the_newest_packages_are_tested_in_a_separate_environment(tmp_path: Path) -> None:
    commands = _commands(tmp_path, "test-newest")
    assert "python3 -m venv .venv-newest" in commands
    assert ".venv-newest/bin/python -m pip install --quiet --editable '.[dev,release,security]'" in commands
    assert ".venv-newest/bin/python -m pytest" in commands
    assert ".ci/requirements" not in commands
    assert ".venv/" not in commands


def test_nothing_is_installed_twice(tmp_path: Path) -> None:
    _copy_makefile(tmp_path)
    (tmp_path / ".venv").mkdir()
    for name in (".demo", ".setup"):
        (tmp_path / ".venv" / name).touch()
    assert "pip install" not in _commands(tmp_path, "setup")
    (tmp_path / ".ci/requirements.txt").write_text("newer")
    os.utime(tmp_path / ".ci/requirements.txt", (4e9, 4e9))
    assert "--require-hashes --requirement .ci/requirements.txt" in _commands(tmp_path, "setup")


def _copy_makefile(folder: Path) -> None:
    for name in ("Makefile", "pyproject.toml", ".ci/requirements.txt", ".ci/requirements-demo.txt"):
        if not (folder / name).exists():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text((ROOT / "Makefile").read_text() if name == "Makefile" else "")


def _commands(folder: Path, target: str) -> str:
    _copy_makefile(folder)
    environ = {name: value for name, value in os.environ.items() if name not in {"NEWEST", "MAKEFLAGS", "MAKELEVEL"}}
    command = ["make", "--dry-run", target]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=True).stdout
