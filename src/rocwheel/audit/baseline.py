"""Known findings, kept in a file so that only new ones make an audit fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.finding import as_unicode
from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.reading import read_regular
from rocwheel.core.writing import atomic_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rocwheel.audit.finding import Finding

__all__ = ["is_baseline", "read_baseline", "write_baseline"]

_SCHEMAS = "rocwheel.audit-baseline/"
_SCHEMA = f"{_SCHEMAS}4"
"""Its number grows when fingerprints change, such as with the facts that they are made of."""


class _Known(msgspec.Struct, frozen=True):
    fingerprint: str
    rule: str = ""
    found: str = ""


class _Baseline(msgspec.Struct, frozen=True):
    schema: str
    findings: tuple[_Known, ...]


def read_baseline(path: Path) -> frozenset[str]:
    """Return the fingerprints in a baseline.

    Raises `InputError` for a file that is not a baseline, and for a baseline of another version.
    """
    try:
        baseline = decode_json(read_regular(path), _Baseline)
    except OSError as e:
        raise read_error(path, e, remedy="Use --update-baseline to make one.") from e
    except msgspec.DecodeError as e:
        raise InputError(path, f"is not a baseline ({e})", remedy=_remedy(path)) from e
    if baseline.schema != _SCHEMA:
        found = f"is a baseline of schema {baseline.schema!r}"
        raise InputError(path, found, expected=_SCHEMA, remedy=_remedy(path))
    return frozenset(known.fingerprint for known in baseline.findings)


def _remedy(path: Path) -> str:
    return "Use --update-baseline to make " + ("a new one." if is_baseline(path) else "one in another file.")


def is_baseline(path: Path) -> bool:
    """Return whether a file is empty, or a baseline of any version, even a damaged one.

    Raises `InputError` for one that can't be read.
    """
    try:
        data = read_regular(path)
    except OSError as e:
        raise read_error(path, e) from e
    return not data.strip() or (data.startswith(b"{") and f'"{_SCHEMAS}'.encode() in data)


def write_baseline(path: Path, findings: Iterable[Finding]) -> None:
    """Write a baseline of all ``findings``; their rules and texts are there only for people to read."""
    known = {
        finding.fingerprint: _Known(finding.fingerprint, finding.rule, as_unicode(finding.found))
        for finding in findings
    }
    ordered = sorted(known.values(), key=lambda entry: (entry.rule, entry.found, entry.fingerprint))
    with atomic_file(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(_Baseline(_SCHEMA, tuple(ordered)))) + b"\n")
