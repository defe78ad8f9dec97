"""The RECORD file of a wheel: path, SHA-256 and size of every member (recording installed projects; :pep:`376`)."""

from __future__ import annotations

import base64
import csv
import io

import msgspec

__all__ = ["RecordEntry", "RecordRow", "parse_record", "render_record", "spell_hash"]


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


def spell_hash(sha256: bytes) -> str:
    """Return a raw SHA-256 as RECORD spells it: ``sha256=`` and URL-safe base64 without padding."""
    return "sha256=" + base64.urlsafe_b64encode(sha256).rstrip(b"=").decode()


def render_record(rows: list[RecordRow], record_path: str) -> bytes:
    """Return RECORD's text: the rows sorted by path, then RECORD itself, without hash and size."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows((row.path, row.hash, row.size) for row in sorted(rows))
    writer.writerow((record_path, "", ""))
    return out.getvalue().encode()


def parse_record(data: bytes) -> tuple[RecordEntry, ...]:
    """Return the rows of RECORD; cells that a row lacks are empty. Raises `csv.Error` for text that is not CSV."""
    rows = csv.reader(io.StringIO(data.decode(errors="replace")))
    return tuple(RecordEntry(*(*row, "", "")[:3]) for row in rows if row)
