"""Edits of METADATA and WHEEL, compared with what the standard library's `email` reads before and after."""

from __future__ import annotations

import re
from email import message_from_bytes
from itertools import filterfalse
from pathlib import Path

from rocwheel.build.promoting.versions import VersionChange
from rocwheel.core.errors import InputError
from rocwheel.device.split.wheel_metadata import unpacked_name
from rocwheel.wheels.file_names import is_distribution_name, without_label
from rocwheel.wheels.metadata import (
    add_requirements,
    drop_values,
    edit_requirements,
    set_values,
    set_version,
    set_wheel_fields,
    wheel_headers,
)
from trials.fuzz.harness import Harness, require

_METADATA = b"""Metadata-Version: 2.4
Name: rocm-sdk
Version: 7.10.0
Requires-Dist: rocm-sdk-core==7.10.0 ;
  sys_platform == "linux"
Requires-Dist: numpy
Provides-Extra: devel

Version: 1
Requires-Dist: of the body
"""
_FOLDED = b"Name: a\nRequires-Dist: b ;\n\tos_name == 'nt'\nVersion:\n 1.0\nRequires-Dist: x"
_WHEEL = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\nTag: py2-none-any\n"
_BUILDS = [b"Tag: py3-none-any\nBuild: %s\n" % build for build in (b"", b"abc", b"py3", b"1-2", b"1-cp3", b"1/../2")]
_LINE = rb"[!-9;-~]+:[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*"
_PLAIN = re.compile(rb"%s(?:\r?\n%s)*(?:\r?\n(?:\r?\n.*)?)?" % (_LINE, _LINE), re.DOTALL)
"""What email and the edits take for headers alike: with a colon in each line, and no line that ends in CR alone."""
_PLAIN_WHEEL = re.compile(rb"(?:[!-9;-~]+:[^\r\n]*\n)+|(?:[!-9;-~]+:[^\r\n]*\r\n)+")
_INFO = Path("demo-1.0.dist-info")
_BUILD = re.compile("[0-9]+[a-z]*")
_TAG = re.compile(r"[a-z]+[0-9]+(?:\.[a-z]+[0-9]+)*(?:-[a-z0-9_]+(?:\.[a-z0-9_]+)*){2}")
_SHORT = 200
"""Bytes of a file whose tags make no name that is too long for a file."""
_ADDED = "added==1"

Fields = list[tuple[str, str]]


def _metadata(data: bytes) -> None:
    """Edit an input in each way, and require that email reads the edit, all other fields, and the body as it was."""
    require(edit_requirements(data, str) == data, "an edit that changes nothing does")
    promoted = VersionChange("9!9", "1").text("a.egg-info/requires.txt", data, "9!9")
    require(promoted == data or b"9" in data, "a promotion of a version that is nowhere changes requirements")
    # By Content-Type and the like, email decodes the body, and its parameters end in errors of its own.
    if not _PLAIN.fullmatch(data) or b"content-" in data.lower():
        return
    before = _read(data)[0]
    versions = [value for name, value in before if _is(name, "Version")]
    _compare(data, set_version(data, "9"), "Version", ["9", *versions[1:]] if versions else [])
    _edit_requirements(data, [value for name, value in before if _is(name, "Requires-Dist")])


def _edit_requirements(data: bytes, before: list[str]) -> None:
    field = "Requires-Dist"
    _compare(data, add_requirements(data, [_ADDED]), field, [*before, _ADDED])
    _compare(data, set_values(data, field, [_ADDED]), field, [_ADDED])
    _compare(data, drop_values(data, field, _is_dropped), field, [*filterfalse(_is_dropped, before)])
    # Of a folded one, the first line is edited.
    edited = [re.sub(r"^[^\r\n]*", _ADDED, value, count=1) for value in before]
    _compare(data, edit_requirements(data, lambda _: _ADDED), field, edited)


def _is_dropped(value: str) -> bool:
    """Return whether a value goes: by its first letter, so that of most inputs some go and some stay."""
    return value.strip()[:1] >= "o"


def _compare(data: bytes, edited: bytes, field: str, expected: list[str]) -> None:
    before, body = _read(data)
    after, body_after = _read(edited)
    values = [value for name, value in after if _is(name, field)]
    require(values == expected, f"{field}: {values}, not {expected}")
    require(_others(before, field) == _others(after, field), f"an edit of {field} changes other fields")
    require(body_after == body, f"an edit of {field} changes the body")
    _require_newlines(data, edited)


