"""Virtual environments as tests need them: made in a moment, with the pip of the tests to install into them.

``python -m venv`` installs a pip into each, and compiles it, for seven seconds of a processor.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pip

__all__ = ["make_venv", "pip_for"]


def make_venv(path: Path, *options: str) -> Path:
    """Make a virtual environment of this Python, without a pip, and return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", *options, str(path)], check=True)
    return path / "bin/python"


def pip_for(python: Path) -> list[str]:
    """Return the command that runs the pip of the tests on an interpreter: what ``pip --python`` runs in turn."""
    return [str(python), str(Path(pip.__file__).with_name("__pip-runner__.py"))]
