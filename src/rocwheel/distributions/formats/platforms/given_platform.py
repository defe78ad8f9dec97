"""A platform tag that somebody gives: whether installers know it, and whether it fits the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError
from rocwheel.distributions.formats.platforms.tags import (
    is_known_platform,
    is_platform,
    nearest_platform,
    parse_platforms,
    split_tags,
)

if TYPE_CHECKING:
    from rocwheel.distributions.formats.platforms.platform_floor import PlatformFloor
    from rocwheel.distributions.formats.platforms.tags import PlatformTag

__all__ = ["WINDOWS_TAG", "check_platform", "check_platform_of_files", "check_platform_of_windows"]

WINDOWS_TAG = "win_amd64"
"""The platform tag of wheels for Windows on x86-64."""

_OPTION = "--platform-tag"
_EXAMPLE = "manylinux_2_28_x86_64"


def check_platform(text: str, source: str = _OPTION) -> None:
    """Raise `InputError` for a text that is no platform tag, and for a tag that no installer takes.

    The text may be several tags, joined by dots. ``source`` is what gave it, for messages.
    """
    if not is_platform(text):
        raise InputError(source, f"is {text!r}", expected=f"a tag such as {_EXAMPLE}, or several joined by dots")
    for tag in split_tags(text):
        if not is_known_platform(tag):
            nearest = nearest_platform(tag)
            expected = f"a tag that installers know, such as {nearest or _EXAMPLE}"
            remedy = f"Did you mean {nearest}?" if nearest else ""
            raise InputError(source, f"is {tag!r}, which no installer takes", expected=expected, remedy=remedy)


def check_platform_of_files(text: str, floor: PlatformFloor | None, source: str = _OPTION) -> None:
    """Raise `InputError` for a tag of another system, machine or C library than the files, whose floor is ``floor``.

    Any tag fits files without machine code, which have no floor; one for musl fits files that do not need glibc.
    """
    for tag in parse_platforms(text) if floor else ():
        if floor and (reason := _misfit(tag, floor)):
            raise InputError(source, f"is {tag.text!r}, but {reason}", expected=f"a tag such as {floor.tag}")


def check_platform_of_windows(text: str, source: str = _OPTION) -> None:
    """Raise `InputError` for a tag of another system or machine than Windows on x86-64."""
    for tag in split_tags(text):
        if tag != WINDOWS_TAG:
            raise InputError(
                source, f"is {tag!r}, but the files are for Windows on x86-64", expected=f"the tag {WINDOWS_TAG}"
            )


def _misfit(tag: PlatformTag, floor: PlatformFloor) -> str:
    """Return why a tag does not fit the files; empty if it does."""
    if not tag.is_linux or tag.machine != floor.architecture:
        return f"the files are for Linux on {floor.architecture}"
    return f"{floor.needs_glibc} needs glibc" if tag.system == "musl" and floor.needs_glibc else ""
