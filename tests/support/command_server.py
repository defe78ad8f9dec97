"""A process that has loaded what rocwheel imports, and that forks one for each command line it is sent.

A new interpreter takes a quarter of a second of a processor to import the same modules again, hundreds of times. What
is forked is a process of its own from there on: it has its own output, working folder and variables, loads the command
line as ``python -m rocwheel`` does, and ends as an interpreter ends, but for taking apart what it has loaded. The
command line itself (``rocwheel.cli``) is not loaded before, so it loads what each command needs, as for a user.

The server is run by `tests.support.command_line` with its end of a pair of sockets as standard input.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import runpy
import socket
import sys
import threading
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["end", "load", "run_module", "serve"]

_OTHERS = ("click", "rich.console", "rich.table", "rich.progress")
_LEFT_OUT = {f"rocwheel.{name}" for name in ("__main__", "api", "build.cluster", "cli", "sample", "sdk", "stores")}
"""What a command loads by itself: the command line, and what starts threads, which don't survive a fork."""


def load() -> None:
    """Import what commands import, but for the command line itself."""
    _load_below("rocwheel")
    for name in _OTHERS:
        import_module(name)


def _load_below(name: str) -> None:
    module = import_module(name)
    for part in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}."):
        if part.name not in _LEFT_OUT:
            _load_below(part.name)


def serve(requests: socket.socket) -> None:
    """Answer requests until the other side is gone; return in each process that is to be a command."""
    while True:
        message, files, _, _ = socket.recv_fds(requests, 1, 3)
        if not message:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            requests.close()
            _become(files)
            return
        for file in files:
            os.close(file)
        _, status = os.waitpid(pid, 0)
        requests.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(files: list[int]) -> None:
    """Take what a request gives: what is wanted as JSON, standard output and standard error, as open files."""
    with os.fdopen(files[0], encoding="utf-8") as file:
        request: dict[str, Any] = json.load(file)
    for number, output in enumerate(files[1:], 1):
        os.dup2(output, number)
        os.close(output)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.umask(request["umask"])
    os.chdir(request["cwd"])
    sys.path[0] = request["cwd"]
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv[1:] = request["arguments"]


def run_module(name: str) -> int:
    """Run a module as ``python -m`` does; return the exit status as an interpreter does."""
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as e:
        if e.code is None or isinstance(e.code, int):
            return e.code or 0
        print(e.code, file=sys.stderr)
        return 1
    except BaseException:  # whatever it is, an interpreter shows it
        traceback.print_exc()
        return 1
    return 0


def end(status: int) -> NoReturn:
    """End as an interpreter does, but for taking apart what was loaded, which takes longer than short commands."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        status = 120
    os._exit(status)


if __name__ == "__main__":
    gc.disable()
    load()
    gc.freeze()
    gc.enable()
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a thread has been started, which forks would lose"
    connection = socket.socket(fileno=os.dup(0))
    connection.send(b"ready")
    serve(connection)
    end(run_module("rocwheel"))
