"""Entry points of the console scripts. Each script runs the profiler's program that has the same name."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from . import _build_info

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

SITE = Path(__file__).parent.parent


def function_name(script: str) -> str:
    """Return the name of a console script's entry point, such as ``rocprof_compute`` for ``rocprof-compute``."""
    return "".join(c if c.isascii() and c.isalnum() else "p" if c == "+" else "_" for c in script)


def __getattr__(name: str) -> Callable[[], NoReturn]:
    """Return the entry point with this name. Each console script of the package has an entry point."""
    for script in _build_info.SCRIPTS:
        if function_name(script) == name:
            return lambda: _run(script)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def _run(script: str) -> NoReturn:
    """Replace this process with the program, so that its output, signals, and exit status reach the caller."""
    info = _build_info.SCRIPTS[script]
    program = SITE / _build_info.PLATFORM_MODULE / info["path"]
    for variable, folders in info.get("prepend", {}).items():
        _prepend(variable, [str(SITE / folder) for folder in folders if (SITE / folder).is_dir()])
    # Python ignores these signals, and programs would inherit that: a write to a closed pipe wouldn't end them.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execv(program, [str(program), *sys.argv[1:]])  # noqa: S606 (a file of the package, by its full path)
    except OSError as e:
        sys.exit(f"{script}: {program} can't be run ({e.strerror}). Reinstall rocm-profiler.")


def _prepend(variable: str, folders: list[str]) -> None:
    present = [folder for folder in os.environ.get(variable, "").split(os.pathsep) if folder]
    new = [folder for folder in folders if folder not in present]
    if new:
        os.environ[variable] = os.pathsep.join([*new, *present])
