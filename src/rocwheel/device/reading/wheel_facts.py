"""The facts of the device code in the files of a wheel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.compressed.content import RAW_SIZE_LIMIT
from rocwheel.device.reading.facts import DeviceFacts, read_device_facts
from rocwheel.device.reading.files import read_members
from rocwheel.device.reading.payload_facts import Look
from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.foundation.files.file_view import Data

__all__ = ["MemberFacts", "WheelFacts", "list_wheel_device_code"]

_LOOK = Look(strict=False)


class MemberFacts(msgspec.Struct, frozen=True):
    """The device code of one file, ``path`` in the wheel."""

    path: str
    device: DeviceFacts


class WheelFacts(msgspec.Struct, frozen=True):
    """The files of a wheel that have device code, and what is doubtful about them or can't be read."""

    files: tuple[MemberFacts, ...]
    problems: tuple[str, ...]


def list_wheel_device_code(wheel: Path, *, limit: int = RAW_SIZE_LIMIT) -> WheelFacts:
    """Return the facts of every file with device code; members that unpack to more than ``limit`` bytes are problems.

    Raises `InputError` for a damaged archive, and when no file has device code.
    """
    files: list[MemberFacts] = []
    problems: list[str] = []
    for name, facts in read_members(wheel, _read, limit=limit):
        if isinstance(facts, InputError):
            problems.append(str(facts))
        elif facts is not None:
            files.append(MemberFacts(name, facts))
            problems += facts.problems
    if not files and not problems:
        raise InputError(wheel, "no device code", expected="a wheel with device code")
    return WheelFacts(tuple(files), tuple(problems))


def _read(data: Data, name: str) -> DeviceFacts | None:
    return read_device_facts(data, name=name, look=_LOOK)
