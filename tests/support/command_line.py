"""The command line as a user runs it: in this process, which is quickest, or in a process of its own.

Such a process is forked from one that has loaded what commands import (`tests.support.command_server`). It gets a new
interpreter where another command is to run it, and where a test sets variables that an interpreter reads when it
starts: with another ``PYTHONHASHSEED``, for one, sets are in another order, which must not change what is made.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TextIO

import pytest

from rocwheel.cli import load_commands, main
from tests.support.places import ROOT

__all__ = ["ASCII", "Finished", "Run", "as_user", "needs_setpriv", "rocwheel", "run", "run_json", "with_files_up_to"]


ASCII = MappingProxyType({"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"})
"""Variables by which Python takes names of files for ASCII."""


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
    words = [*map(str, arguments)]
    variables = {**os.environ, **environ}
    if not before and _of_interpreter(variables) == _VARIABLES and _LOCK.acquire(blocking=False):
        try:
            return _server(os.getpid()).run(words, cwd, variables)
        finally:
            _LOCK.release()
    command = [*before, sys.executable, "-m", "rocwheel", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=variables)


def _of_interpreter(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that count when an interpreter or a C library starts."""
    names = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC", "GLIBC", "TZ")
    return {name: value for name, value in variables.items() if name.startswith(names)}


_VARIABLES = _of_interpreter(os.environ)
_LOCK = threading.Lock()
"""Held while a command runs: where a test runs two at once, the other gets a new interpreter."""


class _Server:
    """The process that forks commands, for this process alone."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "tests.support.command_server"]
        self._process = subprocess.Popen(command, stdin=theirs.fileno(), cwd=ROOT)
        theirs.close()
        self._answer()
        atexit.register(self._end)

    def run(
        self, words: Sequence[str], cwd: Path | None, variables: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a command line to its end."""
        umask = os.umask(0o022)
        os.umask(umask)
        place = str(cwd or Path.cwd())
        request = {"arguments": words, "cwd": place, "environ": dict(variables), "umask": umask}
        with _open_file() as wanted, _open_file() as out, _open_file() as err:
            json.dump(request, wanted)
            wanted.seek(0)
            socket.send_fds(self._socket, [b"?"], [file.fileno() for file in (wanted, out, err)])
            status = int(self._answer())
            return subprocess.CompletedProcess(["rocwheel", *words], status, _text(out), _text(err))

    def _answer(self) -> str:
        answer = self._socket.recv(16).decode()
        assert answer, "the server of commands has ended"
        return answer

    def _end(self) -> None:
        self._socket.close()
        self._process.wait()


def _open_file() -> TextIO:
    """Return a file of no name."""
    return os.fdopen(os.memfd_create("rocwheel"), "w+")


def _text(output: TextIO) -> str:
    output.seek(0)
    return output.read()


@cache
def _server(process: int) -> _Server:
    """Return the server of a process, this one: one that is forked from it has none yet."""
    return _Server()


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
