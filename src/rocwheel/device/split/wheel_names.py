"""Names of the wheels that a split makes, and of the extras that ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.utils import InvalidName, canonicalize_name

from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.core.names import is_file_name
from rocwheel.targets.kernel_files import find_family
from rocwheel.wheels.metadata import wheel_headers
from rocwheel.wheels.names import is_distribution_name, without_label

if TYPE_CHECKING:
    from pathlib import Path


_EXTRA = "device-"
ALL_EXTRA = f"{_EXTRA}all"
"""The extra that asks for the device wheels of every target and family."""


def check_prefix(prefix: str) -> None:
    """Raise `InputError` for a text that no name of a distribution can begin with."""
    try:
        canonicalize_name(prefix, validate=True)
    except InvalidName as e:
        option, found = "--device-name", f"is {prefix!r}, with which no name of a distribution can begin"
        expected = "letters, digits and single '-', '_' and '.' between them, such as torch-device"
        raise InputError(option, found, expected=expected) from e


def is_device_extra(extra: str) -> bool:
    """Return whether an extra is called as those are that ask for device wheels: of a target, or of all."""
    name = canonicalize_name(extra)
    return name == ALL_EXTRA or name.startswith(f"{_EXTRA}gfx")


def is_family(target: str) -> bool:
    """Return whether a target or family, normalized or not, is a family."""
    return any(find_family(spelling) is not None for spelling in (target, target.replace("-", "_")))


class DeviceNames(msgspec.Struct, frozen=True, kw_only=True):
    """The device wheels of one distribution: ``targets`` are those that get a wheel, base targets and families."""

    prefix: str
    """What their names begin with, such as ``torch-device`` or ``amd-torch-device``."""
    version: str
    targets: tuple[str, ...]

    def distribution(self, target: str) -> str:
        """Return the name of the wheel of a target or a family, normalized: ``torch-device-gfx12-0``."""
        return canonicalize_name(f"{self.prefix}-{target}")

    def pin(self, target: str) -> str:
        """Return the requirement of exactly the wheel that came of the same split."""
        return f"{self.distribution(target)} == {self.version}"

    def extra_of(self, target: str) -> str:
        """Return the extra that asks for a target's wheel."""
        return canonicalize_name(f"{_EXTRA}{target}")

    @property
    def single_targets(self) -> tuple[str, ...]:
        """The targets that are not families."""
        return tuple(target for target in self.targets if find_family(target) is None)

    def families_of(self, target: str) -> tuple[str, ...]:
        """Return the families with a wheel of their own that ``target`` belongs to, the smallest first.

        Their files serve it as well.
        """
        found = [(family, name) for name in self.targets if (family := find_family(name)) and target in family.targets]
        return tuple(name for _, name in sorted(found, key=lambda pair: (len(pair[0].targets), pair[1])))

    def requirements(self) -> tuple[str, ...]:
        """Return what the host wheel requires with each extra."""
        chains = [
            f'{self.pin(name)}; extra == "{self.extra_of(target)}"'
            for target in self.single_targets
            for name in (target, *self.families_of(target))
        ]
        return (*chains, *(f'{self.pin(target)}; extra == "{ALL_EXTRA}"' for target in self.targets))

    def extras(self) -> tuple[str, ...]:
        """Return the extras of the host wheel; families have none of their own."""
        return (*map(self.extra_of, self.single_targets), ALL_EXTRA)


def unpacked_name(info: Path, wheel: bytes) -> str:
    """Return a file name by the name of ``.dist-info``, the build number and all tags of WHEEL.

    Raises `InputError` for a build number or tags that no wheel has, and for a name that would lead elsewhere.
    """
    headers = wheel_headers(wheel)
    tags = [tag for tag in (value.split("-") for key, value in headers if key == "tag") if len(tag) == 3]
    build = "".join(f"-{value}" for key, value in headers if key == "build")
    compressed = "-".join(".".join(dict.fromkeys(column)) for column in zip(*tags, strict=True)) or "py3-none-any"
    name = f"{info.name.removesuffix('.dist-info')}{build}-{compressed}.whl"
    if not is_file_name(name) or not _is_of_wheel(f"x-1{build}-{compressed}.whl"):
        found = f"makes the file name {quoted(name)}"
        raise InputError(info / "WHEEL", found, expected="a build number and tags that a wheel's name can have")
    return name


def _is_of_wheel(name: str) -> bool:
    """Return whether a name is that of a plain wheel; a dash in a build number may make it look like a variant."""
    return is_distribution_name(name) and without_label(name) == name
