"""The folders that examples of the documentation begin with, made of the sample SDK."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

from rocwheel.demo.demo import SAMPLE_SDK
from rocwheel.packages.job import BuildJob, PlanJob

__all__ = ["prepare"]


def prepare(kind: str, folder: Path) -> None:
    """Fill ``folder``: ``artifacts``, or ``packages`` and ``site-packages`` too. Raise `KeyError` for an unknown kind."""
    {"artifacts": _artifacts, "packages": _packages}[kind](folder)


def _artifacts(folder: Path) -> None:
    shutil.copytree(SAMPLE_SDK, folder / "artifacts")


def _packages(folder: Path) -> None:
    _artifacts(folder)
    BuildJob(PlanJob(folder / "artifacts"), folder / "packages").run()
    for wheel in sorted((folder / "packages/dist").glob("*.whl")):
        with zipfile.ZipFile(wheel) as opened:
            opened.extractall(folder / "site-packages")
