"""The facts of the device code in all files of wheels and folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.compressed import RAW_SIZE_LIMIT
from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.device.reading.device_facts import DeviceFacts
from rocwheel.device.reading.facts import read_device_facts
from rocwheel.device.reading.kpack.given_archives import GivenArchives
from rocwheel.device.reading.payload_facts import Look
from rocwheel.wheels.binaries import Binary, find_all_binaries, read_found, tracked_binaries

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rocwheel.core.reading import Data

__all__ = ["FolderFacts", "MemberFacts", "list_all_device_code", "list_folder_device_code"]

_LOOK = Look(strict=False)


class MemberFacts(msgspec.Struct, frozen=True):
    """The device code of one file, ``path`` in the wheel or below the folder; of several places, with its place."""

    path: str
    device: DeviceFacts


class FolderFacts(msgspec.Struct, frozen=True):
    """The files of a wheel or folder that have device code, and what is doubtful about them or can't be read."""

    files: tuple[MemberFacts, ...]
    problems: tuple[str, ...]


def list_folder_device_code(path: Path, *, limit: int = RAW_SIZE_LIMIT, progress: Progress = SILENT) -> FolderFacts:
    """Return the facts of every file with device code in a wheel, or in a folder and the wheels below it.

    Libraries that were split are listed with the code in archives there. Members of wheels that unpack to more than
    ``limit`` bytes are problems. Raises `InputError` when no file has device code.
    """
    found = list_all_device_code([path], limit=limit, progress=progress)
    start = f"{path}!" if path.is_file() else f"{str(path).rstrip('/')}/"
    files = tuple(MemberFacts(file.path.removeprefix(start), file.device) for file in found.files)  # no name has ./
    return FolderFacts(files, found.problems)


def list_all_device_code(
    paths: Sequence[Path], *, limit: int = RAW_SIZE_LIMIT, progress: Progress = SILENT
) -> FolderFacts:
    """Return the facts of every file with device code at ``paths``, which are files, folders and wheels, by its name.

    Libraries that were split are listed with the code in archives among all that is given. Raises `InputError` for one
    path that can't be read, and when no file has device code.
    """
    binaries = list(find_all_binaries(paths))
    archives = GivenArchives(binaries)
    files: list[MemberFacts] = []
    problems: list[str] = []

    def read(data: Data, found: Binary) -> DeviceFacts | None:
        return read_device_facts(data, name=found.name, look=_LOOK, folder=found.folder, beside=archives.beside(found))

    for name, facts in read_found(tracked_binaries(binaries, "reading device code", progress), read, limit=limit):
        if isinstance(facts, InputError):
            if [name] == [str(path) for path in paths]:
                raise facts
            problems.append(str(facts))
        elif facts is not None:
            files.append(MemberFacts(name, facts))
            problems += facts.problems
    if not files and not problems:
        listed = ", ".join(map(str, paths))
        raise InputError(listed, "no device code", expected="a wheel or a folder with device code")
    return FolderFacts(tuple(files), tuple(dict.fromkeys(problems)))
