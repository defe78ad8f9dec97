"""Entry points of the console scripts.

Each script runs the program with the same name, from the development tree if possible.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

from . import _build_info
from ._start import this_starter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

SITE = Path(__file__).parent.parent


def function_name(script: str) -> str:
    """Return the name of a console script's entry point, such as ``amdclangpp`` for ``amdclang++``."""
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
    try:
        program = _find_program(info)
    except (RuntimeError, OSError) as e:
        sys.exit(f"{script}: {e}")
    except KeyboardInterrupt:  # expanding the development tree takes a while
        sys.stderr.write(f"{script}: interrupted; the next run starts over\n")
        sys.exit(130)
    if program is None:
        sys.exit(f"{script}: {SITE / _build_info.PLATFORM_MODULE / info['path']} is missing. Reinstall the package.")
    for variable, folders in info.get("prepend", {}).items():
        _prepend(variable, [str(SITE / folder) for folder in folders if (SITE / folder).is_dir()])
    try:
        this_starter().start(program, sys.argv[1:])
    except OSError as e:
        sys.exit(f"{script}: {program} can't be run ({e.strerror})")


def _find_program(info: _build_info.ScriptInfo) -> Path | None:
    """Return the program's path, or `None` if the program is missing.

    Raises `RuntimeError` if the development tree can't be expanded, and `OSError` if access is denied.
    """
    roots = [SITE / _build_info.PLATFORM_MODULE]
    if _build_info.DEVEL_MODULE and (SITE / _build_info.DEVEL_PACKAGE / "__init__.py").exists():
        roots[:0] = _find_devel_root(expand=info["expands"])
    starter = this_starter()
    programs = (program for root in roots for program in starter.spellings(root / info["path"]))
    return next((program for program in programs if _is_there(program)), None)


def _is_there(path: Path) -> bool:
    """Return whether a file exists. Unlike `Path.exists` in some Python versions, raises `PermissionError`."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _find_devel_root(*, expand: bool) -> list[Path]:
    if expand:
        try:
            return [import_module(f"{_build_info.SDK_MODULE}._devel").get_devel_root()]
        except ImportError:  # core and devel are installed, but rocm isn't
            pass
    root = SITE / _build_info.DEVEL_MODULE
    return [root] if os.access(root / ".expanded.json", os.R_OK) else []


def _prepend(variable: str, folders: list[str]) -> None:
    present = [folder for folder in os.environ.get(variable, "").split(os.pathsep) if folder]
    new = [folder for folder in folders if folder not in present]
    if new:
        os.environ[variable] = os.pathsep.join([*new, *present])
