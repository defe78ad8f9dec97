"""Checks wheels completely before they are published or rewritten: names, members, and RECORD (:pep:`427`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.workers import map_sized, raise_all
from rocwheel.wheels.content import Digest
from rocwheel.wheels.record import find_record_problems, parse_record, record_errors
from rocwheel.wheels.zip_directory import find_dist_info
from rocwheel.wheels.zip_reader import digest_member, hash_member, read_member
from rocwheel.wheels.zip_refusals import group_faults, outside_reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

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

    Raises `InputError`, or `ProblemsError` for several problems: for damaged members, names that point outside of the
    environment, and a RECORD that doesn't list each member with its correct hash. ``refused`` contains the problems in
    the wheel's headers that installers reject.
    """
    if executor is None:
        results = list(map(_digest_or_fault, members))
    else:
        results = list(map_sized(executor, _digest_or_fault, members, lambda member: member.size))
    pairs = list(zip(members, results, strict=True))
    digests = {member: result for member, result in pairs if isinstance(result, Digest)}
    faults = [(member.name, result) for member, result in pairs if isinstance(result, InputError)]
    problems = _record_problems(path, {member.name: member for member in members}, digests)
    raise_all(str(path), [*refused, *group_faults(path, faults), *problems])
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
