"""Checks wheels completely before they are published or rewritten: names, layout, members, and RECORD (:pep:`427`).

A layout is wrong if pip or uv rejects it, or if they install it differently.
"""

from __future__ import annotations

import re
from contextlib import suppress
from email.parser import BytesParser
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.messages import quoted
from rocwheel.core.workers import map_sized, raise_all
from rocwheel.wheels.content import Digest
from rocwheel.wheels.file_names import name_and_version
from rocwheel.wheels.metadata import SCRIPT_GROUPS, is_function_reference, parse_entry_points, wheel_headers
from rocwheel.wheels.record import find_record_problems, parse_record, record_errors
from rocwheel.wheels.zip_directory import find_dist_info
from rocwheel.wheels.zip_reader import digest_member, hash_member, read_member
from rocwheel.wheels.zip_refusals import group_faults, outside_reason

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    from rocwheel.wheels.zip_reader import ZipMember


_AGAIN = "Build the wheel again."


def check_members(
    path: Path | str,
    members: Sequence[ZipMember],
    refused: Sequence[InputError] = (),
    *,
    executor: Executor | None = None,
) -> dict[ZipMember, Digest]:
    """Unpack and hash all members of the wheel at ``path``, and return their digests.

    Raises `InputError`, or `ProblemsError` for several problems: for damaged members, names that point outside the
    environment, a wrong layout, and a RECORD that doesn't list each member with its correct hash. ``refused`` contains
    the problems in the wheel's headers that installers reject.
    """
    if executor is None:
        results = list(map(_digest_or_fault, members))
    else:
        results = list(map_sized(executor, _digest_or_fault, members, lambda member: member.size))
    pairs = list(zip(members, results, strict=True))
    digests = {member: result for member, result in pairs if isinstance(result, Digest)}
    faults = [(member.name, result) for member, result in pairs if isinstance(result, InputError)]
    by_name = {member.name: member for member in members}
    problems = [*find_layout_problems(path, by_name, digests), *_text_problems(path, by_name, digests)]
    raise_all(str(path), [*refused, *group_faults(path, faults), *problems, *_record_problems(path, by_name, digests)])
    return digests


def _digest_or_fault(member: ZipMember) -> Digest | InputError:
    if reason := outside_reason(member.name):
        return InputError(member.source, reason, expected="a path inside the environment", remedy=_AGAIN)
    try:
        return digest_member(member)
    except WorkError:
        raise
    except InputError as e:
        return e


_SCHEMES = ("purelib", "platlib", "headers", "scripts", "data")
_IN_SITE = ("purelib", "platlib")
_VERSION_1 = re.compile(r"1(\.[0-9]+)+")
_NOT_IN_COMMANDS = re.compile(r"[/\\\s]")


def find_layout_problems(
    path: Path | str, members: Mapping[str, ZipMember], readable: Container[ZipMember]
) -> Iterator[InputError]:
    """Yield the parts of a wheel's layout that pip or uv rejects, or that they install differently.

    ``members`` are keyed by name, and only ``readable`` members are unpacked.
    """
    dist_info = find_dist_info(path, members)
    if canonicalize_name(name_and_version(dist_info)[0]) != canonicalize_name(name_and_version(Path(path).name)[0]):
        expected = "a .dist-info folder with the wheel's name"
        yield InputError(path, f"has the metadata folder {dist_info}", expected=expected, remedy=_AGAIN)
    data = f"{dist_info.removesuffix('.dist-info')}.data"
    places: dict[str, str] = {}
    for name in members:
        place, problem = _placed(name, dist_info, data)
        if place in places:
            problem = (f"is installed to the same path as {places[place]}", "a unique path")
        if problem:
            found, expected = problem
            yield InputError(f"{path}!{name}", found, expected=expected, remedy=_AGAIN)
        places[place] = name
    folders = {place[:at]: name for place, name in places.items() for at, mark in enumerate(place) if mark == "/"}
    for place in places.keys() & folders.keys():
        found = f"is a file, but also the folder that contains {folders[place]}"
        yield InputError(f"{path}!{places[place]}", found, expected="either a file or a folder", remedy=_AGAIN)
    for found, expected in _value_problems(members, dist_info, readable):
        yield InputError(path, found, expected=expected, remedy=_AGAIN)


