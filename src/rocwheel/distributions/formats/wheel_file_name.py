"""Reading of the names of wheels and ``.dist-info`` folders (binary distribution format 1.0, "File name convention").

Wheels with faulty names have to be reported, so nothing is refused here that has the parts of a name. Where only valid
names are of use, ``packaging.utils.parse_wheel_filename`` reads them.
"""

from __future__ import annotations

import msgspec

from rocwheel.distributions.formats.platforms.tags import PlatformTag, parse_platforms
from rocwheel.distributions.variants.label import split_label, with_label

__all__ = ["WheelFileName", "is_wheel_file_name", "name_and_version", "split_wheel_file_name", "wheel_platforms"]

_SUFFIX = ".whl"
_PARTS = (5, 6)
"""Without and with a build number."""


class WheelFileName(msgspec.Struct, frozen=True):
    """The parts of a wheel's file name as they are spelled; each of the last three may be several, joined by dots."""

    stem: str
    """Distribution and version, and the build number if there is one."""
    python: str
    abi: str
    platform: str
    label: str = ""
    """The label of a wheel variant (:pep:`825`, a draft); empty for none."""

    @property
    def text(self) -> str:
        """The whole file name."""
        return with_label(f"{self.stem}-{self.python}-{self.abi}-{self.platform}{_SUFFIX}", self.label)

    @property
    def tags(self) -> tuple[str, str, str]:
        """The tags for Python, ABI and platform."""
        return self.python, self.abi, self.platform


def is_wheel_file_name(text: str) -> bool:
    """Return whether a file name has the five parts of a wheel's, or six with a build number; a label may follow."""
    return len(split_label(text)[0].removesuffix(_SUFFIX).split("-")) in _PARTS


def split_wheel_file_name(text: str) -> WheelFileName:
    """Return the parts of a wheel's file name; raise `ValueError` for a name of too few parts."""
    plain, label = split_label(text)
    stem, python, abi, platform = plain.removesuffix(_SUFFIX).rsplit("-", 3)
    return WheelFileName(stem, python, abi, platform, label)


def wheel_platforms(file_name: str) -> tuple[PlatformTag, ...]:
    """Return the platform tags in a wheel's file name."""
    return parse_platforms(split_wheel_file_name(file_name).platform)


def name_and_version(text: str) -> tuple[str, str]:
    """Return the distribution and version, as spelled, with which the name of a wheel or ``.dist-info`` folder begins.

    The version is empty in a name without one.
    """
    distribution, _, rest = text.removesuffix(".dist-info").partition("-")
    return distribution, rest.partition("-")[0]
