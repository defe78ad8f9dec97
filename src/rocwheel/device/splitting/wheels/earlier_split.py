"""Wheels of an earlier split of the same wheel, where a new split goes: together they would be no consistent set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.workers import convert_all
from rocwheel.device.splitting.wheels.device_wheels import device_names, is_device_wheel_of, looks_made_from
from rocwheel.device.splitting.wheels.finished_wheel import FinishedWheel, read_finished_wheel

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["EarlierSplit", "find_earlier"]


class EarlierSplit(msgspec.Struct, frozen=True):
    """What of an earlier split is in the way: files that get new content, and those that the new split lacks."""

    replaced: tuple[Path, ...] = ()
    stale: tuple[Path, ...] = ()

    def remove_stale(self) -> None:
        """Remove the files that the new split lacks, while the old host wheel still names them.

        So a run that is killed meanwhile leaves none that the next one can't tell from other people's wheels.
        """
        for path in self.stale:
            path.unlink(missing_ok=True)


def find_earlier(wheel: FinishedWheel, host: Path, devices: Collection[Path]) -> EarlierSplit:
    """Return what an earlier split of ``wheel`` left beside ``host`` and ``devices``, the files of the new one.

    Its device wheels are those that the old host wheel asks for, and have its version, build and tags. Device wheels
    with other tags belong to another host, and stay; so does what no host wheel asks for.
    Raises `InputError`, or `ProblemsError` for several, where a file of the new split would overwrite something else,
    and for files with such names that can't be read as wheels.
    """
    folder = host.parent
    ending = next(iter(devices)).name.partition("-")[2]
    others = sorted(path for path in folder.glob("*.whl") if path.name.partition("-")[2] == ending and path != host)
    hosts = [host] if host.exists() else []
    old = convert_all(str(folder), lambda path: _read_host(path, wheel), hosts)

    def read(path: Path) -> tuple[Path, bool]:
        found = read_finished_wheel(path)
        if path in devices:
            _require_device_wheel(found, wheel, old)
        return path, path in devices or _is_asked_for(found, old)

    earlier = [path for path, is_earlier in convert_all(str(folder), read, others) if is_earlier]
    replaced = (*hosts, *(path for path in earlier if path in devices))
    return EarlierSplit(replaced, tuple(path for path in earlier if path not in devices))


def _read_host(path: Path, wheel: FinishedWheel) -> FinishedWheel:
    """Return the host wheel that the new one takes the place of; raise `InputError` for another wheel."""
    found = read_finished_wheel(path)
    if not device_names(found):
        expected = f"a host wheel that an earlier split of {wheel.name} {wheel.version} made"
        remedy = "Name another folder, or move that wheel elsewhere."
        raise InputError(path, "would be overwritten by the host wheel", expected=expected, remedy=remedy)
    return found


def _is_asked_for(found: FinishedWheel, hosts: Sequence[FinishedWheel]) -> bool:
    return any(is_device_wheel_of(found, host) for host in hosts)


def _require_device_wheel(found: FinishedWheel, wheel: FinishedWheel, hosts: Sequence[FinishedWheel]) -> None:
    """Raise `InputError` for what stands where a device wheel of ``wheel`` goes, and is none of it."""
    if not (_is_asked_for(found, hosts) or looks_made_from(found, wheel)):
        expected = f"a device wheel of {wheel.name} {wheel.version}"
        remedy = "Name another folder, or another --device-name."
        raise InputError(found.path, "would be overwritten by a device wheel", expected=expected, remedy=remedy)
