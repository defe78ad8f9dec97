"""Installed packages prepare their development files."""

from __future__ import annotations

import shutil
import zipfile
from typing import TYPE_CHECKING

from faults.case import Case
from faults.cases.inputs import copy_sample, prepared

if TYPE_CHECKING:
    from faults.case import Place

__all__ = ["CASES"]


def _prepare(place: Place) -> None:
    """Build the packages of the sample SDK and unpack all of them into one folder, as installers do."""
    copy_sample(place.root / "artifacts")
    words = ("build", "--artifact-dir", place.root / "artifacts", "--dest-dir", place.out)
    prepared(place, *words, "--default-family", "gfx906", "--selector", "wheel")
    for path in sorted((place.out / "dist").glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(place.given)


def _install(place: Place) -> None:
    shutil.copytree(place.given, place.out, symlinks=True)


CASES = (Case("init", lambda _: ("init",), _prepare, _install, module="rocm_sdk", site=lambda place: place.out),)
