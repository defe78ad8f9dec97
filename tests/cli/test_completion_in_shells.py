"""Completion in the shells themselves: each sources the script that ``rocwheel --show-completion`` prints for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ASK = {
    "bash": (
        "source ./script; COMP_WORDS=(rocwheel targets det); COMP_CWORD=2; "
        'function=$(complete -p rocwheel | sed "s/.* -F \\([^ ]*\\) .*/\\1/"); "$function" rocwheel det targets; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    ),
    "zsh": (
        "compdef() { :; }; _describe() { print -rl -- ${completions_with_descriptions}; }; source ./script; "
        "words=(rocwheel targets det); CURRENT=3; _rocwheel_completion"
    ),
    "fish": 'source ./script; complete --do-complete "rocwheel targets det"',
}
"""What each shell does when somebody types ``rocwheel targets det<TAB>``, without a terminal."""


@pytest.mark.parametrize("shell", ASK)
def test_a_shell_completes_a_command(shell: str, tmp_path: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"needs {shell} (Debian package {shell})")
    home = {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environ = {**os.environ, **home}
    script = subprocess.run(
        ["rocwheel"],
        env={**environ, "_ROCWHEEL_COMPLETE": f"{shell}_source"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (tmp_path / "script").write_text(script)
    options = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    done = subprocess.run(
        [shell, *options, "-c", ASK[shell]], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert "detect" in done.stdout, done.stderr
