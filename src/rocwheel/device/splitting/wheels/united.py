"""The members of a host wheel and of its device wheels, as if they were installed into one folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError
from rocwheel.core.workers import raise_all
from rocwheel.device.splitting.wheels.device_wheels import is_device_mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.device.splitting.wheels.finished_wheel import FinishedWheel
    from rocwheel.wheels.zip_reader import ZipMember

__all__ = ["unite_members"]


def unite_members(host: FinishedWheel, devices: Sequence[FinishedWheel]) -> dict[str, ZipMember]:
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
