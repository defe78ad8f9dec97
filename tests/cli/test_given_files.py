"""Pipes, which nobody may ever write to, and devices, which never end, are refused rather than read."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

ARTIFACTS = ("--artifact-dir", ".", "--dest-dir", "out")


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", ".", "--baseline", "pipe"),
        ("audit", ".", "--config", "pipe"),
        ("build", *ARTIFACTS, "--recipe", "pipe"),
        ("jax", "bazelrc", "--settings", "pipe"),
        ("wheel", "--spec", "pipe"),
        ("wheel", "--spec", "spec.toml", "--src-list", "pipe"),
        ("artifacts", "import", ".", "--table", "pipe", "--output", "out"),
    ],
    ids=" ".join,
)
def test_a_pipe_instead_of_a_small_file_is_refused(arguments: tuple[str, ...], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "spec.toml").write_text("")
    command = [sys.executable, "-m", "rocwheel", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("error: pipe: can't be read")
    assert "isn't a regular file" in done.stderr


@pytest.mark.parametrize("given", ["pipe.whl", "/dev/zero"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect",),
        ("audit",),
        ("report", "--output", "out.html"),
        ("verify",),
        ("repair",),
        ("attest",),
        ("device", "list"),
        ("device", "extract", "--output", "out"),
        ("device", "prune", "--targets", "gfx906", "--output", "out"),
        ("device", "split", "--output", "out"),
        ("runpath", "show"),
        ("runpath", "set", "$ORIGIN", "--output", "out"),
        ("targets", "coherent"),
        ("targets", "runs-on", "gfx906"),
    ],
    ids=" ".join,
)
def test_a_pipe_or_device_is_refused_without_reading_it(
    arguments: tuple[str, ...], given: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.whl")
    finished = run(*arguments, given)
    assert finished.status == (1 if given == "pipe.whl" and arguments == ("verify",) else 2)
    assert f"{given}: " in finished.stdout + finished.stderr
