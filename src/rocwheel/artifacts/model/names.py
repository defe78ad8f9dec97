"""Names of artifacts, ``{name}_{component}_{target}``, as TheRock's artifact folders and archives carry them."""

from __future__ import annotations

import re

import msgspec

from rocwheel.binary.code_objects.target_id import processor_of
from rocwheel.core.errors import InputError

__all__ = ["ARCHIVE_SUFFIXES", "GENERIC", "ArtifactName", "looks_like_artifact"]

ARCHIVE_SUFFIXES = (".tar.xz", ".tar.zst")
"""How the file name of an artifact archive ends."""

GENERIC = "generic"
"""The target of artifacts that are the same for all GPUs."""

_FIELD = r"[A-Za-z0-9][A-Za-z0-9.+:~-]*"
_NAME = re.compile(f"({_FIELD})_({_FIELD})_({_FIELD})")
_LOOSE_NAME = re.compile(r"[^_]+_[^_]+_[^_]+")


class ArtifactName(msgspec.Struct, frozen=True, order=True):
    """The name of one artifact. The constructor does not validate; use `parse` for names from outside."""

    name: str
    """What is in it, such as ``blas``."""
    component: str
    """Which part of it: ``lib``, ``run``, ``dbg``, ``dev``, ``doc`` or ``test``."""
    target: str
    """``generic``, a GPU target such as ``gfx90a:xnack+``, or a target family such as ``gfx94X-dcgpu``; as found."""

    @classmethod
    def parse(cls, text: str, source: object = None) -> ArtifactName:
        """Split ``text`` at its two underscores.

        Raises `InputError` for ``source`` (``text`` by default) when there are not exactly two, or when a field is
        empty or holds a character that no artifact of TheRock has.
        """
        match = _NAME.fullmatch(text)
        if match is None:
            raise InputError(
                text if source is None else str(source),
                "is not an artifact name",
                expected="{name}_{component}_{target} of letters, digits and '.+:~-', such as blas_lib_gfx942",
            )
        return cls(*match.groups())

    @property
    def base_target(self) -> str:
        """The target without its feature suffix: ``gfx90a`` for ``gfx90a:xnack+``."""
        return processor_of(self.target)

    def __str__(self) -> str:
        return f"{self.name}_{self.component}_{self.target}"


def looks_like_artifact(text: str) -> bool:
    """Return whether TheRock would read ``text`` as an artifact's name: three fields separated by two underscores."""
    return _LOOSE_NAME.fullmatch(text) is not None
