"""Writes source distributions (:pep:`625`, :pep:`643`), and dates archives by SOURCE_DATE_EPOCH."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import time
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.writing import atomic_file
from rocwheel.wheels.writing import normalized_file_part
from rocwheel.wheels.zip_writer import ZipTime

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


LATEST_SECONDS = 253402300799
"""The last second of the year 9999; documents that are dated have four digits for the year."""

_ZIP_EPOCH = 315532800
_SECONDS = re.compile(r"[0-9]{1,12}")


class SourceDate(msgspec.Struct, frozen=True):
    """Seconds since 1970, as the reproducible builds specification defines SOURCE_DATE_EPOCH."""

    seconds: int = _ZIP_EPOCH

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> SourceDate:
        """Read SOURCE_DATE_EPOCH; raises `InputError` when it is not a whole number, or is after the year 9999."""
        text = environment.get("SOURCE_DATE_EPOCH", "")
        if not text:
            return cls()
        if not _SECONDS.fullmatch(text):
            variable, found, expected = "SOURCE_DATE_EPOCH", f"is {text!r}", "a whole number of seconds since 1970"
            raise InputError(variable, found, expected=expected, remedy="Correct or unset it.")
        if int(text) > LATEST_SECONDS:
            variable, found, expected = "SOURCE_DATE_EPOCH", f"is {text}", f"at most {LATEST_SECONDS}, in the year 9999"
            raise InputError(variable, found, expected=expected, remedy="Correct or unset it.")
        return cls(int(text))

    @property
    def zip_time(self) -> ZipTime:
        """The moment as ZIP stores it."""
        moment = time.gmtime(self.seconds)
        return ZipTime.from_fields(*moment[:6])


def sdist_stem(distribution: str, version: str) -> str:
    """Return the name of an sdist's top folder: normalized distribution and version."""
    return f"{normalized_file_part(distribution)}-{version}"


def sdist_name(distribution: str, version: str) -> str:
    """Return the file name of an sdist."""
    return f"{sdist_stem(distribution, version)}.tar.gz"


def write_sdist(path: Path, stem: str, members: Mapping[str, bytes], *, mtime: int) -> bytes:
    """Write ``members`` (by path below ``stem/``) sorted, owned by root, dated ``mtime`` seconds after 1970.

    Returns the bytes of the file. Raises `WorkError` when the folder can't be written.
    """
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in sorted(members.items()):
            info = tarfile.TarInfo(f"{stem}/{name}")
            info.size, info.mode, info.mtime = len(data), 0o644, mtime
            tar.addfile(info, io.BytesIO(data))
    packed = io.BytesIO()
    # Compressed here, not by tarfile: gzip's own header holds a name and a date, which must not vary.
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(raw.getvalue())
    with atomic_file(path) as target:
        target.write(packed.getvalue())
    return packed.getvalue()
