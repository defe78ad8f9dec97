"""The date of archives: SOURCE_DATE_EPOCH, else the first that ZIP can store."""

from __future__ import annotations

import re
import zipfile
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.core.writing import atomic_file
from rocwheel.distributions.formats.source_date import SourceDate
from rocwheel.distributions.zip.writer import ZipTime, ZipWriter

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("environment", [{}, {"SOURCE_DATE_EPOCH": ""}], ids=["absent", "empty"])
def test_without_the_variable_it_is_the_first_second_of_1980(environment: dict[str, str]) -> None:
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
def test_zipfile_reads_the_moment_in_utc(
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
def test_anything_but_whole_seconds_is_refused(text: str) -> None:
    message = f"SOURCE_DATE_EPOCH: is {text!r}; expected a whole number of seconds since 1970. Correct or unset it."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        SourceDate.from_environment({"SOURCE_DATE_EPOCH": text})


def test_seconds_after_the_year_9999_are_refused() -> None:
    assert SourceDate.from_environment({"SOURCE_DATE_EPOCH": "253402300799"}).seconds == 253402300799
    message = (
        "SOURCE_DATE_EPOCH: is 253402300800; expected at most 253402300799, in the year 9999. Correct or unset it."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        SourceDate.from_environment({"SOURCE_DATE_EPOCH": "253402300800"})
