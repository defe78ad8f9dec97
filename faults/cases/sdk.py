"""Installed packages prepare their development files."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import shutil
import zipfile
from typing import TYPE_CHECKING

from faults.case import Case
from faults.cases.inputs import copy_sample, prepared

if TYPE_CHECKING:
    from pathlib import Path

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


def _check_record(place: Place) -> list[str]:
    """Return what RECORD lists that is not there, or that has another hash."""
    [record] = place.out.glob("rocm_sdk_devel-*.dist-info/RECORD")
    rows = list(csv.reader(record.read_text().splitlines()))
    lines = [f"RECORD lists {row[0]}" for row in rows if not os.path.lexists(place.out / row[0])]
    hashed = [row for row in rows if row[1] and (place.out / row[0]).is_file()]
    return lines + [f"RECORD has another hash of {row[0]}" for row in hashed if row[1] != _hash(place.out / row[0])]


def _hash(path: Path) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).decode()
    return f"sha256={digest.rstrip('=')}"


CASES = (
    Case(
        "init",
        lambda _: ("init",),
        _prepare,
        _install,
        between=(
            "rocm_sdk_devel/.tree*",
            "rocm_sdk_devel/_devel.tar",
            "rocm_sdk_devel/_record.scratch",
            "*/RECORD",
            "_rocm_sdk_devel/.expanded.json*",
            "_rocm_sdk_devel/.device_links/*.new",
        ),
        check=_check_record,
        module="rocm_sdk",
        site=lambda place: place.out,
    ),
)
