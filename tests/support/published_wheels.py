"""The published wheels that long tests take: those of `make corpus` and of `make repair-proof`, each by its hash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.places import CACHE
from tests.support.repair_proof.corpus import download, read_corpus
from trials.corpora.wheels import fetch, read_list

if TYPE_CHECKING:
    from pathlib import Path

    from trials.corpora.wheels import System

__all__ = ["JAX_WHEELS", "good_wheel", "jax_wheel"]

JAX_WHEELS = CACHE / "wheels"
"""Where JAX's wheels are once they were fetched; those of `make corpus` are where `trials.corpora.wheels` has them."""


def jax_wheel(stem: str) -> Path:
    """Return JAX's wheel whose file name begins so, after a download if it is not here."""
    [wheel] = [wheel for wheel in read_corpus() if wheel.file.startswith(f"{stem}-")]
    return download(wheel, JAX_WHEELS)


def good_wheel(stem: str, system: System) -> Path:
    """Return the wheel of `make corpus` for a system whose file name begins so, after a download if it is not here."""
    [wheel] = [wheel for wheel in read_list() if wheel.system == system and wheel.file.startswith(f"{stem}-")]
    fetch([wheel])
    return wheel.path
