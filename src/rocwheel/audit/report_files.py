"""The files that an audit writes: a baseline and SARIF, never over what it reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.baseline import is_baseline, write_baseline
from rocwheel.audit.sarif import to_sarif
from rocwheel.core.errors import InputError
from rocwheel.core.writing import atomic_file, check_other

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.audit.audit import AuditReport

__all__ = ["ReportFiles"]

_HEAD = 1 << 10
_MARKS = (b'"schema": "rocwheel.audit-baseline/', b'"name": "rocwheel"')


class ReportFiles(msgspec.Struct, frozen=True):
    """Where to write the new baseline and the findings as SARIF; None for what is not written.

    Neither may be ``settings``, the file that has the settings of the audit, nor SARIF ``known``, its baseline.
    """

    baseline: Path | None = None
    sarif: Path | None = None
    settings: Path | None = None
    known: Path | None = None

    def check(self, read: Iterable[str]) -> None:
        """Raise `InputError` for a file in a folder that doesn't exist, and for one that is itself read.

        ``read`` are the real paths of the audited wheels and folders. A file in an audited folder may be written over
        only if it is an older report, and a baseline takes the place of nothing but a baseline.
        """
        audited = set(map(Path, read))
        for target in filter(None, (self.sarif, self.baseline)):
            if not _is_folder(target.parent):
                raise InputError(target, f"would be written to {target.parent}", expected="a folder that exists")
            if not _is_replaceable(target) and not audited.isdisjoint((target.resolve(), *target.resolve().parents)):
                raise InputError(target, "is itself audited", expected="another file to write to")
            check_other(target, self.settings, "the file with the settings of this audit")
        if self.sarif:
            check_other(self.sarif, self.known, "the baseline of this audit")
        if self.baseline and self.baseline.is_file() and not is_baseline(self.baseline):
            raise InputError(self.baseline, "is not a baseline", expected="a new file, or a baseline to update")

    def write(self, report: AuditReport) -> None:
        """Write the files; raise `WorkError` for one that can't be written."""
        if self.baseline:
            write_baseline(self.baseline, report.findings)
        if self.sarif:
            with atomic_file(self.sarif) as file:
                file.write(msgspec.json.format(msgspec.json.encode(to_sarif(report))))


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _is_replaceable(path: Path) -> bool:
    """Return whether nothing is there, or a file that begins as baselines and SARIF files of rocwheel do."""
    try:
        if not path.is_file():
            return not path.exists()
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    return head.startswith(b"{") and any(mark in head for mark in _MARKS)