def _placed(name: str, dist_info: str, data: str) -> tuple[str, tuple[str, str] | None]:
    """Return a member's path in site-packages, or its name if it is installed elsewhere, and its problem, if any."""
    top, _, rest = name.partition("/")
    scheme, _, below = rest.partition("/")
    if top.endswith(".data"):
        if top != data:
            return name, ("is in a folder that pip installs as data, but uv doesn't", f"data in {data}")
        if scheme not in _SCHEMES or not below:
            return name, ("isn't in a scheme folder that installers know", f"one of {', '.join(_SCHEMES)} in {data}")
        if scheme == "scripts" and "/" in below:
            return name, ("is in a subfolder of scripts", "programs directly in scripts")
    place = below if top == data and scheme in _IN_SITE else name
    folder = place.partition("/")[0]
    if folder.endswith(".dist-info") and folder != dist_info:
        return place, ("is installed as the metadata of another distribution", f"only {dist_info}")
    return place, None


def _value_problems(
    members: Mapping[str, ZipMember], dist_info: str, readable: Container[ZipMember]
) -> Iterator[tuple[str, str]]:
    """Yield the problems with the version in WHEEL, and with the names of commands."""
    if (wheel := members.get(f"{dist_info}/WHEEL")) in readable and wheel is not None:
        version = next((value for key, value in wheel_headers(read_member(wheel)) if key == "wheel-version"), "")
        if version and not _VERSION_1.fullmatch(version):
            yield f"has Wheel-Version {quoted(version)}", "1.0"
    if (points := members.get(f"{dist_info}/entry_points.txt")) in readable and points is not None:
        with suppress(InputError):  # `_text_problems` and audits report unreadable entry points
            groups = parse_entry_points(points.source, read_member(points))
            if "DEFAULT" in groups:
                yield "its entry_points.txt has a DEFAULT section, which pip adds to all groups", "no DEFAULT section"
            for name in {name for group in SCRIPT_GROUPS for name in groups.get(group, {})}:
                if not name or name in {".", ".."} or _NOT_IN_COMMANDS.search(name):
                    yield f"has the command {quoted(name)}", "a file name without separators or spaces"


def _text_problems(
    path: Path | str, members: Mapping[str, ZipMember], digests: Container[ZipMember]
) -> Iterator[InputError]:
    """Yield problems with the text files that installers need. Audits report these problems under other names."""
    dist_info = find_dist_info(path, members)
    wheel = members.get(f"{dist_info}/WHEEL")
    if wheel is None:
        yield InputError(path, f"has no {dist_info}/WHEEL", expected="a wheel", remedy=_AGAIN)
    elif wheel in digests:
        text = read_member(wheel)
        # Like pip, read it as the headers of an email, which end at the first line that isn't a header.
        if not _is_utf8(text) or not BytesParser().parsebytes(text, headersonly=True).get("Wheel-Version"):
            expected = "UTF-8 text with a Wheel-Version"
            yield InputError(wheel.source, "can't be read by installers", expected=expected, remedy=_AGAIN)
    points = members.get(f"{dist_info}/entry_points.txt")
    if points is not None and points in digests:
        try:
            groups = parse_entry_points(str(path), read_member(points), strict=True)
        except InputError as e:
            yield e
            return
        for name, reference in (
            (name, text) for group in SCRIPT_GROUPS for name, text in groups.get(group, {}).items()
        ):
            if not is_function_reference(reference):
                found = f"has the command {quoted(name)} with the reference {quoted(reference)}"
                yield InputError(path, found, expected="MODULE:FUNCTION", remedy=_AGAIN)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _record_problems(
    path: Path | str, members: Mapping[str, ZipMember], digests: Mapping[ZipMember, Digest]
) -> Iterator[InputError]:
    dist_info = find_dist_info(path, members)
    record = members.get(f"{dist_info}/RECORD")
    if record is None:
        yield InputError(path, f"has no {dist_info}/RECORD", expected="a RECORD that lists its members", remedy=_AGAIN)
        return
    if record not in digests:  # it is reported with the damaged members
        return
    try:
        rows = parse_record(read_member(record), record.source)
    except InputError as e:
        yield e
        return

    def digest(name: str, algorithm: str) -> bytes | None:
        known = digests.get(members[name])
        if known is None:  # it is reported with the damaged members
            return None
        return known.sha256 if algorithm == "sha256" else hash_member(members[name], algorithm)

    sizes = {name: member.size for name, member in members.items()}
    yield from record_errors(record.source, find_record_problems(rows, sizes, dist_info, digest))
