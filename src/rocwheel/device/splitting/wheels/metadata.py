"""METADATA and WHEEL of the wheels that a split makes (core metadata 2.4, :pep:`639`; wheel format 1.0)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

import rocwheel
from rocwheel.binary.kpack.marker import PLACEHOLDER
from rocwheel.distributions.formats.edit_metadata import add_requirements, add_values, drop_values, set_values
from rocwheel.distributions.formats.metadata import CoreMetadata, render_metadata, render_wheel_file
from rocwheel.distributions.formats.requirements import RequirementError, parse_requirement, readable_requirements
from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.quoting import quoted
from rocwheel.targets.kernel_files.classify import find_family

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from packaging.specifiers import SpecifierSet

    from rocwheel.device.splitting.wheels.fat_wheel import FatWheel
    from rocwheel.device.splitting.wheels.names import DeviceNames

__all__ = [
    "check_device_wheel",
    "check_requirements",
    "device_metadata",
    "device_prefix",
    "device_wheel_file",
    "host_metadata",
    "joined_metadata",
    "own_requirements",
    "requires_exactly",
]

_FIRST_WITH_EXTRAS = (2, 1)
_EXTRA = "device-"
"""What the extras for device wheels begin with."""


def check_requirements(texts: Iterable[str], source: str, *, target: str = "") -> None:
    """Raise `InputError`, or `ProblemsError` for several, for requirements that can't be read.

    With a ``target``, ``@GFXARCH@`` may stand for one.
    """
    expected = f"a requirement, such as {f'rocm-sdk-device-{PLACEHOLDER}==7.14' if target else 'rocm-bootstrap'!r}"
    raise_all(
        source,
        [
            InputError(source, f"{quoted(text)} is {error}", expected=expected)
            for text in texts
            if (error := _error_of(text.replace(PLACEHOLDER, target) if target else text))
        ],
    )


def _error_of(text: str) -> str:
    try:
        parse_requirement(text)
    except RequirementError as e:
        return str(e)
    return ""


def host_metadata(wheel: FatWheel, names: DeviceNames, requires: Sequence[str] = ()) -> bytes:
    """Return METADATA of the host wheel: all that the wheel said, the extras for device wheels, and ``requires``."""
    old = {*wheel.fields.get("provides_extra", ())}
    metadata = add_values(wheel.metadata, "Provides-Extra", [extra for extra in names.extras() if extra not in old])
    metadata = add_requirements(metadata, [*requires, *names.requirements()])
    return metadata if _knows_extras(wheel) else set_values(metadata, "Metadata-Version", ["2.1"])


def joined_metadata(host: FatWheel, devices: Sequence[FatWheel]) -> bytes:
    """Return METADATA of a joined wheel: that of its host without the extras for device wheels.

    ``devices`` are those that were joined, of which one is enough to tell how all are called.
    """
    dropped = {extra for extra in host.fields.get("provides_extra", ()) if extra.startswith(_EXTRA)}
    prefixes = {device_prefix(device, host) for device in devices}

    def is_dropped(requirement: str) -> bool:
        name, _, marker = requirement.partition("; extra == ")
        is_device = any(name.startswith(f"{prefix}-") for prefix in prefixes)
        return is_device and marker.strip("'\"") in dropped

    metadata = drop_values(host.metadata, "Requires-Dist", is_dropped)
    return drop_values(metadata, "Provides-Extra", dropped.__contains__)


def device_prefix(device: FatWheel, host: FatWheel) -> str:
    """Return what the names of the host's device wheels begin with; the wheel of a family has no extra."""
    extras = host.fields.get("provides_extra", ())
    targets = [extra.removeprefix(_EXTRA) for extra in extras if extra.startswith(_EXTRA)]
    name = canonicalize_name(device.name)
    own = next((target for target in targets if name.endswith(f"-{target}")), None)
    return name.removesuffix(f"-{own}") if own else f"{name.rpartition('-device-')[0]}-device"


def own_requirements(device: FatWheel, known: Collection[str]) -> list[str]:
    """Return what a device wheel requires besides the ``known`` projects, its host and other device wheels."""
    texts = device.fields.get("requires_dist", ())
    return [
        text for text in texts for found in readable_requirements([text]) if canonicalize_name(found.name) not in known
    ]


def check_device_wheel(device: FatWheel, host: FatWheel) -> None:
    """Raise `InputError` for a wheel that isn't a device wheel of exactly this host wheel."""
    if not requires_exactly(device, host):
        wanted = f"{canonicalize_name(host.name)}=={host.version}"
        raise InputError(device.path, f"doesn't require {wanted}", expected=f"a device wheel of {host.path}")


def requires_exactly(wheel: FatWheel, other: FatWheel) -> bool:
    """Return whether a wheel requires another one in exactly its version, as device wheels do their host."""
    required = readable_requirements(wheel.fields.get("requires_dist", ()))
    name = canonicalize_name(other.name)
    # What an extra asks for isn't required: a host wheel names its device wheels so.
    pinned = [found for found in required if found.marker is None and _pins(found.specifier, other.version)]
    return name in {canonicalize_name(found.name) for found in pinned}


def _pins(specifiers: SpecifierSet, version: str) -> bool:
    return [(one.operator, one.version) for one in specifiers] == [("==", version)]


def _knows_extras(wheel: FatWheel) -> bool:
    numbers = wheel.fields.get("metadata_version", "").split(".")
    return all(map(str.isdecimal, numbers)) and tuple(map(int, numbers)) >= _FIRST_WITH_EXTRAS


def device_metadata(wheel: FatWheel, names: DeviceNames, target: str, requires: Sequence[str] = ()) -> bytes:
    """Return METADATA of the wheel of a target or a family.

    It requires exactly its host wheel, the wheels of families that serve the target, and ``requires``, where
    ``@GFXARCH@`` stands for the target; a family has none of those.
    """
    family = find_family(target)
    kept = [text.replace(PLACEHOLDER, target) for text in requires if family is None or PLACEHOLDER not in text]
    chain = [names.pin(other) for other in names.families_of(target)]
    fields = wheel.fields
    served = f"{target} GPUs" if family is None else f"GPUs of the family {target}: {', '.join(family.targets)}"
    return render_metadata(
        CoreMetadata(
            name=names.distribution(target),
            version=wheel.version,
            summary=f"Device code of {wheel.name} for {served}",
            requires_python=fields.get("requires_python", ""),
            license=fields.get("license", ""),
            license_expression=fields.get("license_expression"),
            license_files=tuple(wheel.licenses()),
            requires=(f"{wheel.name} == {wheel.version}", *chain, *kept),
        )
    )


def device_wheel_file(wheel: FatWheel) -> bytes:
    """Return WHEEL of a device wheel: for the same systems as its host wheel, and installed to the same folder."""
    text = render_wheel_file(f"rocwheel {rocwheel.__version__}", wheel.tags, is_purelib=wheel.is_purelib)
    return text + f"Build: {wheel.build}\n".encode() if wheel.build else text
