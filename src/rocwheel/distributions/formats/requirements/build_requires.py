"""What the build of an sdist requires, wherever it is installed (:pep:`518`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.decoding import decode_toml
from rocwheel.core.errors import InputError
from rocwheel.distributions.tar.sdist_file import read_sdist_file

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_build_requires"]

_LEGACY = ("setuptools>=40.8.0",)
"""What installers take for an sdist that doesn't say it."""


class _BuildSystem(msgspec.Struct):
    requires: tuple[str, ...] = _LEGACY


class _Project(msgspec.Struct, rename="kebab"):
    build_system: _BuildSystem = msgspec.field(default_factory=_BuildSystem)


def read_build_requires(path: Path) -> tuple[str, ...]:
    """Return the requirements of an sdist's build, as its ``pyproject.toml`` has them.

    Raises `InputError` for one that can't be read, and `OSError` when the sdist can't.
    """
    data = read_sdist_file(path, "pyproject.toml")
    try:
        return decode_toml(data or b"", _Project).build_system.requires
    except msgspec.DecodeError as e:
        place = f"{path}!pyproject.toml"
        raise InputError(place, f"can't be read ({e})", expected="that of PEP 518") from e
