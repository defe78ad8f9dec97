"""Where this machine has a version of Python: of uv, of pyenv, on ``PATH``, or in ``/usr``; nothing is downloaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["find_python"]


def find_python(version: str) -> Path | None:
    """Return the interpreter of a version such as ``3.12``, with its links resolved, or `None`."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders = sorted(map(str, pyenv.glob(f"versions/{version}.*/bin")))
    places = [*folders, *os.environ["PATH"].split(os.pathsep), "/usr/local/bin", "/usr/bin"]
    uv = str(Path(sys.executable).parent / "uv")
    find = [uv, "python", "find", "--system", "--no-project", "--no-python-downloads", version]
    environ = {**os.environ, "PATH": os.pathsep.join(places)}
    asked = subprocess.run(find, capture_output=True, text=True, check=False, env=environ)
    return Path(asked.stdout.strip()).resolve() if asked.returncode == 0 else None
