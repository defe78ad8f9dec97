"""Which wheels are device wheels, and of which host wheel: by what the host's METADATA asks for, and they require."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from rocwheel.core.errors import InputError
from rocwheel.device.splitting.wheels.names import is_device_extra
from rocwheel.wheels.requirements import readable_requirements

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

    from rocwheel.device.splitting.wheels.finished_wheel import FinishedWheel
    from rocwheel.wheels.zip_reader import ZipMember

__all__ = [
    "asked_for_by",
    "check_device_wheel",
    "device_names",
    "is_device_mark",
    "is_device_wheel",
    "is_device_wheel_of",
    "looks_made_from",
    "own_requirements",
    "split_device_name",
]

_ONE_EXTRA = re.compile('extra == "([^"]+)"')
_DEVICE_NAME = re.compile("(.+)-(gfx[0-9a-z-]+)")


def asked_for_by(text: str, host: FinishedWheel) -> tuple[str, str]:
    """Return the device wheel that a requirement of ``host`` names, and its extra; two empty texts for any other.

    Such a requirement pins the host's version, names a target or a family at its end, and holds for nothing but an
    extra ``device-gfx…`` or ``device-all``, as those do that splitters write.
    """
    for found in readable_requirements([text]):
        name, extra = canonicalize_name(found.name), _ONE_EXTRA.fullmatch(str(found.marker))
        if (
            extra
            and is_device_extra(extra[1])
            and _DEVICE_NAME.fullmatch(name)
            and _pins(found.specifier, host.version)
        ):
            return name, extra[1]
    return "", ""


def device_names(host: FinishedWheel) -> frozenset[str]:
    """Return the names of all device wheels of a host wheel, those of families as well; none if it isn't split."""
    return frozenset(name for text in host.fields.get("requires_dist", ()) if (name := asked_for_by(text, host)[0]))


def is_device_wheel_of(wheel: FinishedWheel, host: FinishedWheel) -> bool:
    """Return whether a wheel came of the split that made ``host``: each names the other, in exactly its version."""
    return canonicalize_name(wheel.name) in device_names(host) and _requires_exactly(wheel, host)


def looks_made_from(wheel: FinishedWheel, host: FinishedWheel) -> bool:
    """Return whether a wheel with a device wheel's name is one of ``host``, where no METADATA of the host tells."""
    return _requires_exactly(wheel, host) and any(
        is_device_mark(member) or member.name.endswith(".kpack") for member in wheel.members
    )


def check_device_wheel(device: FinishedWheel, host: FinishedWheel) -> None:
    """Raise `InputError` for a wheel that isn't a device wheel of exactly this host wheel."""
    if is_device_wheel_of(device, host):
        return
    wanted = f"{canonicalize_name(host.name)}=={host.version}"
    found = f"doesn't require {wanted}"
    if _requires_exactly(device, host):
        found = f"requires {wanted}, which has no extra that asks for it"
    raise InputError(device.path, found, expected=f"a device wheel of {host.path}")


def is_device_wheel(wheel: FinishedWheel) -> bool:
    """Return whether a wheel came of a split, by what it has for pip, or by its name and the archives in it."""
    prefix, target = split_device_name(wheel.name)
    is_called_so = target != "" and prefix.endswith("-device")
    return any(is_device_mark(member) or (is_called_so and member.name.endswith(".kpack")) for member in wheel.members)


def is_device_mark(member: ZipMember) -> bool:
    """Return whether a member is the empty file that a device wheel has for pip."""
    return not member.size and member.name.rpartition("/")[2].startswith(".device-")


def split_device_name(name: str) -> tuple[str, str]:
    """Return what the names of a host's device wheels begin with, and the target or family, both normalised.

    The second is empty for a name that ends with none.
    """
    normal = canonicalize_name(name)
    match = _DEVICE_NAME.fullmatch(normal)
    return (match[1], match[2]) if match else (normal, "")


def own_requirements(device: FinishedWheel, host: FinishedWheel) -> list[str]:
    """Return what a device wheel requires besides its host and other device wheels of that."""
    known = {canonicalize_name(host.name), *device_names(host)}
    texts = device.fields.get("requires_dist", ())
    return [
        text for text in texts for found in readable_requirements([text]) if canonicalize_name(found.name) not in known
    ]


def _requires_exactly(wheel: FinishedWheel, other: FinishedWheel) -> bool:
    """Return whether a wheel requires another one in exactly its version, whatever extras are asked for."""
    required = readable_requirements(wheel.fields.get("requires_dist", ()))
    pinned = [found for found in required if found.marker is None and _pins(found.specifier, other.version)]
    return canonicalize_name(other.name) in {canonicalize_name(found.name) for found in pinned}


def _pins(specifiers: SpecifierSet, version: str) -> bool:
    return [(one.operator, one.version) for one in specifiers] == [("==", version)]
