"""What tests ask the device commands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

__all__ = ["targets_of"]


def targets_of(run: Run, path: Path) -> list[list[str]]:
    """Return the targets of each bundle of a file, as ``rocwheel device list`` tells them."""
    _, out, _ = run("device", "list", path, "--json")
    return [[entry["target"] for entry in bundle["entries"]] for bundle in json.loads(out)["bundles"]]
