"""The RECORD file of a wheel: path, SHA-256 and size of every member (recording installed projects; :pep:`376`)."""

from __future__ import annotations

import base64
import csv
import io

import msgspec

__all__ = ["RecordRow", "render_record"]


class RecordRow(msgspec.Struct, frozen=True, order=True):
    """One member of a wheel: its path, the raw SHA-256 of its bytes, and their number."""

    path: str
    sha256: bytes
    size: int

    @property
    def hash(self) -> str:
        """The hash as RECORD spells it: ``sha256=`` and URL-safe base64 without padding."""
        return "sha256=" + base64.urlsafe_b64encode(self.sha256).rstrip(b"=").decode()


def render_record(rows: list[RecordRow], record_path: str) -> bytes:
    """Return RECORD's text: the rows sorted by path, then RECORD itself, without hash and size."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows((row.path, row.hash, row.size) for row in sorted(rows))
    writer.writerow((record_path, "", ""))
    return out.getvalue().encode()
