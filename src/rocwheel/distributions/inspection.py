"""Facts about binaries wherever they are: a file, a folder, or a wheel, whose members are never unpacked to disk."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.ar_archive import is_ar_archive
from rocwheel.binary.bundle_sequence import is_bundle
from rocwheel.binary.device_facts import DeviceFacts, read_device_facts
from rocwheel.binary.elf import ElfKind, is_elf, read_elf
from rocwheel.errors import InputError
from rocwheel.files import FileRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["ElfFacts", "FileFacts", "inspect_paths"]

_MEMBER_LIMIT = 1 << 33
_MAGIC_SIZE = 64


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


def inspect_paths(paths: Iterable[Path], *, deep: bool = False) -> Iterator[FileFacts]:
    """Give the facts of every binary among ``paths``: files, folders with all that is below, and wheels.

    A damaged file is given with its error. Raises `InputError` for a path that can't be read, and for a file that is
    named itself but is no binary.
    """
    for path in paths:
        if path.is_dir():
            for file in sorted(path.rglob("*")):
                if file.is_file() and not file.is_symlink():
                    yield from _inspect_file(file, deep=deep)
        elif zipfile.is_zipfile(path):
            yield from _inspect_wheel(path, deep=deep)
        else:
            facts = list(_inspect_file(path, deep=deep))
            if not facts:
                raise InputError(path, "no binary", expected="an ELF file, an archive, a bundle, a folder or a wheel")
            yield from facts


def _inspect_file(path: Path, *, deep: bool) -> Iterator[FileFacts]:
    try:
        source = FileRange.whole(path)
    except OSError as e:
        raise InputError(path, f"cannot be read ({e.strerror})") from e
    with source.map() as data:
        if _is_binary(data):
            yield _read_facts(data, str(path), deep=deep)


def _is_binary(head: memoryview) -> bool:
    return is_elf(head) or is_bundle(head) or is_ar_archive(head)


def _read_facts(data: memoryview, name: str, *, deep: bool) -> FileFacts:
    try:
        return FileFacts(name, len(data), _read_elf_facts(data, name), read_device_facts(data, name=name, deep=deep))
    except InputError as e:
        return FileFacts(name, len(data), error=e)


def _read_elf_facts(data: memoryview, name: str) -> ElfFacts | None:
    if not is_elf(data):
        return None
    elf = read_elf(data, name=name)
    if elf.kind is ElfKind.CODE_OBJECT:
        return None
    return ElfFacts(elf.kind.value, elf.machine, elf.soname, elf.needed, elf.rpath, elf.runpath, elf.build_id)


def _inspect_wheel(path: Path, *, deep: bool) -> Iterator[FileFacts]:
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                yield from _inspect_member(archive, info, path, deep=deep)
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError) as e:
        raise InputError(path, f"a damaged wheel ({e})", remedy="Build or download it again.") from e


def _inspect_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path, *, deep: bool) -> Iterator[FileFacts]:
    with archive.open(info) as member:
        head = member.read(_MAGIC_SIZE)
        if not _is_binary(memoryview(head)):
            return
        name = f"{path}!{info.filename}"
        if info.file_size > _MEMBER_LIMIT:
            raise InputError(name, f"{info.file_size} bytes", expected=f"at most {_MEMBER_LIMIT} in a wheel")
        if info.compress_type == zipfile.ZIP_STORED:
            with _stored_range(path, info).map() as data:
                yield _read_facts(data, name, deep=deep)
        else:
            yield _read_facts(memoryview(head + member.read()), name, deep=deep)


def _stored_range(path: Path, info: zipfile.ZipInfo) -> FileRange:
    """Find the bytes of a stored member: they follow a local header of 30 bytes, the name and extra fields."""
    with path.open("rb") as file:
        file.seek(info.header_offset + 26)
        sizes = file.read(4)
    start = info.header_offset + 30 + int.from_bytes(sizes[:2], "little") + int.from_bytes(sizes[2:], "little")
    return FileRange(str(path), start, info.file_size)
