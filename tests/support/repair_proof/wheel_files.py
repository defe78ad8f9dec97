"""The ELF files of wheels, unpacked as an installer does."""

from __future__ import annotations

import mmap
import os
import re
import shutil
import zipfile
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.facts import Elf, read_elf
from rocwheel.binary.elf.header import ElfError
from rocwheel.binary.kind import is_elf

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["UnpackedFile", "folders", "requirements", "unpack"]

_X86_64 = 62
_DATA = re.compile(r"[^/]+\.data/([^/]+)/(.+)")
# Where installers put what is in a wheel's data folders, relative to site-packages.
_DATA_PLACES = {"platlib": "", "purelib": "", "data": "../../../", "scripts": "../../../bin/"}
_NAME = re.compile(rb"(?<=\0)(?:lib[\w+.-]+\.so(?:\.\d+)*|[A-Za-z][\w-]{2,30})(?=\0)")


class UnpackedFile(msgspec.Struct, frozen=True, dict=True):
    """A file that the loader of this machine loads."""

    path: str
    """Relative to site-packages."""
    real: Path
    crc32: int
    elf: Elf

    @property
    def folder(self) -> str:
        """The folder that ``$ORIGIN`` stands for, relative to site-packages."""
        return os.path.dirname(self.path)  # noqa: PTH120 (no path of this machine)

    @cached_property
    def _texts(self) -> frozenset[str]:
        """What a file that calls ``dlopen`` has of names of libraries: ``libx.so.1``, and ``x`` alone."""
        if not self.elf.imports_dlopen:
            return frozenset()
        with _mapped(self.real) as data:
            return frozenset(bytes(name).decode() for name in _NAME.findall(data))

    def opened(self, stems: Iterable[str]) -> frozenset[str]:
        """Return the names of libraries that a file may open by ``dlopen``, judging by the texts in it.

        Some files put names together: of ``stems`` such as ``amdhip64``, the text alone stands for ``libamdhip64.so``.
        """
        made = {f"lib{stem}.so" for stem in stems if stem in self._texts}
        return frozenset({name for name in self._texts if ".so" in name} | made)


def unpack(wheel: Path, site: Path, twins: dict[str, UnpackedFile] | None = None) -> dict[str, UnpackedFile]:
    """Unpack the ELF files of a wheel to a site-packages folder; return those that the loader loads, by their paths.

    A file with the CRC of its twin, by its path, is linked to it instead.
    """
    found = {}
    with zipfile.ZipFile(wheel) as archive:
        for info, path in _elf_members(archive):
            target = Path(os.path.normpath(site / path))
            target.parent.mkdir(parents=True, exist_ok=True)
            twin = (twins or {}).get(path)
            if twin is not None and twin.crc32 == info.CRC:
                os.link(twin.real, target)
            else:
                with archive.open(info) as source, target.open("wb") as copy:
                    shutil.copyfileobj(source, copy, 1 << 20)
            elf = _read(target)
            if elf is not None:
                found[path] = UnpackedFile(path, target, info.CRC, elf)
    return found


def folders(wheel: Path) -> set[str]:
    """Return every folder, relative to site-packages, that a wheel has files in or below."""
    with zipfile.ZipFile(wheel) as archive:
        paths = [PurePosixPath(_place(name)) for name in archive.namelist()]
    return {str(folder) for path in paths for folder in path.parents if {*folder.parts} - {".."}}


def _place(member: str) -> str:
    """Return where installers put a member, relative to site-packages."""
    match = _DATA.fullmatch(member)
    return member if match is None else _DATA_PLACES.get(match[1], "../") + match[2]


def _elf_members(archive: zipfile.ZipFile) -> Iterator[tuple[zipfile.ZipInfo, str]]:
    """Yield the ELF files with their places relative to site-packages."""
    for info in archive.infolist():
        with archive.open(info) as source:
            if is_elf(source.read(4)):
                yield info, _place(info.filename)


def _read(path: Path) -> Elf | None:
    try:
        with _mapped(path) as data:
            elf = read_elf(data, name=str(path))
    except ElfError:
        return None
    return elf if elf.is_loadable and elf.machine == _X86_64 else None


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap]:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def requirements(wheel: Path) -> list[str]:
    """Return the ``Requires-Dist`` lines of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)]
        head = archive.read(name).decode(errors="replace").partition("\n\n")[0]
    return re.findall(r"^Requires-Dist: *(.+?)\r?$", head, re.MULTILINE)
