"""METADATA and WHEEL of the wheels that a split makes (core metadata 2.4, :pep:`639`; wheel format 1.0)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.metadata import ExceptionGroup, Metadata
from packaging.utils import canonicalize_name

import rocwheel
from rocwheel.binary.kpack.markers import PLACEHOLDER
from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.core.workers import raise_all
from rocwheel.device.splitting.wheels.device_wheels import asked_for_by
from rocwheel.targets.kernel_files.classify import find_family
from rocwheel.wheels.metadata import (
    CoreMetadata,
    add_requirements,
    add_values,
    drop_values,
    render_metadata,
    render_wheel_file,
    set_values,
)
from rocwheel.wheels.requirements import RequirementError, parse_requirement, readable_requirements
from rocwheel.wheels.tags import expand_tags

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from packaging.metadata import RawMetadata

    from rocwheel.device.splitting.wheels.finished_wheel import FinishedWheel
    from rocwheel.device.splitting.wheels.names import DeviceNames

__all__ = [
    "check_copied",
    "check_requirements",
    "device_metadata",
    "device_wheel_file",
    "host_metadata",
    "joined_metadata",
]

_FIRST_WITH_EXTRAS = (2, 1)
_COPIED = {
    "requires_python": ("Requires-Python", "a version specifier such as '>=3.10'"),
    "license_expression": ("License-Expression", "an SPDX expression such as 'MIT OR Apache-2.0'"),
}
"""Fields that device wheels have from their host: how METADATA spells them, and what may stand there."""
_CR_ALONE = re.compile(rb"\r(?!\n)")


def check_copied(wheel: FinishedWheel) -> None:
    """Raise `InputError`, or `ProblemsError` for several, for METADATA that the wheels of a split can't be made from.

    Those are headers with lines that end in CR alone, and values that device wheels would get, too, and that the
    standard doesn't allow.
    """
    place = f"{wheel.source}: METADATA"
    if _CR_ALONE.search(re.split(rb"\n\r?\n", wheel.metadata, maxsplit=1)[0]):
        raise InputError(place, "has a line that ends in CR alone", expected="lines that end in LF, or in CR and LF")
    raise_all(
        wheel.source,
        [
            InputError(place, f"has {header} {quoted(str(wheel.fields.get(field)))}", expected=expected)
            for field, (header, expected) in _COPIED.items()
            if field in wheel.fields and not _is_valid(field, wheel.fields)
        ],
    )


def _is_valid(field: str, fields: RawMetadata) -> bool:
    try:
        Metadata.from_raw({"metadata_version": "2.4", "name": "x", "version": "1", field: fields.get(field)})  # type: ignore[misc]
    except ExceptionGroup:
        return False
    return True


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


def host_metadata(wheel: FinishedWheel, names: DeviceNames, requires: Sequence[str] = ()) -> bytes:
    """Return METADATA of the host wheel: all that the wheel said, the extras for device wheels, and ``requires``."""
    old = {*wheel.fields.get("provides_extra", ())}
    metadata = add_values(wheel.metadata, "Provides-Extra", [extra for extra in names.extras() if extra not in old])
    metadata = add_requirements(metadata, [*requires, *names.requirements()])
    return metadata if _knows_extras(wheel) else set_values(metadata, "Metadata-Version", ["2.1"])


def joined_metadata(host: FinishedWheel) -> bytes:
    """Return METADATA of a joined wheel: that of its host without what asks for device wheels.

    An extra by which something else is asked for stays.
    """
    texts = host.fields.get("requires_dist", ())
    gone = {extra for text in texts if (extra := asked_for_by(text, host)[1])}
    kept = {extra for text in texts if not asked_for_by(text, host)[0] for extra in gone if _is_asked_for(extra, text)}
    metadata = drop_values(host.metadata, "Requires-Dist", lambda text: asked_for_by(text, host)[0] != "")
    return drop_values(metadata, "Provides-Extra", lambda extra: canonicalize_name(extra) in gone - kept)


def _is_asked_for(extra: str, text: str) -> bool:
    """Return whether a requirement is judged by an extra."""
    return any(f'extra == "{extra}"' in str(found.marker) for found in readable_requirements([text]))


def _knows_extras(wheel: FinishedWheel) -> bool:
    numbers = wheel.fields.get("metadata_version", "").split(".")
    return all(map(str.isdecimal, numbers)) and tuple(map(int, numbers)) >= _FIRST_WITH_EXTRAS


def device_metadata(wheel: FinishedWheel, names: DeviceNames, target: str, requires: Sequence[str] = ()) -> bytes:
    """Return METADATA of the wheel of a target or a family.

    It requires exactly its host wheel, the wheels of families that serve the target, and ``requires``.
    """
    family = find_family(target)
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
            requires=(f"{wheel.name} == {wheel.version}", *chain, *requires),
        )
    )


def device_wheel_file(wheel: FinishedWheel) -> bytes:
    """Return WHEEL of a device wheel: for the same systems as its host wheel, and installed to the same folder.

    Its tags are those of the file name, by which installers choose. WHEEL of the host may lack tags, or list others:
    tools that rename a finished wheel leave ``linux_x86_64`` in it.
    """
    named = expand_tags(*wheel.file_tags.split("-"))
    tags = wheel.tags if sorted(wheel.tags) == sorted(named) else named
    text = render_wheel_file(f"rocwheel {rocwheel.__version__}", tags, is_purelib=wheel.is_purelib)
    return text + f"Build: {wheel.build}\n".encode() if wheel.build else text
