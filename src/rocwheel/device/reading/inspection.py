"""Facts about binaries wherever they are: a file, a folder, or a wheel, whose members are unpacked one at a time."""

from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.binary.bundles.compressed.content import RAW_SIZE_LIMIT
from rocwheel.binary.elf.facts import ElfKind, read_elf
from rocwheel.binary.kind import HEAD_SIZE, is_binary, is_elf, is_thin_archive
from rocwheel.device.reading.facts import DeviceFacts, read_device_facts
from rocwheel.device.reading.payload_facts import Look
from rocwheel.device.reading.target_facts import summarize_targets
from rocwheel.distributions.zip.reader import member_head, open_unpacked, read_directory
from rocwheel.foundation.errors import InputError, read_error
from rocwheel.foundation.files.file_range import FileRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.distributions.zip.reader import ZipMember
    from rocwheel.foundation.files.file_view import Data

__all__ = ["ElfFacts", "FileFacts", "file_document", "inspect_paths"]


_ZIP_MAGIC = b"PK\3\4"


class ElfFacts(msgspec.Struct, frozen=True):
    """What is of use about a host ELF file."""

    kind: str
    machine: int
    soname: str | None
    needed: tuple[str, ...]
    rpath: str | None
    runpath: str | None
    build_id: str | None


class FileFacts(msgspec.Struct, frozen=True):
    """One binary: its path (``wheel!member`` in a wheel), size in bytes, and what it is; or the error that it gave."""

    path: str
    size: int
    elf: ElfFacts | None = None
    device: DeviceFacts | None = None
    error: InputError | None = None


def file_document(facts: FileFacts) -> dict[str, Any]:
    """Return the facts as JSON has them, device code with its targets summed up."""
    device: dict[str, Any] | None = None
    if facts.device:
        targets = summarize_targets(facts.device)
        device = {
            **msgspec.to_builtins(facts.device),
            "size": facts.device.size,
            "raw_size": facts.device.raw_size,
            "targets": msgspec.to_builtins(targets),
            "targets_in_all_bundles": [target.target for target in targets if not target.missing],
        }
    return {
        "path": facts.path,
        "size": facts.size,
        "elf": msgspec.to_builtins(facts.elf),
        "error": str(facts.error) if facts.error else None,
        "device": device,
    }


def inspect_paths(paths: Iterable[Path], *, deep: bool = False, limit: int = RAW_SIZE_LIMIT) -> Iterator[FileFacts]:
    """Yield the facts of every binary among ``paths``: files, folders with all that is below, and wheels.

    No member of a wheel that unpacks to more than ``limit`` bytes is read, nor, with ``deep``, a bundle that
    decompresses to more. A path that can't be read, is damaged or is not a binary comes with
    its error; the rest follows.
    """
    look = Look(deep=deep, limit=limit)
    for path in paths:
        try:
            mode = path.stat().st_mode
        except OSError as e:
            yield _unreadable(path, e)
            continue
        yield from _inspect_folder(path, look) if stat.S_ISDIR(mode) else _inspect_named(path, mode, look)


def _inspect_named(path: Path, mode: int, look: Look) -> Iterator[FileFacts]:
    """Inspect a file that was named, so that there has to be something in it."""
    head = _head(path) if stat.S_ISREG(mode) else b""
    if not stat.S_ISREG(mode):
        # A pipe would be waited for, a device read without end.
        yield _refused(path, "is not a regular file", expected="a binary, a folder or a wheel")
    elif not is_binary(head) and zipfile.is_zipfile(path):
        yield from _inspect_wheel(path, look)
    elif head[: len(_ZIP_MAGIC)] == _ZIP_MAGIC or (path.suffix == ".whl" and not is_binary(head)):
        yield _refused(path, "a truncated or damaged archive", expected="a whole wheel, with its directory at the end")
    else:
        kinds = "an ELF file, an archive, a bundle, a folder or a wheel"
        facts = _inspect_file(path, look)
        yield facts or _refused(path, "a thin archive" if _is_thin(path) else "not a binary", expected=kinds)


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_SIZE)
    except OSError:
        return b""  # reading it whole raises the error


def _is_thin(path: Path) -> bool:
    with FileRange.whole(path).view() as data:
        return is_thin_archive(data)


def _refused(path: Path, found: str, *, expected: str = "") -> FileFacts:
    return FileFacts(str(path), 0, error=InputError(path, found, expected=expected))


def _unreadable(path: Path, error: OSError) -> FileFacts:
    return FileFacts(str(path), 0, error=read_error(path, error))


def _inspect_folder(folder: Path, look: Look) -> Iterator[FileFacts]:
    unreadable: list[OSError] = []
    walk = os.walk(folder, onerror=unreadable.append)
    for file in sorted(Path(root, name) for root, _, names in walk for name in names):
        try:
            mode = file.lstat().st_mode
        except OSError as e:
            yield _unreadable(file, e)
            continue
        if stat.S_ISREG(mode):
            yield from _inspect_found(file, look)
    for error in unreadable:
        yield FileFacts(error.filename, 0, error=read_error(error.filename, error, remedy=""))


def _inspect_found(path: Path, look: Look) -> Iterator[FileFacts]:
    """Inspect a file of a folder, which may be anything."""
    if path.suffix == ".whl":
        yield from _inspect_wheel(path, look)
    elif facts := _inspect_file(path, look):
        yield facts


def _inspect_file(path: Path, look: Look) -> FileFacts | None:
    try:
        with FileRange.whole(path).view() as data:
            return _read_facts(data, str(path), look) if is_binary(data) else None
    except InputError as e:
        return FileFacts(str(path), 0, error=e)


def _read_facts(data: Data, name: str, look: Look) -> FileFacts:
    try:
        device = read_device_facts(data, name=name, look=look)
        return FileFacts(name, len(data), _read_elf_facts(data, name), device)
    except InputError as e:
        return FileFacts(name, len(data), error=e)


def _read_elf_facts(data: Data, name: str) -> ElfFacts | None:
    if not is_elf(data):
        return None
    elf = read_elf(data, name=name)
    if elf.kind is ElfKind.CODE_OBJECT:
        return None
    return ElfFacts(elf.kind.value, elf.machine, elf.soname, elf.needed, elf.rpath, elf.runpath, elf.build_id)


def _inspect_wheel(path: Path, look: Look) -> Iterator[FileFacts]:
    try:
        members = read_directory(path)
    except InputError as e:
        yield FileFacts(str(path), path.stat().st_size, error=e)
        return
    facts = (_inspect_member(member, look) for member in members)
    yield from (found for found in facts if found)


def _inspect_member(member: ZipMember, look: Look) -> FileFacts | None:
    try:
        if not is_binary(member_head(member)):
            return None
        with open_unpacked(member, limit=look.limit) as (unpacked, _), unpacked.view() as data:
            return _read_facts(data, member.source, look)
    except InputError as e:
        return FileFacts(member.source, member.size, error=e)
