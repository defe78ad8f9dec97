"""Helpers for test modules that were written for the reference implementation's packages.

The self-tests use other helpers.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

from .._platform import this_platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

__all__ = [
    "assert_is_physical_package",
    "exe_suffix",
    "exec",
    "find_console_script",
    "get_module_shared_libraries",
    "get_python_cmd",
    "is_windows",
    "run_command",
]

is_windows = this_platform().is_windows

exe_suffix = this_platform().program_suffix
"""The suffix of program file names."""


def get_python_cmd(extra_args: Sequence[str] | None = None) -> list[str]:
    """Return the command that runs this Python, if possible without the current directory on ``sys.path``."""
    safe = ["-P"] if sys.version_info >= (3, 11) else []
    return [sys.executable, *safe, *(extra_args or ())]


def run_command(args: Sequence[str | Path], cwd: Path | None = None, capture: bool = False) -> bytes | None:
    """Print a command, run it without input, and return its output if ``capture`` is true.

    Raises `subprocess.CalledProcessError` for a nonzero status.
    """
    words = [str(word) for word in args]
    print(f"$ {shlex.join(words)}", flush=True)
    output = subprocess.PIPE if capture else None
    done = subprocess.run(words, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, check=True)
    return done.stdout


exec = run_command  # noqa: A001 (its name in older releases)


def assert_is_physical_package(mod: ModuleType) -> None:
    """Raise `AssertionError` unless a module is a folder with an ``__init__.py``."""
    if mod.__file__ is None or Path(mod.__file__).name != "__init__.py":
        msg = f"{mod.__name__} is not a folder with an __init__.py, but {mod.__file__}"
        raise AssertionError(msg)


def get_module_shared_libraries(mod: ModuleType) -> list[Path]:
    """Return every file below a package that has the name of a shared library."""
    root = Path(str(mod.__file__)).parent
    patterns = ("*.dll",) if is_windows else ("*.so", "*.so.*")
    return sorted({path for pattern in patterns for path in root.rglob(pattern)})


def find_console_script(script_name: str) -> Path | None:
    """Return the path of a console script that belongs to this Python or to the user, or `None`."""
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", "nt_user" if is_windows else "posix_user")]
    name = script_name if script_name.endswith(exe_suffix) else f"{script_name}{exe_suffix}"
    return next((path for folder in folders if (path := Path(folder, name)).exists()), None)
