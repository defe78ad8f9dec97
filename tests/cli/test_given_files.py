"""Small files that options name: a pipe, which nobody may ever write to, is refused rather than waited for."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

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
        ("artifacts", "from-prefix", ".", "--table", "pipe", "--dest-dir", "out"),
    ],
    ids=" ".join,
)
def test_a_pipe_in_place_of_a_small_file_is_refused(arguments: tuple[str, ...], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "spec.toml").write_text("")
    command = [sys.executable, "-m", "rocwheel", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("error: pipe: can't be read")
    assert "not a regular file" in done.stderr
