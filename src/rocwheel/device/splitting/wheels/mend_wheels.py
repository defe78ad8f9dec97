"""Mending host wheels and their device wheels where another tool has split libraries with wrong indices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.kpack.markers import PLACEHOLDER
from rocwheel.core.errors import InputError
from rocwheel.core.workers import convert_all, raise_all
from rocwheel.device.splitting.wheels.device_wheels import (
    device_names,
    is_device_wheel_of,
    own_requirements,
    split_device_name,
)
from rocwheel.device.splitting.wheels.finished_wheel import FinishedWheel, read_finished_wheel
from rocwheel.device.splitting.wheels.metadata import joined_metadata
from rocwheel.device.splitting.wheels.names import is_family
from rocwheel.device.splitting.wheels.order import check_order
from rocwheel.device.splitting.wheels.split_wheel import split_members
from rocwheel.device.splitting.wheels.united import unite_members
from rocwheel.wheels.metadata import parse_core_metadata

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rocwheel.device.splitting.wheels.order import WheelSplitOrder
    from rocwheel.device.splitting.wheels.report import WheelSplit
    from rocwheel.wheels.sdist import SourceDate

__all__ = ["mend_wheels"]


def mend_wheels(
    paths: Sequence[Path], dest_dir: Path, order: WheelSplitOrder, source_date: SourceDate
) -> tuple[WheelSplit, ...]:
    """Split each host wheel among ``paths`` again, with the code in its device wheels, which are among them, too.

    Device wheels keep their names and what they require besides, unless ``order`` says otherwise. Libraries whose
    indices are right stay as they are, and so do their archives.
    Raises `InputError`, or `ProblemsError` for several, as `split_members` does, for device wheels without their host,
    and where a wheel would overwrite one of ``paths``.
    """
    check_order(order)
    wheels = convert_all("wheels", read_finished_wheel, paths)
    hosts = [wheel for wheel in wheels if not any(is_device_wheel_of(wheel, other) for other in wheels)]
    raise_all("wheels", [_overwritten(path, dest_dir) for path in paths if _is_there(path, dest_dir)])

    def mend(host: FinishedWheel) -> WheelSplit:
        devices = [wheel for wheel in wheels if is_device_wheel_of(wheel, host) and wheel.file_tags == host.file_tags]
        own = _with_names(order, host, devices)
        return split_members(_united(host, devices), dest_dir, own, source_date, mend=True)

    return tuple(convert_all("wheels", mend, hosts))


def _is_there(path: Path, dest_dir: Path) -> bool:
    output = dest_dir / path.name
    return output.exists() and output.samefile(path)


def _overwritten(path: Path, dest_dir: Path) -> InputError:
    return InputError(path, f"is in {dest_dir}, and would be overwritten", remedy="Name another folder.")


def _united(host: FinishedWheel, devices: Sequence[FinishedWheel]) -> FinishedWheel:
    """Return the host wheel as if all members were its own, with the metadata that it had before it was split."""
    anew = {member.name for member in host.members} - {member.name for member in host.kept_members}
    members = (*unite_members(host, devices).values(), *(member for member in host.members if member.name in anew))
    metadata = joined_metadata(host)
    fields, _ = parse_core_metadata(metadata)
    return msgspec.structs.replace(host, members=members, metadata=metadata, fields=fields)


def _with_names(order: WheelSplitOrder, host: FinishedWheel, devices: Sequence[FinishedWheel]) -> WheelSplitOrder:
    """Return the order with the names and requirements that the device wheels have, where it gives none.

    Each target keeps its own; a target that had no wheel gets what all others have.
    """
    named = sorted(split_device_name(name) for name in device_names(host))
    prefix = order.device_prefix or next((prefix for prefix, _ in named), "")
    if order.device_requires:
        return msgspec.structs.replace(order, device_prefix=prefix)
    kept = {split_device_name(device.name)[1]: tuple(own_requirements(device, host)) for device in devices}
    shared = _shared({target: texts for target, texts in kept.items() if not is_family(target)})
    return msgspec.structs.replace(order, device_prefix=prefix, device_requires=shared, kept_requires=kept)


def _shared(requires: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return what all targets require, with ``@GFXARCH@`` for each one's own name."""
    texts = [dict.fromkeys(_general(text, target) for text in found) for target, found in requires.items()]
    return tuple(text for text in texts[0] if all(text in others for others in texts)) if texts else ()


def _general(text: str, target: str) -> str:
    """Return a requirement with ``@GFXARCH@`` for a target, not for the beginning of a longer one."""
    return re.sub(rf"(?<![0-9A-Za-z]){re.escape(target)}(?![-_.]*[0-9A-Za-z])", PLACEHOLDER, text)
