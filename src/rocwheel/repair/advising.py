"""The run path of a linked file, by the packages that a user names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.binary.elf.facts import Elf, read_elf
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files import FileRange
from rocwheel.installed.read_tree import read_tree
from rocwheel.linking.sdk_layout import sdk_folders
from rocwheel.linking.system_libraries import allowed_libraries
from rocwheel.repair.advice import RunPathAdvice, advise_run_path, library_folders, normalized_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.linking.hwcaps import CpuLevel

__all__ = ["advise"]


def advise(
    file: Path, at: str, packages: Sequence[str], dlopen: Sequence[str] = (), cpu_level: CpuLevel = "x86-64"
) -> RunPathAdvice:
    """Return the shortest run path for a file that is installed ``at`` a place in site-packages.

    ``packages`` are wheels, folders, or packages of the SDK by their names, whose layout is known; ``dlopen`` are
    libraries that it opens by name; a processor of ``cpu_level`` has to find them. Raises `InputError` for packages
    that are not there, a place outside of site-packages, and files that can't be read.
    """
    known = {folder.distribution for folder in sdk_folders()}
    names = [package for package in packages if package in known]
    paths = [Path(package) for package in packages if package not in known]
    for path in paths:
        if not path.exists():
            expected = f"a wheel, a folder, or one of {', '.join(sorted(known))}"
            msg = f"--with {path}"
            raise InputError(msg, "does not exist", expected=expected)
    place = normalized_place(at, file.name)
    elf = _read(file)
    folders = library_folders(read_tree(paths), names, elf.machine, cpu_level)
    return advise_run_path(elf, place, folders, allowed_libraries(), dlopen)


def _read(file: Path) -> Elf:
    with FileRange.whole(file).map() as data:
        return read_elf(data, name=str(file))
