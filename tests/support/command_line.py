"""The command line as a user runs it: in this process, which is quick, or in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from rocwheel.cli import load_commands, main

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Finished", "Run", "as_user", "needs_setpriv", "rocwheel", "run", "run_json", "with_files_up_to"]


class Finished(NamedTuple):
    """How a command ended."""

    status: int
    stdout: str
    stderr: str


Run = Callable[..., Finished]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command line of rocwheel in this process."""
    load_commands()  # before output is captured anew for each test

    def run(*arguments: str | Path) -> Finished:
        monkeypatch.setattr(sys, "argv", ["rocwheel", *map(str, arguments)])
        try:
            main()
            status = 0
        except SystemExit as ended:
            status = int(ended.code or 0)
        output = capsys.readouterr()
        return Finished(status, output.out, output.err)

    return run


def rocwheel(
    *arguments: str | Path,
    cwd: Path | None = None,
    before: Sequence[str] = (),
    environ: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    """Run a command line of rocwheel in a process of its own; ``before`` is a command that runs it in turn."""
    command = [*before, sys.executable, "-m", "rocwheel", *map(str, arguments)]
    variables = {**os.environ, **environ}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=variables)


def run_json(*arguments: str | Path, cwd: Path) -> dict[str, Any]:
    """Run rocwheel in a folder with ``--json``, which is put before two dashes, and return what it prints."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    value: dict[str, Any] = json.loads(rocwheel(*arguments[:end], "--json", *arguments[end:], cwd=cwd).stdout)
    return value


needs_setpriv = pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv (util-linux) is not installed")


def as_user() -> list[str]:
    """Return what to put before a command so that permissions count even for root."""
    return ["setpriv", "--bounding-set=-all"] if os.geteuid() == 0 else []


def with_files_up_to(size: int) -> list[str]:
    """Return what to put before a command so that larger files can't be written, as on a full disk; in bytes."""
    return ["sh", "-c", f'ulimit -f {size // 512} && exec "$@"', "sh"]
