"""What cases read: parts of the sample SDK, small wheels, and what commands make of them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from rocwheel.demo import SAMPLE_SDK
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel
from trials.faults.forked import run

if TYPE_CHECKING:
    from pathlib import Path

    from trials.faults.case import Place

__all__ = ["LIBRARY", "add_wheel", "copy_sample", "prepared"]

LIBRARY = FIXTURES / "v22/libtwo.plain.so"
"""A library with device code for two GPUs."""
_SAMPLE = ("base_*", "core-hip_dev*", "core-hip_lib*", "core-hip_run*", "blas_lib_generic*", "blas_lib_gfx906*")


def copy_sample(folder: Path, *patterns: str) -> None:
    """Copy some artifacts of the sample SDK, by default those of a small set of packages."""
    folder.mkdir(parents=True)
    for pattern in patterns or _SAMPLE:
        for path in sorted(SAMPLE_SDK.glob(pattern)):
            shutil.copy(path, folder)


def add_wheel(folder: Path, name: str) -> Path:
    """Write a wheel of pure Python."""
    return make_wheel(folder, name, {f"{name}.py": b"pass\n"}, tag="py3-none-any", is_purelib=True)


def prepared(place: Place, *words: str | Path) -> None:
    """Run a command that makes what a case reads."""
    ended = run(place.command((*words, "--quiet")))
    assert ended.status == 0, ended.messages
