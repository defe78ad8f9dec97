"""What differs between the systems that the packages run on: everything else asks `this_platform`."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

    from .posix import Posix
    from .windows import Windows

    Platform = Union[Posix, Windows]

__all__ = ["this_platform", "use_platform"]

_IN_USE: list[Platform] = []


def this_platform() -> Platform:
    """Return the side of this machine: `posix.Posix` or `windows.Windows`."""
    if not _IN_USE:
        _IN_USE.append(_make_platform())
    return _IN_USE[0]


def use_platform(platform: Platform) -> None:
    """Have another side asked from now on, such as Windows whose calls a test has replaced."""
    _IN_USE[:] = [platform]


def _make_platform() -> Platform:
    if sys.platform == "win32":
        from .calls import WindowsCalls  # noqa: PLC0415 (each side imports what the other has not)
        from .windows import Windows  # noqa: PLC0415

        return Windows(WindowsCalls())
    from .posix import Posix  # noqa: PLC0415

    return Posix()
