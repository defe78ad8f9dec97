"""The list of published wheels in trials/corpora/wheels.toml, and the download of them, each by its hash."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from tests.support.places import CACHE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["FOLDER", "System", "Wheel", "fetch", "local_wheels", "read_list", "unpack_all"]

_LIST = Path(__file__).with_name("wheels.toml")
FOLDER: Final = CACHE / "corpus"
"""Where the wheels are, in a folder for each system."""

System = Literal["linux", "windows", "musllinux", "macos"]
_OLDEST_LINUX = (5, 12, 17, 24, 26, 27, 28, 31, 34, 35, 39)
_PLATFORMS: Final[dict[System, list[str]]] = {
    "linux": [*(f"manylinux_2_{minor}_x86_64" for minor in _OLDEST_LINUX), "manylinux2014_x86_64"],
    "windows": ["win_amd64"],
    "musllinux": ["musllinux_1_1_x86_64", "musllinux_1_2_x86_64"],
    "macos": ["macosx_14_0_arm64"],
}
"""pip takes manylinux2014 for what older names without a version of glibc mean, too."""
_PYTHON: Final[dict[System, str]] = {"linux": "3.11", "windows": "3.12", "musllinux": "3.11", "macos": "3.12"}
"""Versions whose wheels are taken; those for Linux can be loaded by the oldest Python that tests run on."""


class Wheel(msgspec.Struct, frozen=True):
    """A published wheel."""

    file: str
    sha256: str
    """In hexadecimal."""
    system: System

    @property
    def path(self) -> Path:
        """Where it is once it was fetched."""
        return FOLDER / self.system / self.file

    @property
    def requirement(self) -> str:
        """A line that makes pip take this file alone."""
        name, version = self.file.split("-")[:2]
        return f"{name}=={version} --hash=sha256:{self.sha256}"

    @property
    def is_here(self) -> bool:
        """Whether the file was fetched, and is the one that is meant."""
        return self.path.is_file() and hashlib.sha256(self.path.read_bytes()).hexdigest() == self.sha256


class _List(msgspec.Struct, frozen=True):
    wheels: tuple[Wheel, ...] = msgspec.field(name="wheel")


def read_list() -> tuple[Wheel, ...]:
    """Return the wheels of the list, those for one system together."""
    return msgspec.toml.decode(_LIST.read_bytes(), type=_List).wheels


def fetch(wheels: Iterable[Wheel]) -> None:
    """Download what is absent; raises `subprocess.CalledProcessError` where pip can't, having said why."""
    absent = [wheel for wheel in wheels if not wheel.is_here]
    for system, group in groupby(absent, lambda wheel: wheel.system):
        platforms = [word for platform in _PLATFORMS[system] for word in ("--platform", platform)]
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as lines:
            lines.write("".join(f"{wheel.requirement}\n" for wheel in group))
            lines.flush()
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
            options = ["--only-binary", ":all:", "--require-hashes", "--python-version", _PYTHON[system], *platforms]
            target = ["--dest", str(FOLDER / system)]
            subprocess.run([*pip, *options, *target, "--requirement", lines.name], check=True)


def local_wheels(system: System) -> list[Path]:
    """Return the wheels for a system that are here, by name."""
    return sorted(wheel.path for wheel in read_list() if wheel.system == system and wheel.path.is_file())


def unpack_all(wheels: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield each wheel with a folder that holds its files, until the next is asked for."""
    for wheel in wheels:
        with tempfile.TemporaryDirectory(prefix="rocwheel-corpus.") as folder, zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
            yield wheel, Path(folder)
