"""The ELF files of packages as they will stand in site-packages: wheels, folders of wheels, or an environment's own."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.binary.elf import Elf, is_elf, read_elf
from rocwheel.errors import InputError
from rocwheel.files import FileRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["read_installed_elves"]

_MAGIC_SIZE = 16
_DATA = ".data/"


def read_installed_elves(paths: Iterable[Path]) -> dict[str, Elf]:
    """Return the ELF files of packages by their path in site-packages.

    Each path is a wheel, a folder of wheels, or a site-packages folder. Damaged files and those of other classes are
    left out: no loader takes them. Raises `InputError` for a path that is none of these.
    """
    elves: dict[str, Elf] = {}
    for path in paths:
        for package in _packages(path):
            elves.update(_wheel_elves(package) if package.is_file() else _folder_elves(package))
    return elves


def _packages(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(path.glob("*.whl")) or [path]
    if path.suffix == ".whl" and zipfile.is_zipfile(path):
        return [path]
    expected = "a wheel, a folder of wheels, or a site-packages folder"
    raise InputError(path, "is no package", expected=expected, remedy="Correct --with.")


def _folder_elves(folder: Path) -> Iterator[tuple[str, Elf]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and (elf := _read(path)):
            yield path.relative_to(folder).as_posix(), elf


def _wheel_elves(wheel: Path) -> Iterator[tuple[str, Elf]]:
    try:
        with zipfile.ZipFile(wheel) as archive:
            for info in archive.infolist():
                elf = _member_elf(archive, info)
                if elf is not None:
                    yield _installed_place(info.filename), elf
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError) as e:
        raise InputError(wheel, f"a damaged wheel ({e})", remedy="Build or download it again.") from e


def _member_elf(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Elf | None:
    with archive.open(info) as member:
        head = member.read(_MAGIC_SIZE)
        if not is_elf(head):
            return None
        # To disk, not to memory: an SDK's libraries have hundreds of megabytes, of which few are read.
        with tempfile.NamedTemporaryFile(prefix="rocwheel-") as unpacked:
            unpacked.write(head)
            shutil.copyfileobj(member, unpacked, 1 << 20)
            unpacked.flush()
            return _read(Path(unpacked.name))


def _read(path: Path) -> Elf | None:
    try:
        with FileRange.whole(path).map() as data:
            return read_elf(data, name=str(path)) if is_elf(data) else None
    except InputError:
        return None


def _installed_place(member: str) -> str:
    """Return where an installer puts a member: ``NAME.data/purelib`` and ``platlib`` are site-packages, too."""
    root, found, rest = member.partition(_DATA)
    if found and "/" not in root and rest.startswith(("purelib/", "platlib/")):
        return rest.partition("/")[2]
    return member
