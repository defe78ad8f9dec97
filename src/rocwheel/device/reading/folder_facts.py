"""The facts of the device code in the files of a wheel or a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.compressed.content import RAW_SIZE_LIMIT
from rocwheel.device.reading.device_facts import DeviceFacts
from rocwheel.device.reading.facts import read_device_facts
from rocwheel.device.reading.payload_facts import Look
from rocwheel.distributions.binaries import Binary, read_binaries
from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.foundation.files.file_view import Data

__all__ = ["FolderFacts", "MemberFacts", "list_folder_device_code"]

_LOOK = Look(strict=False)


class MemberFacts(msgspec.Struct, frozen=True):
    """The device code of one file, ``path`` in the wheel or below the folder."""

    path: str
    device: DeviceFacts


class FolderFacts(msgspec.Struct, frozen=True):
    """The files of a wheel or folder that have device code, and what is doubtful about them or can't be read."""

    files: tuple[MemberFacts, ...]
    problems: tuple[str, ...]


def list_folder_device_code(path: Path, *, limit: int = RAW_SIZE_LIMIT) -> FolderFacts:
    """Return the facts of every file with device code in a wheel, or in a folder and the wheels below it.

    Members of wheels that unpack to more than ``limit`` bytes are problems.
    Raises `InputError` when no file has device code.
    """
    files: list[MemberFacts] = []
    problems: list[str] = []
    for name, facts in read_binaries(path, _read, limit=limit):
        if isinstance(facts, InputError):
            problems.append(str(facts))
        elif facts is not None:
            files.append(MemberFacts(name[len(str(path)) + 1 :], facts))
            problems += facts.problems
    if not files and not problems:
        raise InputError(path, "no device code", expected="a wheel or a folder with device code")
    return FolderFacts(tuple(files), tuple(problems))


def _read(data: Data, found: Binary) -> DeviceFacts | None:
    return read_device_facts(data, name=found.name, look=_LOOK, folder=found.folder)
