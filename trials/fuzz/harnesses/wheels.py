"""What is in wheels and sdists: METADATA, RECORD, entry points, requirements, and the names of files."""

from __future__ import annotations

import csv
import io
import re
from contextlib import suppress
from email import message_from_bytes
from importlib.metadata import EntryPoints

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion

from rocwheel.build.promoting.candidates import read_build_info
from rocwheel.core.errors import RocwheelError
from rocwheel.diff.sides import read_entry_points
from rocwheel.environment.dist_info import read_distribution
from rocwheel.wheels.file_names import parse_file_name
from rocwheel.wheels.metadata import CoreMetadataError, parse_core_metadata
from rocwheel.wheels.record import RecordRow, find_record_problems, parse_record, render_record
from rocwheel.wheels.requirements import (
    RequirementError,
    applies,
    parse_requirement,
    parse_requires_txt,
    to_requires_dist,
)
from rocwheel.wheels.sbom import find_unlicensed, promoted_bill
from rocwheel.wheels.tags import lowest_glibc, nearest_platform, parse_platforms
from rocwheel.wheels.variants import parse_metadata, parse_variants
from trials.fuzz.beside.file_name import compare_name
from trials.fuzz.beside.marker_places import compare_markers
from trials.fuzz.beside.record_rows import compare_rows
from trials.fuzz.beside.requirement import compare_requirement
from trials.fuzz.harness import Harness, require
from trials.fuzz.seeds.wheels import (
    BILL,
    ENTRY_POINTS,
    LITERALS,
    METADATA,
    NAMES,
    RECORD,
    REQUIREMENTS,
    VARIANTS,
    WHEEL,
)

_FIELDS = (
    b"Name: ",
    b"Requires-Dist: ",
    b"Description: ",
    b"Content-Type: message/rfc822\n\n",
    b"=?utf-8?q?=ff?=",
    b"\n\n",
)
_MARKERS = (
    b'python_version < "3"',
    b"extra == ",
    b" ; ",
    b" and ",
    b"(",
    b"===",
    b"@ https://",
    b"[x]",
    b"platform_release",
)

_NOT_PLAIN = (b"#", b";", b"\r", b"\n ", b"\n\t", b"[ ", b" ]", b"\x0b", b"\x0c", b"\x1c", b"\x1d", b"\x1e", b"\x85")
_SECTION = re.compile(rb"^\[[\w.]+\]$", re.MULTILINE)


def _record(data: bytes) -> None:
    """Compare with the RFC, and require that paths that are text come back out of a RECORD that we write.

    `csv`, of which our parser is made, is asked as well: for what the RFC leaves open, as quotes amid a field.
    """
    text = data.decode(errors="surrogateescape")
    entries = parse_record(data, "input")
    rows = [(*row, "", "")[:3] for row in csv.reader(io.StringIO(text)) if row]
    require([(entry.path, entry.hash, entry.size) for entry in entries] == rows, "other rows than csv has")
    compare_rows(entries, text)
    paths = [entry.path for entry in entries]
    list(find_record_problems(entries, dict.fromkeys(paths[:1], 0), "x.dist-info", lambda *_: bytes(32)))
    texts = sorted(path for path in paths if path.encode(errors="replace").decode() == path)
    written = render_record([RecordRow(path, bytes(32), 0) for path in texts], "x.dist-info/RECORD")
    again = [entry.path for entry in parse_record(written, "again")]
    require(again == [*texts, "x.dist-info/RECORD"], "other paths than were written")


def _metadata(data: bytes) -> None:
    """Compare the name with the standard library's, where there is one of it and it is plain."""
    fields, _ = parse_core_metadata(data)
    names = message_from_bytes(data).get_all("Name", [])
    if len(names) == 1 and isinstance(names[0], str) and names[0].isascii() and "=?" not in names[0]:
        require(fields.get("name", names[0]) == names[0], f"name {fields.get('name')!r}, email reads {names[0]!r}")


def _dist_info(data: bytes) -> None:
    """Take an input as all files of ``.dist-info`` in turn, parted by NUL."""
    names = ("METADATA", "WHEEL", "RECORD", "sboms/rocwheel.cdx.json", "variant.json", "rocm_targets.json")
    texts = {name: text for name, text in zip(names, data.split(b"\0"), strict=False) if text}
    for is_wheel in (True, False):
        read_distribution(texts, source="x-1.0-py3-none-any.whl", dist_info="x-1.0.dist-info", is_wheel=is_wheel)


