"""The members of a wheel compared with its RECORD (:pep:`427`)."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.formats.record import find_record_gaps, parse_record
from rocwheel.distributions.zip.directory import read_archive
from rocwheel.distributions.zip.dist_info import SIGNATURES, find_dist_info
from rocwheel.distributions.zip.member_names import outside_reason
from rocwheel.distributions.zip.reader import iter_member, read_member
from rocwheel.foundation.collecting import serialised
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.messages.counting import count
from rocwheel.installed.reading.read_file import begin_large
from rocwheel.verifying.hashing import reading_faults
from rocwheel.verifying.records import row_fault
from rocwheel.verifying.values import Fault, Verified

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Executor
    from pathlib import Path

    from rocwheel.distributions.formats.record import RecordEntry
    from rocwheel.distributions.zip.reader import ZipMember
    from rocwheel.foundation.progress import Progress

__all__ = ["verify_wheel"]

_ARE = ("is", "are")


def verify_wheel(path: Path, executor: Executor, progress: Progress) -> Verified:
    """Unpack all members of a wheel, and compare them with its RECORD.

    A damaged wheel is a fault, and so is what installers refuse in the wheel's headers and names.
    """
    faults: list[Fault] = []
    members: dict[str, ZipMember] = {}
    with reading_faults(str(path), faults):
        archive = read_archive(path)
        members = {member.name: member for member in archive.members}
        faults += [Fault("damaged", str(one.source), one.found, one.expected) for one in archive.refused]
        faults += [
            Fault("damaged", member.source, f"has {reason}", "a place inside the environment")
            for member in archive.members
            if (reason := outside_reason(member.name))
        ]
        info = find_dist_info(path, members)
        rows = _read_rows(path, members, info)
        faults += _text_faults(f"{path}!{info}/RECORD", rows)
        rows = tuple(_as_member(row, members) for row in rows)
        faults += _gap_faults(path, rows, members, info)
        step = begin_large(progress, f"verifying {path.name}", sum(member.size for member in members.values()))
        check = partial(_member_faults, advance=serialised(step.advance))
        for found in executor.map(check, _pairs(rows, members, info)):
            faults += found
    progress.end()
    return Verified(str(path), "wheel", len(members), sum(one.size for one in members.values()), tuple(faults))


def _read_rows(path: Path, members: Mapping[str, ZipMember], info: str) -> tuple[RecordEntry, ...]:
    record = members.get(f"{info}/RECORD")
    if record is None:
        raise InputError(path, f"has no {info}/RECORD", expected="a list of its members there")
    return parse_record(read_member(record), record.source)


def _text_faults(place: str, rows: tuple[RecordEntry, ...]) -> list[Fault]:
    number = sum(not _is_text(row.path) for row in rows)
    if not number:
        return []
    return [Fault("damaged", place, f"has {count(number, 'name')} that {_ARE[number > 1]} not UTF-8", "text in UTF-8")]


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_member(row: RecordEntry, members: Mapping[str, ZipMember]) -> RecordEntry:
    """Return a row with its path as archives have names that are not UTF-8: in the code page of their format."""
    if row.path in members or _is_text(row.path):
        return row
    name = row.path.encode("utf-8", "surrogateescape").decode("cp437")
    return msgspec.structs.replace(row, path=name) if name in members else row


def _gap_faults(
    path: Path, rows: tuple[RecordEntry, ...], members: Mapping[str, ZipMember], info: str
) -> Iterator[Fault]:
    gaps = find_record_gaps((row.path for row in rows), members, info)
    for name in gaps.absent:
        yield Fault("missing", f"{path}!{name}", "is missing", "a member, which RECORD lists")
    for name in gaps.unlisted:
        yield Fault("extra", f"{path}!{name}", "is not in RECORD", "members that RECORD lists alone")
    for name, number in gaps.repeated.items():
        yield Fault("unlisted", f"{path}!{name}", f"is {number} times in RECORD", "each member once")


def _pairs(
    rows: tuple[RecordEntry, ...], members: Mapping[str, ZipMember], info: str
) -> list[tuple[ZipMember, RecordEntry | None]]:
    """Return each member with its row; RECORD and its signatures, and what RECORD doesn't list, have none."""
    by_path = {row.path: row for row in rows}
    unhashed = {f"{info}/{name}" for name in ("RECORD", *SIGNATURES)}
    return [(member, None if name in unhashed else by_path.get(name)) for name, member in members.items()]


def _member_faults(pair: tuple[ZipMember, RecordEntry | None], advance: Callable[[int], object]) -> list[Fault]:
    member, row = pair
    faults: list[Fault] = []
    with reading_faults(member.source, faults):
        digest = partial(_digest, member, advance=advance)
        if row is None:
            digest("sha256")
        elif fault := row_fault(row, member.source, member.size, digest):
            faults.append(fault)
    return faults


def _digest(member: ZipMember, algorithm: str, advance: Callable[[int], object]) -> bytes:
    """Return the hash of a member; raise `InputError` where it is damaged."""
    hasher = hashlib.new(algorithm)
    for data in iter_member(member):
        hasher.update(data)
        advance(len(data))
    return hasher.digest()
