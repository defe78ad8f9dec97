"""The files of a corpus: of this machine, of the environment that runs this, and of the published wheels."""

from __future__ import annotations

import os
import stat
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trials.corpora.wheels import local_wheels, unpack_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["MAGIC", "find", "machine_files", "wheel_files"]

MAGIC: Final = {"pe": b"MZ", "elf": b"\x7fELF"}
_FOLDERS: Final = {
    "pe": ("/usr/lib/x86_64-linux-gnu/wine", "/usr/x86_64-w64-mingw32", "/usr/lib/gcc/x86_64-w64-mingw32"),
    "elf": ("/usr/lib", "/usr/bin", "/usr/sbin", "/usr/libexec", "/usr/local/lib"),
}


def find(kind: str, folders: Iterable[str | Path]) -> Iterator[Path]:
    """Yield the files of a format below folders, each once, without symlinks."""
    seen: set[tuple[int, int]] = set()
    for path in (Path(parent, name) for folder in folders for parent, _, names in os.walk(folder) for name in names):
        status = path.lstat()
        identity = status.st_dev, status.st_ino
        if stat.S_ISREG(status.st_mode) and identity not in seen:
            seen.add(identity)
            with path.open("rb") as file:
                if file.read(len(MAGIC[kind])) == MAGIC[kind]:
                    yield path


def machine_files(kind: str) -> list[tuple[Path, str]]:
    """Return the files of this machine, and what each is called."""
    folders = (*_FOLDERS[kind], sysconfig.get_path("purelib"))
    return [(path, str(path)) for path in sorted(find(kind, folders))]


def wheel_files(kind: str) -> Iterator[list[tuple[Path, str]]]:
    """Yield the files of each published wheel, which are there until the next are asked for."""
    wheels = local_wheels("windows" if kind == "pe" else "linux")
    for wheel, folder in unpack_all(wheels):
        name = "-".join(wheel.name.split("-")[:2])
        yield [(path, f"{name}!{path.relative_to(folder)}") for path in sorted(find(kind, [folder]))]
