"""The members of a host wheel and of its device wheels, as if they were installed into one folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.device.splitting.wheels.fat_wheel import FatWheel
    from rocwheel.distributions.zip.reader import ZipMember

__all__ = ["is_device_mark", "is_device_wheel", "unite_members"]

_DEVICE_NAME = re.compile(r".*-device-gfx[0-9a-z-]+")


def unite_members(host: FatWheel, devices: Sequence[FatWheel]) -> dict[str, ZipMember]:
    """Return the members by name, the host's first, without the metadata of device wheels and what they have for pip.

    Raises `InputError`, or `ProblemsError` for several, for those there twice.
    """
    members = {member.name: member for member in host.kept_members}
    problems = []
    for device in devices:
        for member in device.kept_members:
            if member.name.startswith(f"{device.dist_info}/") or is_device_mark(member):
                continue
            other = members.setdefault(member.name, member)
            if other is not member:
                problems.append(InputError(member.source, f"is in {other.packed.path}, too", expected="it once"))
    raise_all(host.path, problems)
    return members


def is_device_wheel(wheel: FatWheel) -> bool:
    """Return whether a wheel came of a split, by what it has for pip, or by its name and the archives in it."""
    is_called_so = _DEVICE_NAME.fullmatch(canonicalize_name(wheel.name)) is not None
    return any(is_device_mark(member) or (is_called_so and member.name.endswith(".kpack")) for member in wheel.members)


def is_device_mark(member: ZipMember) -> bool:
    """Return whether a member is the empty file that a device wheel has for pip."""
    return not member.size and member.name.rpartition("/")[2].startswith(".device-")
