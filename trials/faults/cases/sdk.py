"""Installed packages prepare their development files."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import shutil
import zipfile
from typing import TYPE_CHECKING

from trials.faults.case import Case
from trials.faults.cases.inputs import copy_sample, prepared

if TYPE_CHECKING:
    from pathlib import Path

    from trials.faults.case import Place

__all__ = ["CASES", "check_record", "install", "prepare_packages"]


def prepare_packages(place: Place) -> None:
    """Build the packages of the sample SDK and unpack all of them into one folder, as installers do."""
    copy_sample(place.root / "artifacts")
    words = ("build", "--artifact-dir", place.root / "artifacts", "--dest-dir", place.out)
    prepared(place, *words, "--default-family", "gfx906", "--selector", "wheel")
    for path in sorted((place.out / "dist").glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(place.given)


def install(place: Place) -> None:
    """Have the packages stand where the command prepares them, as they were installed."""
    shutil.copytree(place.given, place.out, symlinks=True)


def check_record(place: Place) -> list[str]:
    """Return what RECORD lists that is not there, or that has another hash."""
    [record] = place.out.glob("rocm_sdk_devel-*.dist-info/RECORD")
    rows = list(csv.reader(record.read_text().splitlines()))
    if any(len(row) != 3 for row in rows):
        return ["RECORD has a line that is none"]
    lines = [f"RECORD lists {row[0]}" for row in rows if not os.path.lexists(place.out / row[0])]
    return lines + [f"RECORD has another hash of {row[0]}" for row in rows if not _is_as(place.out / row[0], row[1])]


def _is_as(path: Path, noted: str) -> bool:
    """Return whether a file has the hash that is noted, if one is; a file that has just gone has it."""
    try:
        data = path.read_bytes() if noted else b""
    except FileNotFoundError:
        return True
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode()
    return not noted or noted == f"sha256={digest.rstrip('=')}"


CASES = (
    Case(
        "init",
        lambda _: ("init",),
        prepare_packages,
        install,
        between=(
            "rocm_sdk_devel/.tree*",
            "rocm_sdk_devel/_devel.tar",
            "rocm_sdk_devel/_record.*",
            "*/RECORD",
            "_rocm_sdk_devel/.expanded.json*",
            "_rocm_sdk_devel/.device_links/*.new",
        ),
        check=check_record,
        module="rocm_sdk",
        site=lambda place: place.out,
    ),
)
