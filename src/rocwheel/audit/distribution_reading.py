"""A distribution's own account of itself: METADATA, WHEEL and RECORD (core metadata 2.x, wheel format 1.0)."""

from __future__ import annotations

import csv
import io
from email.parser import BytesParser
from typing import TYPE_CHECKING

from packaging.metadata import parse_email
from packaging.utils import canonicalize_name

from rocwheel.audit.tree import Distribution, RecordEntry
from rocwheel.errors import InputError
from rocwheel.targets.declaration import DECLARATION_NAME, decode_declaration

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["INFO_FILES", "parse_record", "read_distribution"]

INFO_FILES = ("METADATA", "WHEEL", "RECORD", DECLARATION_NAME)
"""The files of ``.dist-info`` that are read."""


def read_distribution(
    texts: Mapping[str, bytes], *, source: str, dist_info: str, is_wheel: bool, is_context: bool = False
) -> Distribution:
    """Read the files of ``.dist-info``, by their name there. What is absent or unreadable is noted as a problem."""
    problems = [f"{dist_info} has no {name}" for name in ("METADATA", "WHEEL", "RECORD") if name not in texts]
    fields, unknown = parse_email(texts.get("METADATA", b""))
    problems += [f"METADATA: {field} can't be read" for field in unknown if field.lower() in _JUDGED]
    targets, malformed = _read_targets(texts.get(DECLARATION_NAME))
    wheel = BytesParser().parsebytes(texts.get("WHEEL", b""))
    classifiers = [text for text in fields.get("classifiers", ()) if text.startswith("License ::")]
    return Distribution(
        name=canonicalize_name(fields.get("name", "")),
        version=fields.get("version", ""),
        source=source,
        dist_info=dist_info,
        requires=tuple(fields.get("requires_dist", ())),
        extras=tuple(fields.get("provides_extra", ())),
        license_files=tuple(fields.get("license_files", ())),
        license=fields.get("license_expression", "") or fields.get("license", "") or ", ".join(classifiers),
        tags=tuple(str(tag).strip() for tag in wheel.get_all("Tag", [])),
        is_purelib=str(wheel.get("Root-Is-Purelib", "")).strip().lower() == "true",
        record=parse_record(texts.get("RECORD", b"")),
        is_wheel=is_wheel,
        is_context=is_context,
        targets=targets,
        problems=(*problems, *malformed),
    )


def _read_targets(text: bytes | None) -> tuple[tuple[str, ...], list[str]]:
    if text is None:
        return (), []
    try:
        return decode_declaration(text, source=DECLARATION_NAME).rocm_targets, []
    except InputError as e:
        return (), [str(e)]


_JUDGED = {"name", "version", "requires-dist", "license-file", "license-expression", "provides-extra"}


def parse_record(data: bytes) -> tuple[RecordEntry, ...]:
    """Return the rows of RECORD; cells that a row lacks are empty."""
    rows = csv.reader(io.StringIO(data.decode(errors="replace")))
    return tuple(RecordEntry(*(*row, "", "")[:3]) for row in rows if row)
