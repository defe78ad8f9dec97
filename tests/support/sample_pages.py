"""The folders that examples of the documentation begin with, made of the sample SDK."""

from __future__ import annotations

import shutil
import zipfile
from typing import TYPE_CHECKING

from rocwheel.demo.demo import SAMPLE_SDK
from rocwheel.packages.job import BuildJob, PlanJob

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["prepare"]


def prepare(kind: str, folder: Path) -> None:
    """Fill ``folder`` with what examples of a kind begin with. Raise `KeyError` for an unknown kind."""
    {"artifacts": _artifacts, "packages": _packages, "checkout": _checkout}[kind](folder)


def _checkout(folder: Path) -> None:
    shutil.copytree(SAMPLE_SDK, folder / "src/rocwheel/sample")


def _artifacts(folder: Path) -> None:
    shutil.copytree(SAMPLE_SDK, folder / "artifacts")


def _packages(folder: Path) -> None:
    _artifacts(folder)
    BuildJob(PlanJob(folder / "artifacts"), folder / "packages").run()
    for wheel in sorted((folder / "packages/dist").glob("*.whl")):
        with zipfile.ZipFile(wheel) as opened:
            opened.extractall(folder / "site-packages")
