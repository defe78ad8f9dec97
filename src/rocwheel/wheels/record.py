"""Reads and writes a wheel's RECORD file, which has the path, SHA-256, and size of every member (:pep:`376`)."""

from __future__ import annotations

import base64
import binascii
import csv
import io
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path


SIGNATURES = ("RECORD.jws", "RECORD.p7s")
"""The files in ``.dist-info`` that sign RECORD. RECORD doesn't list these files (:pep:`427`)."""
STRONG_HASHES = frozenset({"sha256", "sha384", "sha512"})
"""The hash algorithms that the wheel format allows for RECORD and that every Python has."""


def signature_paths(dist_info: str) -> frozenset[str]:
    """Return the paths of the wheel members that sign its RECORD."""
    return frozenset(f"{dist_info}/{name}" for name in SIGNATURES)


def unhashed_paths(dist_info: str) -> frozenset[str]:
    """Return the paths of the wheel members without a hash in RECORD: RECORD itself and its signatures."""
    return signature_paths(dist_info) | {f"{dist_info}/RECORD"}


class RecordRow(msgspec.Struct, frozen=True, order=True):
    """A member of a wheel: its path, its raw SHA-256, and its size in bytes."""

    path: str
    sha256: bytes
    size: int

    @property
    def hash(self) -> str:
        """The hash in the format of RECORD."""
        return spell_hash(self.sha256)


class RecordEntry(msgspec.Struct, frozen=True):
    """A row as read from RECORD: path, ``algorithm=digest``, and size."""

    path: str
    hash: str
    size: str

    @property
    def algorithm(self) -> str:
        """The hash algorithm, such as ``sha256``, or an empty string if there is no hash."""
        return self.hash.partition("=")[0]

    @property
    def digest(self) -> bytes:
        """The raw hash, or empty if the digest isn't valid URL-safe base64 without padding."""
        text = self.hash.partition("=")[2]
        try:
            return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return b""


def spell_hash(sha256: bytes) -> str:
    """Return a raw SHA-256 in the format of RECORD: ``sha256=`` and URL-safe base64 without padding."""
    return "sha256=" + base64.urlsafe_b64encode(sha256).rstrip(b"=").decode()


def render_record(rows: list[RecordRow], record_path: str) -> bytes:
    """Return the text of RECORD: the rows sorted by path, and then RECORD itself without a hash and size.

    Paths are text, as in the names of wheel members. Raises `UnicodeEncodeError` if a path contains surrogates.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows((row.path, row.hash, row.size) for row in sorted(rows))
    writer.writerow((record_path, "", ""))
    return out.getvalue().encode()


def parse_record(data: bytes, source: Path | str) -> tuple[RecordEntry, ...]:
    """Return the rows of RECORD; missing cells are empty. Raises `InputError` about ``source`` if it isn't CSV.

    Bytes that aren't UTF-8 become surrogates, as in file names (:pep:`383`). So such a path matches only its own file.
    """
    rows = csv.reader(io.StringIO(data.decode(errors="surrogateescape")))
    try:
        return tuple(RecordEntry(*(*row, "", "")[:3]) for row in rows if row)
    except csv.Error as e:
        found, remedy = f"can't be read ({e})", "Build or fetch it again."
        raise InputError(source, found, expected="CSV", remedy=remedy) from e


class RecordGaps(msgspec.Struct, frozen=True):
    """The differences between the paths in RECORD and a wheel's members."""

    repeated: dict[str, int]
    """The paths with several rows, with the number of rows."""
    absent: tuple[str, ...]
    """The paths in RECORD that aren't members."""
    unlisted: tuple[str, ...]
    """The members that need a row but have none. RECORD itself and its signatures don't need a row (:pep:`427`)."""


def find_record_gaps(paths: Iterable[str], members: Collection[str], dist_info: str) -> RecordGaps:
    """Compare the paths in RECORD with the members of a wheel whose ``.dist-info`` folder is ``dist_info``."""
    rows = Counter(paths)
    exempt = unhashed_paths(dist_info)
    repeated = {path: number for path, number in rows.items() if number > 1}
    unlisted = tuple(name for name in members if name not in rows and name not in exempt)
    return RecordGaps(repeated, tuple(sorted(rows.keys() - set(members))), unlisted)
