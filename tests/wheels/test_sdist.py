"""Tests of `rocwheel.wheels.sdist`."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest
from packaging.utils import parse_sdist_filename

from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.writing import atomic_file
from rocwheel.wheels.metadata import CoreMetadata, render_metadata
from rocwheel.wheels.sdist import SourceDate, sdist_name, write_sdist
from rocwheel.wheels.zip_writer import ZipTime, ZipWriter

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("environment", [{}, {"SOURCE_DATE_EPOCH": ""}], ids=["absent", "empty"])
def test_the_default_date_is_the_first_second_of_1980(environment: dict[str, str]) -> None:
    assert SourceDate.from_environment(environment) == SourceDate(315532800)
    assert SourceDate().zip_time == ZipTime(date=33, time=0)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param("0", (1980, 1, 1, 0, 0, 0), id="before ZIP's years"),
        pytest.param("1700000000", (2023, 11, 14, 22, 13, 20), id="now"),
        pytest.param("253402300799", (2107, 12, 31, 23, 59, 58), id="after ZIP's years"),
    ],
)
def test_zipfile_reads_the_time_in_utc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: str, expected: tuple[int, ...]
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    source_date = SourceDate.from_environment({"SOURCE_DATE_EPOCH": seconds})
    with atomic_file(tmp_path / "a.zip") as file:
        writer = ZipWriter(file, source_date.zip_time)
        writer.begin("a", 0o644, 0, 0)
        writer.end(0, 0)
        writer.close()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.getinfo("a").date_time == expected


@pytest.mark.parametrize(
    "text", ["yesterday", "-1", "1.5", " 1", "0x10", "\u0661", "9" * 13, "9" * 5000], ids=lambda text: text[:13]
)
def test_values_other_than_whole_seconds_are_refused(text: str) -> None:
    message = f"SOURCE_DATE_EPOCH: is {text!r}; expected a whole number of seconds since 1970. Correct or unset it."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        SourceDate.from_environment({"SOURCE_DATE_EPOCH": text})


def test_times_after_the_year_9999_are_refused() -> None:
    assert SourceDate.from_environment({"SOURCE_DATE_EPOCH": "253402300799"}).seconds == 253402300799
    message = (
        "SOURCE_DATE_EPOCH: is 253402300800; expected at most 253402300799, in the year 9999. Correct or unset it."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        SourceDate.from_environment({"SOURCE_DATE_EPOCH": "253402300800"})


BACKEND = b"""
import pathlib, zipfile

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = "hello-1.0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w") as wheel:
        wheel.writestr("hello.py", "GREETING = 'hello'")
        wheel.writestr("hello-1.0.dist-info/METADATA", "Metadata-Version: 2.4\\nName: hello\\nVersion: 1.0\\n")
        wheel.writestr("hello-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("hello-1.0.dist-info/RECORD", "hello.py,,\\n")
    return name
"""
MEMBERS = {
    "pyproject.toml": b'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
    "backend.py": BACKEND,
    "PKG-INFO": render_metadata(CoreMetadata("hello", "1.0")),
}


@pytest.fixture
def sdist(tmp_path: Path) -> Path:
    path = tmp_path / "hello-1.0.tar.gz"
    write_sdist(path, "hello-1.0", MEMBERS, mtime=315532800)
    return path


def test_members_are_sorted_in_one_folder(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        assert archive.getnames() == ["hello-1.0/PKG-INFO", "hello-1.0/backend.py", "hello-1.0/pyproject.toml"]
        assert {(info.uid, info.gid, info.mode, info.mtime) for info in archive} == {(0, 0, 0o644, 315532800)}
        backend = archive.extractfile("hello-1.0/backend.py")
        assert backend is not None
        assert backend.read() == BACKEND
    assert parse_sdist_filename(sdist.name)[0] == "hello"


def test_the_bytes_depend_only_on_the_members(sdist: Path, tmp_path: Path) -> None:
    again = tmp_path / "elsewhere" / "another-name.tar.gz"
    write_sdist(again, "hello-1.0", dict(reversed(MEMBERS.items())), mtime=315532800)
    assert again.read_bytes() == sdist.read_bytes()


def test_the_gzip_header_has_neither_name_nor_date(sdist: Path) -> None:
    assert sdist.read_bytes()[:10] == b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"
    assert len(gzip.decompress(sdist.read_bytes())) % tarfile.RECORDSIZE == 0


@pytest.mark.slow
def test_pip_builds_and_installs_the_sdist_without_an_index(sdist: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"]
    subprocess.run([*pip, str(tmp_path / "site"), str(sdist)], check=True, capture_output=True)
    assert (tmp_path / "site/hello.py").read_text() == "GREETING = 'hello'"


def test_a_file_in_place_of_the_folder_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "dist").touch()
    path = tmp_path / "dist" / "hello-1.0.tar.gz"
    remedy = "Choose another output, or remove the file at the path of its parent folder."
    text = f"{path}: can't be written (File exists). {remedy}"
    with pytest.raises(WorkError, match=f"^{re.escape(text)}$"):
        write_sdist(path, "hello-1.0", MEMBERS, mtime=0)


def test_the_file_name_consists_of_the_normalized_name_and_the_version() -> None:
    assert sdist_name("Rocm-SDK.core", "7.14.0rc1") == "rocm_sdk_core-7.14.0rc1.tar.gz"
