"""The RECORD file of a wheel: path, SHA-256 and size of every member (recording installed projects; :pep:`376`)."""

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
"""The files of ``.dist-info`` that sign RECORD, and that RECORD doesn't list (:pep:`427`)."""
STRONG_HASHES = frozenset({"sha256", "sha384", "sha512"})
"""The algorithms that the format of wheels allows for RECORD, of those that every Python has."""


def signature_paths(dist_info: str) -> frozenset[str]:
    """Return the members of a wheel that sign its RECORD."""
    return frozenset(f"{dist_info}/{name}" for name in SIGNATURES)


def unhashed_paths(dist_info: str) -> frozenset[str]:
    """Return the members of a wheel that have no hash in its RECORD: RECORD itself and its signatures."""
    return signature_paths(dist_info) | {f"{dist_info}/RECORD"}


class RecordRow(msgspec.Struct, frozen=True, order=True):
    """One member of a wheel: its path, the raw SHA-256 of its bytes, and their number."""

    path: str
    sha256: bytes
    size: int

    @property
    def hash(self) -> str:
        """The hash as RECORD spells it."""
        return spell_hash(self.sha256)


class RecordEntry(msgspec.Struct, frozen=True):
    """A row of a RECORD as it was read: path, ``algorithm=digest``, size."""

    path: str
    hash: str
    size: str

    @property
    def algorithm(self) -> str:
        """The algorithm of the hash, such as ``sha256``; empty where there is no hash."""
        return self.hash.partition("=")[0]

    @property
    def digest(self) -> bytes:
        """The raw hash; empty where it is not spelled in URL-safe base64 without padding."""
        text = self.hash.partition("=")[2]
        try:
            return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return b""


def spell_hash(sha256: bytes) -> str:
    """Return a raw SHA-256 as RECORD spells it: ``sha256=`` and URL-safe base64 without padding."""
    return "sha256=" + base64.urlsafe_b64encode(sha256).rstrip(b"=").decode()


def render_record(rows: list[RecordRow], record_path: str) -> bytes:
    """Return RECORD's text: the rows sorted by path, then RECORD itself, without hash and size.

    Paths are text, as the names of members of a wheel are; raises `UnicodeEncodeError` for surrogates in them.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows((row.path, row.hash, row.size) for row in sorted(rows))
    writer.writerow((record_path, "", ""))
    return out.getvalue().encode()


def parse_record(data: bytes, source: Path | str) -> tuple[RecordEntry, ...]:
    """Return the rows of the RECORD ``source``; cells that a row lacks are empty. Raises `InputError` unless it is CSV.

    Bytes that are not UTF-8 stand as surrogates, as in the names of files (:pep:`383`): so such a path is that of its
    file, and can't be mistaken for another.
    """
    rows = csv.reader(io.StringIO(data.decode(errors="surrogateescape")))
    try:
        return tuple(RecordEntry(*(*row, "", "")[:3]) for row in rows if row)
    except csv.Error as e:
        found, remedy = f"can't be read ({e})", "Build or fetch it again."
        raise InputError(source, found, expected="lines of CSV", remedy=remedy) from e


class RecordGaps(msgspec.Struct, frozen=True):
    """Where the RECORD of a wheel disagrees with its members about their names."""

    repeated: dict[str, int]
    """Paths of several rows, and how many each has."""
    absent: tuple[str, ...]
    """Paths of rows that no member has."""
    unlisted: tuple[str, ...]
    """Members without a row that need one: all but RECORD itself and its signatures (:pep:`427`)."""


def find_record_gaps(paths: Iterable[str], members: Collection[str], dist_info: str) -> RecordGaps:
    """Compare the paths in RECORD with the members of a wheel whose ``.dist-info`` folder is ``dist_info``."""
    rows = Counter(paths)
    exempt = unhashed_paths(dist_info)
    repeated = {path: number for path, number in rows.items() if number > 1}
    unlisted = tuple(name for name in members if name not in rows and name not in exempt)
    return RecordGaps(repeated, tuple(sorted(rows.keys() - set(members))), unlisted)