def _require_newlines(data: bytes, edited: bytes) -> None:
    """Require that a text all of whose lines end in CR and LF, or in LF, has no others after an edit."""
    for end, other in ((b"\r\n", b"\n"), (b"\n", b"\r\n")):
        is_plain = end in data and other not in data.replace(b"\r\n", b"\r" if other == b"\n" else b"\r\n")
        was_kept = other not in edited.replace(b"\r\n", b"\r" if other == b"\n" else b"\r\n")
        require(not is_plain or was_kept, "an edit ends lines in another way")


def _read(data: bytes) -> tuple[Fields, object]:
    message = message_from_bytes(data)
    return [(name, str(value).strip(" \t")) for name, value in message.raw_items()], message.get_payload()


def _others(fields: Fields, field: str) -> Fields:
    return [one for one in fields if not _is(one[0], field)]


def _is(name: str, field: str) -> bool:
    return name.lower() == field.lower()


def _wheel(data: bytes) -> None:
    """Edit an input as WHEEL, and require of plain ones what email reads of the edit and of the input itself."""
    edited = set_wheel_fields(data, tags=["py3-none-linux_x86_64", "py3-none-win_amd64"], platlib=True)
    if _PLAIN_WHEEL.fullmatch(data):
        before, after = _read(data)[0], _read(edited)[0]
        tags = [value for name, value in after if _is(name, "Tag")]
        require(tags == ["py3-none-linux_x86_64", "py3-none-win_amd64"], f"tags {tags}")
        others = _others(before, "Tag")
        expected = [(name, "false" if _is(name, "Root-Is-Purelib") else value) for name, value in others]
        require(_folded(_others(after, "Tag")) == _folded(expected), "an edit of WHEEL changes other fields")
        found = wheel_headers(data)[:-1]
        require(not data.isascii() or found == _folded(before), f"headers {found}, email reads {before}")
        _require_newlines(data, edited)
    _name_unpacked(data)


def _name_unpacked(wheel: bytes) -> None:
    """Name the wheel that WHEEL is of: with its build number, all of its tags and no others."""
    headers = wheel_headers(wheel)
    tags = [tag for tag in (value.split("-") for key, value in headers if key == "tag") if len(tag) == 3]
    build = [value for key, value in headers if key == "build"]
    try:
        name = unpacked_name(_INFO, wheel)
    except InputError:
        is_plain = (
            len(build) < 2 and all(map(_BUILD.fullmatch, build)) and all(_TAG.fullmatch("-".join(one)) for one in tags)
        )
        require(not is_plain or len(wheel) > _SHORT, f"{tags} and {build} are refused")
        return
    require(Path(name).name == name and "\0" not in name, f"{name!r} is no file name")
    columns = [set(".".join(column).split(".")) for column in zip(*tags, strict=True)] or [{"py3"}, {"none"}, {"any"}]
    found = name.removesuffix(".whl").split("-")
    require([set(column.split(".")) for column in found[-3:]] == columns, f"{name!r} of the tags {tags}")
    require(found[:-3] == ["demo", "1.0", *build], f"{name!r} of the build {build}")
    require(is_distribution_name(name) and without_label(name) == name, f"{name!r} is no plain wheel's")


def _folded(fields: Fields) -> Fields:
    """Return fields without what an edit may change: the case of their names, and space at the end."""
    return [(name.lower(), value.strip()) for name, value in fields]


_NAMES = (b"Requires-Dist: ", b"Version: ", b"\n ", b"\n\n", b"\r\n", b"\n\t", b"requires-dist:")

HARNESSES = (
    Harness(
        "edits.metadata",
        _metadata,
        lambda: [_METADATA, _METADATA.replace(b"\n", b"\r\n"), _FOLDED, _FOLDED.lower()],
        tokens=_NAMES,
    ),
    Harness(
        "edits.wheel",
        _wheel,
        lambda: [_WHEEL, _WHEEL + b"Build: 1a\n", _WHEEL.replace(b"\n", b"\r\n"), _WHEEL.lower()[:-1], *_BUILDS],
        tokens=(b"Tag: ", b"tag:", b"\nRoot-Is-Purelib:", b"\n", b"Build: ", b"-", b"../"),
    ),
)
"""See `trials.fuzz.harness.Harness`."""
