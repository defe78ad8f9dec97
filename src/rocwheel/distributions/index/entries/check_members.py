"""Whether the members of a wheel are what its directory and its RECORD promise, and can be installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.messages import count, first_of
from rocwheel.core.workers import raise_all
from rocwheel.distributions.formats.record import find_record_gaps, parse_record
from rocwheel.distributions.zip.dist_info import find_dist_info
from rocwheel.distributions.zip.member_names import outside_reason
from rocwheel.distributions.zip.reader import check_member, read_member
from rocwheel.distributions.zip.refusals import group_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rocwheel.distributions.zip.reader import ZipMember

__all__ = ["check_members"]

_NAMED = 10
"""Members that a message names of all that have the same fault."""
_REMEDY = "Build the wheel again."


def check_members(path: Path, members: Mapping[str, ZipMember], refused: Sequence[InputError] = ()) -> None:
    """Raise `InputError` for what is wrong with the members of the wheel at ``path``; `ProblemsError` for several.

    ``refused`` is what installers refuse in its headers.

    Every member is unpacked. Its name has to lead into the environment, and RECORD to list it (:pep:`427`). Whether
    RECORD has the right hashes is not asked.
    """
    faults = [fault for member in members.values() if (fault := _fault(member))]
    raise_all(str(path), [*refused, *group_faults(path, faults), *_record_problems(path, members)])


def _fault(member: ZipMember) -> tuple[str, InputError] | None:
    try:
        if reason := outside_reason(member.name):
            raise InputError(member.source, reason, expected="a place inside the environment", remedy=_REMEDY)
        check_member(member)
    except WorkError:
        raise
    except InputError as e:
        return member.name, e
    return None


def _record_problems(path: Path, members: Mapping[str, ZipMember]) -> Iterator[InputError]:
    dist_info = find_dist_info(path, members)
    record = members.get(f"{dist_info}/RECORD")
    if record is None:
        yield InputError(path, f"has no {dist_info}/RECORD", expected="a list of its members there", remedy=_REMEDY)
        return
    try:
        text = read_member(record)
    except InputError:  # which is named among the damaged members
        return
    try:
        rows = parse_record(text, record.source)
    except InputError as e:
        yield InputError(e.source, e.found, expected=e.expected, remedy=_REMEDY)
        return
    gaps = find_record_gaps((row.path for row in rows), members, dist_info)
    for what, paths in (("doesn't list", gaps.unlisted), ("lists absent", gaps.absent), ("repeats", [*gaps.repeated])):
        if paths:
            found = f"{what} {count(len(paths), 'file')}: {first_of(paths, _NAMED)}"
            yield InputError(record.source, found, expected="each member once", remedy=_REMEDY)