def _entry_points(data: bytes) -> None:
    """Compare with importlib.metadata, which keeps no rules but those of plain files: no comments, nothing indented."""
    found = set(read_entry_points("input", data))
    is_plain = all(data.count(bracket) == len(_SECTION.findall(data)) for bracket in (b"[", b"]"))
    if not (is_plain and data.isascii()) or any(mark in data for mark in _NOT_PLAIN):
        return
    try:
        theirs = {f"{one.group}: {one.name}" for one in EntryPoints._from_text(data.decode())}  # type: ignore[attr-defined]  # noqa: SLF001
    except Exception:  # it checks nothing, and so raises anything
        return
    require(found == theirs, f"{sorted(found)}, importlib.metadata has {sorted(theirs)}")


def _requirement(data: bytes) -> None:
    """Compare with distlib, and where a marker holds with what packaging and distlib's grammar say of known places."""
    text = data.decode(errors="replace")
    own = parse_requirement(text)
    with suppress(InvalidRequirement):
        require(own == Requirement(text), "another requirement than packaging reads")
    require(parse_requirement(str(own)) == own, f"{own} reads otherwise than it is written")
    compare_requirement(own, text)
    compare_markers(own, text, applies)


def _requires_txt(data: bytes) -> None:
    for extra, marker, requirement in parse_requires_txt(data.decode(errors="replace")):
        with suppress(RequirementError):
            parse_requirement(to_requires_dist(extra, marker, requirement))


def _file_name(data: bytes) -> None:
    """Compare with a reading by hand, which has plain names alone, and with packaging, of which our parser is made."""
    text = data.decode(errors="replace")
    try:
        found = parse_file_name(text)
    except RocwheelError:
        compare_name(None, text)
        raise
    compare_name(found, text)
    if found.label:
        return
    try:
        theirs = (parse_wheel_filename if text.endswith(".whl") else parse_sdist_filename)(text)[:2]
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        theirs = None
    require(theirs == (found.project, found.version), f"{found.project} {found.version}, packaging has {theirs}")


def _tags(data: bytes) -> None:
    text = data.decode(errors="replace")
    platforms = parse_platforms(text)
    require(".".join(one.text for one in platforms) == text, "other tags than were given")
    lowest_glibc(platforms)
    nearest_platform(text)


def _bill(data: bytes) -> None:
    find_unlicensed(data, "input")
    promoted_bill(data, "1.0", "2.0", "input")


def _variants(data: bytes) -> None:
    parse_variants(data, source="input")
    parse_metadata(data, source="input", label="gfx942")


def _build_info(data: bytes) -> None:
    read_build_info(data, "input")


_BRACKETS = b"[" * 60000
_JSON = (
    b'"metadata"',
    b'"component"',
    b'"components"',
    b'"dependencies"',
    b'"ref"',
    b"null",
    b"1e999",
    b"[[[",
    b"\\ud800",
)

HARNESSES = (
    Harness("wheels.record", _record, lambda: [RECORD], tokens=(b"sha256=", b'"', b"\r\n")),
    Harness("wheels.metadata", _metadata, lambda: [METADATA], (CoreMetadataError,), _FIELDS),
    Harness(
        "wheels.dist_info",
        _dist_info,
        lambda: [b"\0".join([METADATA, WHEEL, RECORD, BILL, VARIANTS])],
        tokens=_FIELDS,
    ),
    Harness("wheels.entry_points", _entry_points, lambda: [ENTRY_POINTS], tokens=(b"[", b"]", b"=", b":", b"\n ")),
    Harness(
        "wheels.requirement",
        _requirement,
        lambda: [METADATA.split(b"\n")[3][15:], b"a[b,c]>=1,!=2; extra=='x'", *REQUIREMENTS],
        (RequirementError,),
        _MARKERS,
        2000,
    ),
    Harness(
        "wheels.requires_txt",
        _requires_txt,
        lambda: [b"a>=1\n\n[x:python_version<'3']\nb\n"],
        tokens=_MARKERS,
        largest=4000,
    ),
    Harness(
        "wheels.file_name", _file_name, lambda: NAMES, tokens=(b"-py3-none-any.whl", b".tar.gz", b"1!"), largest=300
    ),
    Harness(
        "wheels.tags",
        _tags,
        lambda: [b"manylinux_2_28_x86_64.manylinux2014_x86_64", b"win_amd64"],
        tokens=(b"musllinux_1_2_", b"linux_"),
        largest=300,
    ),
    Harness("wheels.bill", _bill, lambda: [BILL, _BRACKETS], tokens=_JSON),
    Harness("wheels.variants", _variants, lambda: [VARIANTS, _BRACKETS], tokens=(b'"variants"', *_JSON)),
    Harness(
        "wheels.build_info",
        _build_info,
        lambda: [LITERALS, _BRACKETS, b"-" * 60000 + b"1"],
        (RocwheelError, MemoryError),
        (b" = ", b"**", b"f'{", b"10", b"1e9j"),
    ),
)
"""See `trials.fuzz.harness.Harness`."""
