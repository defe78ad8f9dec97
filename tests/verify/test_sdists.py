"""Sdists compared with their names."""

from __future__ import annotations

import gzip
import tarfile
from typing import TYPE_CHECKING

import pytest

from rocwheel.verify.files import Fault, verify_sdist
from rocwheel.wheels.sdist import write_sdist
from tests.support.bombs import tar_block

if TYPE_CHECKING:
    from pathlib import Path


def make(path: Path, text: str = "Metadata-Version: 2.2\nName: rocm\nVersion: 7.0\n") -> Path:
    write_sdist(path, "rocm-7.0", {"PKG-INFO": text.encode(), "setup.py": b"setup()\n"}, mtime=0)
    return path


def test_a_valid_sdist_has_no_faults(tmp_path: Path) -> None:
    path = make(tmp_path / "rocm-7.0.tar.gz")
    found = verify_sdist(path)
    assert (found.kind, found.files, found.unchecked, found.faults) == ("sdist", 1, 1, ())
    assert found.size == path.stat().st_size


def test_a_renamed_or_damaged_sdist_is_reported(tmp_path: Path) -> None:
    other = make(tmp_path / "rocm-7.1.tar.gz")
    place = f"{other}!PKG-INFO"
    found = "its metadata has the version '7.0'"
    assert verify_sdist(other).faults == (Fault("changed", place, found, "'7.1', as in the file name"),)
    cut = make(tmp_path / "rocm-7.0.tar.gz")
    cut.write_bytes(cut.read_bytes()[:-6])
    [fault] = verify_sdist(cut).faults
    assert (fault.kind, fault.place) == ("damaged", str(cut))
    assert fault.found.startswith("isn't a readable .tar.gz archive")


@pytest.mark.parametrize("name", ["rocm.tar.gz", "notes.tar.gz"])
def test_an_invalid_sdist_name_is_reported(tmp_path: Path, name: str) -> None:
    path = make(tmp_path / name)
    [fault] = verify_sdist(path).faults
    assert (fault.place, fault.found) == (str(path), "isn't a valid wheel or sdist file name")


def test_an_sdist_without_metadata_is_reported(tmp_path: Path) -> None:
    write_sdist(tmp_path / "rocm-7.0.tar.gz", "rocm-7.0", {"setup.py": b""}, mtime=0)
    [fault] = verify_sdist(tmp_path / "rocm-7.0.tar.gz").faults
    assert (fault.kind, fault.place) == ("missing", f"{tmp_path}/rocm-7.0.tar.gz!PKG-INFO")


def test_an_sdist_with_duplicate_metadata_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "rocm-7.0.tar.gz"
    text = b"Metadata-Version: 2.2\nName: rocm\nVersion: 7.0\n"
    names = ("rocm-7.0/PKG-INFO", "rocm-7.0/./PKG-INFO")
    blocks = [tar_block(tarfile.REGTYPE, text, name=name) for name in names]
    path.write_bytes(gzip.compress(b"".join(blocks) + bytes(1024)))
    assert verify_sdist(path).faults == (
        Fault("damaged", str(path), "has rocm-7.0/PKG-INFO twice", "each file only once"),
    )
