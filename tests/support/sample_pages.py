"""The folders that examples of the documentation begin with, made of the sample SDK."""

from __future__ import annotations

import shutil
import zipfile
from typing import TYPE_CHECKING

from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.demo import SAMPLE_SDK
from rocwheel.index.families import write_indexes
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["prepare"]


def prepare(kind: str, folder: Path) -> None:
    """Fill ``folder`` with what examples of a kind begin with. Raise `KeyError` for an unknown kind."""
    kinds = {"artifacts": _artifacts, "packages": _packages, "checkout": _checkout, "mistakes": _mistakes}
    kinds[kind](folder)


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


def _mistakes(folder: Path) -> None:
    """Make artifacts, their packages without an index, a release that lacks a wheel of its index, and a wrong wheel."""
    _artifacts(folder)
    for place in ("packages", "released"):
        BuildJob(PlanJob(folder / "artifacts"), folder / place).run()
    write_indexes([folder / "released/dist"], folder / "released/simple")
    next((folder / "released/dist").glob("rocm_profiler-*.whl")).unlink()
    library = (FIXTURES / "v22/libtwo.plain.so").read_bytes()
    (folder / "librocsparse.so").write_bytes(library)
    made = make_wheel(folder / "other", "demo", {"demo/__init__.py": b"", "demo/_ext.so": library})
    made.rename(made.with_name("demo-1.0-py3-none-win_amd64.whl"))
