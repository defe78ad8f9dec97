"""Reads and writes an audit's files: a baseline of known findings, and SARIF 2.1.0 (OASIS)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

import rocwheel
from rocwheel.audit.finding import as_unicode
from rocwheel.audit.rules import ALL_RULES
from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.reading import read_regular
from rocwheel.core.shown_names import place_of
from rocwheel.core.writing import atomic_file, check_other
from rocwheel.stores.urls import is_url

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.audit.audit import AuditReport
    from rocwheel.audit.finding import Finding


_SCHEMAS = "rocwheel.audit-baseline/"
_SCHEMA = f"{_SCHEMAS}4"
"""The schema number increases when fingerprints change, for example, because rules report different facts."""


class _Known(msgspec.Struct, frozen=True):
    fingerprint: str
    rule: str = ""
    found: str = ""


class _Baseline(msgspec.Struct, frozen=True):
    schema: str
    findings: tuple[_Known, ...]


def read_baseline(path: Path) -> frozenset[str]:
    """Return the fingerprints in a baseline.

    Raises `InputError` for a file that isn't a baseline, and for a baseline with a different schema version.
    """
    try:
        baseline = decode_json(read_regular(path), _Baseline)
    except OSError as e:
        raise read_error(path, e, remedy="Create a baseline with --update-baseline.") from e
    except msgspec.DecodeError as e:
        raise InputError(path, f"isn't a baseline ({e})", remedy=_remedy(path)) from e
    if baseline.schema != _SCHEMA:
        found = f"is a baseline with schema {baseline.schema!r}"
        raise InputError(path, found, expected=_SCHEMA, remedy=_remedy(path))
    return frozenset(known.fingerprint for known in baseline.findings)


def _remedy(path: Path) -> str:
    place = "" if is_baseline(path) else " in another file"
    return f"Create a new baseline{place} with --update-baseline."


def is_baseline(path: Path) -> bool:
    """Return whether a file is empty or a baseline of any version. A damaged baseline is also treated as a baseline.

    Raises `InputError` if the file can't be read.
    """
    try:
        data = read_regular(path)
    except OSError as e:
        raise read_error(path, e) from e
    return not data.strip() or (data.startswith(b"{") and f'"{_SCHEMAS}'.encode() in data)


def write_baseline(path: Path, findings: Iterable[Finding]) -> None:
    """Write a baseline with all ``findings``. The rules and text in the file are intended only for human readers."""
    known = {
        finding.fingerprint: _Known(finding.fingerprint, finding.rule, as_unicode(finding.found))
        for finding in findings
    }
    ordered = sorted(known.values(), key=lambda entry: (entry.rule, entry.found, entry.fingerprint))
    with atomic_file(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(_Baseline(_SCHEMA, tuple(ordered)))) + b"\n")


_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_PAGE = "https://rocwheel.readthedocs.io/audit-rules/"


def to_sarif(report: AuditReport) -> dict[str, Any]:
    """Return a SARIF log with one run: the checked rules, and a result for each finding.

    Locations are URLs, relative URIs, or paths.
    """
    rules = [rule for rule in ALL_RULES if rule.name in report.rules]
    index = {rule.name: number for number, rule in enumerate(rules)}
    driver = {
        "name": "rocwheel",
        "version": rocwheel.__version__,
        "informationUri": _PAGE,
        "rules": [
            {
                "id": rule.name,
                "shortDescription": {"text": rule.demand},
                "help": {"text": rule.remedy},
                "helpUri": f"{_PAGE}#{rule.name}",
                "defaultConfiguration": {"level": rule.severity.value},
            }
            for rule in rules
        ],
    }
    results = [_result(finding, index[finding.rule]) for finding in report.findings]
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _split(file: str) -> tuple[str, str]:
    """Split a location into a wheel and its member. If the archive isn't a wheel, return only the path."""
    stem, mark, member = file.partition(".whl!")
    return (f"{stem}.whl", member) if mark else (file, "")


def _result(finding: Finding, index: int) -> dict[str, Any]:
    archive, member = _split(finding.file)
    logical = [{"fullyQualifiedName": as_unicode(member), "kind": "member"}] if member else []
    place = place_of(archive)
    uri = place if is_url(place) else quote(place, errors="surrogateescape")
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.severity.value,
        "message": {"text": as_unicode(f"{member or archive} {finding.found}. {finding.remedy}")},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}}, "logicalLocations": logical}],
        "partialFingerprints": {"rocwheel/3": finding.fingerprint},
    }


_HEAD = 1 << 10
_MARKS = (b'"schema": "rocwheel.audit-baseline/', b'"name": "rocwheel"')


class ReportFiles(msgspec.Struct, frozen=True):
    """The output paths of the new baseline and the SARIF file; `None` for a file that isn't written.

    The audit's settings file, ``settings``, can't be overwritten. The SARIF file also can't overwrite ``known``, the
    audit's baseline.
    """

    baseline: Path | None = None
    sarif: Path | None = None
    settings: Path | None = None
    known: Path | None = None

    def check(self, read: Iterable[str]) -> None:
        """Raise `InputError` for an output file whose folder doesn't exist, and for an output file that is also input.

        ``read`` contains the real paths of the audited wheels and folders. In an audited folder, only an older report
        can be overwritten. A new baseline can replace only another baseline.
        """
        audited = set(map(Path, read))
        for target in filter(None, (self.sarif, self.baseline)):
            if not _is_folder(target.parent):
                raise InputError(target, f"would be written to {target.parent}", expected="an existing folder")
            if not _is_replaceable(target) and not audited.isdisjoint((target.resolve(), *target.resolve().parents)):
                raise InputError(target, "is one of the audited files", expected="a different output file")
            check_other(target, self.settings, "the settings file of this audit")
        if self.sarif:
            check_other(self.sarif, self.known, "the baseline of this audit")
        if self.baseline and self.baseline.is_file() and not is_baseline(self.baseline):
            raise InputError(self.baseline, "isn't a baseline", expected="a new file, or a baseline to update")

    def write(self, report: AuditReport) -> None:
        """Write the files. Raises `WorkError` if a file can't be written."""
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
    """Return whether the file is missing, or begins like a baseline or SARIF file from rocwheel."""
    try:
        if not path.is_file():
            return not path.exists()
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    return head.startswith(b"{") and any(mark in head for mark in _MARKS)
