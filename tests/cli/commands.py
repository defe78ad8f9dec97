"""Commands of rocwheel, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["run", "run_json"]


def run(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run rocwheel in a folder."""
    command = [sys.executable, "-m", "rocwheel", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def run_json(*arguments: str | Path, cwd: Path) -> dict[str, Any]:
    """Run rocwheel in a folder with ``--json``, before what stands behind two dashes, and return what it tells."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    value: dict[str, Any] = json.loads(run(*arguments[:end], "--json", *arguments[end:], cwd=cwd).stdout)
    return value
