"""The GPU targets of a finished wheel, read from its binaries and compared with its declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from rocwheel.binary.kind import has_facts, is_ar_archive, is_kpack
from rocwheel.core.errors import InputError
from rocwheel.core.messages import shortened
from rocwheel.installed.coherence.carriers import WheelFacts, read_requirements
from rocwheel.installed.library_code import FileCode, named_code, read_file_code
from rocwheel.targets.declaration import DECLARATION_NAME, decode_declaration
from rocwheel.targets.kernel_files.names import kpack_target
from rocwheel.targets.spelling.target_set import id_sort_key
from rocwheel.wheels.binaries import installed_place
from rocwheel.wheels.metadata import CoreMetadataError, parse_core_metadata
from rocwheel.wheels.zip_directory import find_metadata, read_directory
from rocwheel.wheels.zip_reader import ZipMember, member_head, open_unpacked, read_member

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from packaging.metadata import RawMetadata

    from rocwheel.binary.code_objects import TargetId

__all__ = ["read_wheel_facts"]


def read_wheel_facts(path: Path) -> WheelFacts:
    """Read a wheel's requirements and the targets of every binary in it, one member at a time.

    Raises `InputError` for a file that is not a wheel, is damaged or has no name, for a requirement that can't be read,
    and for a declaration that differs from what the binaries hold.
    """
    members = {member.name: member for member in read_directory(path)}
    info = find_metadata(path, members)
    metadata = _parse_metadata(members[info])
    if not metadata.get("name"):
        raise InputError(path, f"its {info} has no Name, or several", expected="the name of its package, once")
    requirements = tuple(metadata.get("requires_dist", ()))
    read_requirements(str(path), requirements)
    name = canonicalize_name(metadata["name"])
    found = [(member, code) for member in members.values() if (code := _read_code(member, name)) is not None]
    targets = {target for member, code in found for target in _targets_of(member, code)}
    declaration = members.get(info.removesuffix("METADATA") + DECLARATION_NAME)
    if declaration:
        _check_declaration(path, declaration, targets)
    roots = {name.partition("/")[0] for name in members if "/" in name}
    return WheelFacts(
        str(path),
        name,
        requirements,
        tuple(sorted(targets, key=id_sort_key)),
        frozenset(root for root in roots if not root.endswith((".dist-info", ".data"))),
        metadata.get("version", ""),
        code=tuple(code for _, code in found),
        places=tuple(map(installed_place, members)),
    )


def _parse_metadata(member: ZipMember) -> RawMetadata:
    try:
        return parse_core_metadata(read_member(member))[0]
    except CoreMetadataError as e:
        raise InputError(member.source, f"can't be read: {e}") from e


def _read_code(member: ZipMember, package: str) -> FileCode | None:
    head, place = member_head(member), installed_place(member.name)
    if has_facts(head) or is_kpack(head) or is_ar_archive(head):
        with open_unpacked(member) as (unpacked, _), unpacked.view() as data:
            return read_file_code(data, place=place, source=member.source, package=package)
    return named_code(FileCode(place=place, source=member.source, package=package))


def _targets_of(member: ZipMember, code: FileCode) -> tuple[TargetId, ...]:
    if member.name.endswith(".kpack"):
        return (kpack_target(member.name, source=member.source),)
    return tuple(target for targets in code.bundles for target in targets)


def _check_declaration(path: Path, declaration: ZipMember, targets: set[TargetId]) -> None:
    declared = set(decode_declaration(read_member(declaration), source=declaration.source).targets)
    if declared != targets:
        found = f"declares {_words(declared)}, but its binaries carry {_words(targets)}"
        raise InputError(
            path, shortened(found), remedy="Build it again: the declaration has to be read from the binaries."
        )


def _words(targets: Iterable[TargetId]) -> str:
    return ", ".join(map(str, sorted(targets, key=id_sort_key))) or "no target"
