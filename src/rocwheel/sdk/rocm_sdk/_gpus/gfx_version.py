"""The version of a GPU as the kernel and the runtime write it, and its target."""

from __future__ import annotations

__all__ = ["DetectionError", "is_version", "target_name"]


class DetectionError(ValueError):
    """A variable or a file of the topology can't be understood: which one, and what is wrong with it."""

    def __init__(self, source: str, found: str) -> None:
        self.source = source
        self.found = found
        super().__init__(f"{source}: {found}")


def target_name(gfx_target_version: int) -> str:
    """Return the target of KFD's number: major * 10000 + minor * 100 + stepping, so 90010 is ``gfx90a``."""
    major, rest = divmod(gfx_target_version, 10000)
    minor, stepping = divmod(rest, 100)
    return f"gfx{major}{minor:x}{stepping:x}"


def is_version(version: int) -> bool:
    """Return whether a name can spell it: minor version and stepping are one character each, and AMD began with 6."""
    major, rest = divmod(version, 10000)
    return 6 <= major < 100 and all(number < 16 for number in divmod(rest, 100))
