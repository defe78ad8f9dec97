"""Wheels of an earlier split of the same wheel, where a new split goes: together they would be no consistent set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.device.splitting.wheels.fat_wheel import FatWheel, read_fat_wheel
from rocwheel.device.splitting.wheels.metadata import requires_exactly
from rocwheel.device.splitting.wheels.united import is_device_mark
from rocwheel.foundation.collecting import convert_all
from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection

    from rocwheel.distributions.zip.reader import ZipMember

__all__ = ["EarlierSplit", "find_earlier"]


class EarlierSplit(msgspec.Struct, frozen=True):
    """What of an earlier split is in the way: files that get new content, and those that the new split lacks."""

    replaced: tuple[Path, ...] = ()
    stale: tuple[Path, ...] = ()

    def remove_stale(self) -> None:
        """Remove the files that the new split lacks, once that is whole."""
        for path in self.stale:
            path.unlink(missing_ok=True)


def find_earlier(wheel: FatWheel, host: Path, devices: Collection[Path]) -> EarlierSplit:
    """Return what an earlier split of ``wheel`` left beside ``host`` and ``devices``, the files of the new one.

    Its device wheels require exactly ``wheel``, and have its version, build and tags. Device wheels with other tags
    belong to another host, and stay.
    Raises `InputError`, or `ProblemsError` for several, where a file of the new split would overwrite something else,
    and for files with such names that can't be read as wheels.
    """
    folder = host.parent
    ending = next(iter(devices)).name.partition("-")[2]
    found = sorted(path for path in folder.glob("*.whl") if path.name.partition("-")[2] == ending and path != host)
    kinds = convert_all(str(folder), lambda path: (path, _is_device_wheel(path, wheel, devices)), found)
    earlier = [path for path, is_device in kinds if is_device]
    hosts = [host] if host.exists() else []
    replaced = (*hosts, *(path for path in earlier if path in devices))
    return EarlierSplit(replaced, tuple(path for path in earlier if path not in devices))


def _is_device_wheel(path: Path, wheel: FatWheel, new: Collection[Path]) -> bool:
    other = read_fat_wheel(path)
    is_device = requires_exactly(other, wheel) and any(map(_is_for_devices, other.members))
    if path in new and not is_device:
        expected = f"a device wheel of {wheel.name} {wheel.version}"
        remedy = "Name another folder, or another --device-name."
        raise InputError(path, "would be overwritten by a device wheel", expected=expected, remedy=remedy)
    return is_device


def _is_for_devices(member: ZipMember) -> bool:
    return is_device_mark(member) or member.name.endswith(".kpack")
