"""What a distribution says of itself in METADATA, WHEEL and RECORD (core metadata 2.x, wheel format 1.0)."""

from __future__ import annotations

from contextlib import suppress
from email.parser import BytesParser
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.metadata import ExceptionGroup, InvalidMetadata, Metadata
from packaging.utils import canonicalize_name, is_normalized_name
from packaging.version import Version

from rocwheel.core.errors import InputError, ProblemsError, each_problem
from rocwheel.core.messages import quoted
from rocwheel.installed.tree import Distribution, MetadataProblem
from rocwheel.targets.declaration import DECLARATION_NAME, decode_declaration
from rocwheel.wheels.metadata import CoreMetadataError, has_licenses_folder, parse_core_metadata
from rocwheel.wheels.names import name_and_version, split_label
from rocwheel.wheels.record import parse_record
from rocwheel.wheels.sbom import SBOM_NAME, find_unlicensed
from rocwheel.wheels.variants import load_draft, read_wheel_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from email.message import Message

    from packaging.metadata import RawMetadata

    from rocwheel.wheels.record import RecordEntry

__all__ = ["ENTRY_POINTS", "INFO_FILES", "read_distribution"]

_VARIANT = load_draft().names.in_wheel
ENTRY_POINTS = "entry_points.txt"
INFO_FILES = ("METADATA", "WHEEL", "RECORD", DECLARATION_NAME, SBOM_NAME, _VARIANT)
"""The files of ``.dist-info`` that are read."""

_JUDGED = {"name", "version", "requires-dist"}
"""Fields without which, or malformed, no installer takes a wheel."""
_READ = {*_JUDGED, "license-file", "license-expression", "provides-extra"}
_WHEEL_FIELDS = ("Wheel-Version", "Root-Is-Purelib", "Tag")


def read_distribution(
    texts: Mapping[str, bytes], *, source: str, dist_info: str, is_wheel: bool, is_context: bool = False
) -> Distribution:
    """Read the files of ``.dist-info``, by their name there. What is absent or unreadable is noted as a problem."""
    absent = [name for name in ("METADATA", "WHEEL", "RECORD") if name not in texts]
    fields, ill_fields = _read_metadata(texts.get("METADATA"), Path(source).name if is_wheel else dist_info)
    wheel, ill_wheel = _read_wheel(texts.get("WHEEL"))
    record, ill_record = _read_record(texts.get("RECORD"))
    targets, ill_targets = _read_targets(texts.get(DECLARATION_NAME))
    unlicensed, ill_bill = _read_bill(texts.get(SBOM_NAME))
    problems = [MetadataProblem(f"{dist_info} has no {name}", ("absent", name)) for name in absent]
    ill_variant = _variant_problems(texts.get(_VARIANT), Path(source).name, dist_info) if is_wheel else ()
    return Distribution(
        name=canonicalize_name(fields.get("name", "")),
        version=fields.get("version", ""),
        source=source,
        dist_info=dist_info,
        requires=tuple(fields.get("requires_dist", ())),
        extras=tuple(fields.get("provides_extra", ())),
        license_files=tuple(fields.get("license_files", ())),
        metadata_version=fields.get("metadata_version", ""),
        license=_license(fields),
        tags=tuple(str(tag).strip() for tag in wheel.get_all("Tag", [])),
        is_purelib=str(wheel.get("Root-Is-Purelib", "")).strip().lower() == "true",
        record=record,
        is_wheel=is_wheel,
        is_context=is_context,
        targets=targets,
        unlicensed=unlicensed,
        invalid=tuple(_find_invalid(texts.get("METADATA", b""))) if is_wheel else (),
        problems=(*problems, *ill_fields, *ill_record, *ill_wheel, *ill_targets, *ill_bill, *ill_variant),
    )


def _read_metadata(data: bytes | None, named: str) -> tuple[RawMetadata, list[MetadataProblem]]:
    """Return the fields of METADATA, and what of it can't be read, is absent or malformed."""
    if data is None:
        return {}, []
    fields, unreadable = _read_fields(data)
    return fields, [*unreadable, *_metadata_problems(fields, named)]


def _find_invalid(data: bytes) -> Iterator[MetadataProblem]:
    """Yield what twine and PyPI refuse in METADATA that can be read: fields that its standard doesn't have, or not so.

    As twine does, this passes over License-File in metadata before 2.4: builders wrote it before it was standard.
    METADATA of a version that ``packaging`` doesn't know yet is not judged.
    """
    try:
        fields, unknown = parse_core_metadata(data)
    except CoreMetadataError:
        return
    if not has_licenses_folder(fields.get("metadata_version", "")):
        fields.pop("license_files", None)
    # Both are judged apart: packaging fails at versions of 4,300 digits and at brackets within brackets.
    fields.pop("version", None)
    fields.pop("requires_dist", None)
    errors: Sequence[Exception] = ()
    try:
        Metadata.from_raw(fields)
    except ExceptionGroup as e:
        errors = e.exceptions
    found = {one.field: str(one) for one in errors if isinstance(one, InvalidMetadata)}
    found |= {name.lower(): "no field of core metadata, or one that is malformed" for name in unknown}
    if "metadata-version" not in found:
        for name in sorted(found.keys() - _JUDGED - (_READ & unknown.keys())):
            yield MetadataProblem(f"METADATA has an invalid {name}: {found[name]}", ("invalid", name))


def _license(fields: RawMetadata) -> str:
    classifiers = [text for text in fields.get("classifiers", ()) if text.startswith("License ::")]
    return fields.get("license_expression", "") or fields.get("license", "") or ", ".join(classifiers)


def _read_wheel(data: bytes | None) -> tuple[Message, list[MetadataProblem]]:
    wheel = BytesParser().parsebytes(data or b"", headersonly=True)
    absent = [name for name in _WHEEL_FIELDS if not wheel.get(name)] if data is not None else []
    return wheel, [_no_field("WHEEL", name) for name in absent]


def _read_fields(data: bytes) -> tuple[RawMetadata, list[MetadataProblem]]:
    try:
        fields, unknown = parse_core_metadata(data)
    except CoreMetadataError as e:
        return {}, [MetadataProblem(f"METADATA can't be read: {e}", ("unreadable", "METADATA"))]
    judged = [field for field in unknown if field.lower() in _READ]
    return fields, [MetadataProblem(f"METADATA: {name} can't be read", ("unreadable", name)) for name in judged]


def _no_field(file: str, name: str) -> MetadataProblem:
    return MetadataProblem(f"{file} has no {name}", ("absent", file, name))


def _read_targets(text: bytes | None) -> tuple[tuple[str, ...], list[MetadataProblem]]:
    if text is None:
        return (), []
    try:
        return decode_declaration(text, source=DECLARATION_NAME).rocm_targets, []
    except InputError as e:
        return (), [MetadataProblem(str(e), ("unreadable", DECLARATION_NAME))]


def _read_bill(text: bytes | None) -> tuple[tuple[str, ...], list[MetadataProblem]]:
    if text is None:
        return (), []
    try:
        return find_unlicensed(text, SBOM_NAME), []
    except InputError as e:
        return (), [MetadataProblem(str(e), ("unreadable", SBOM_NAME))]


def _variant_problems(data: bytes | None, wheel: str, dist_info: str) -> tuple[MetadataProblem, ...]:
    """Return whether a wheel's name and its ``variant.json`` disagree; an installed variant has no name any more."""
    try:
        read_wheel_text(data, label=split_label(wheel)[1], wheel=wheel, dist_info=dist_info)
    except (InputError, ProblemsError) as e:
        return tuple(
            MetadataProblem(str(one).removeprefix(wheel).lstrip("!: "), ("variant",)) for one in each_problem([e])
        )
    return ()


def _metadata_problems(fields: RawMetadata, named: str) -> list[MetadataProblem]:
    """Return what is absent or malformed of the fields that METADATA has to have.

    ``named`` is the name of the wheel or of the folder, which has to begin with the same name and version.
    """
    given = {"Metadata-Version": "metadata_version", "Name": "name", "Version": "version"}
    problems = [_no_field("METADATA", field) for field, key in given.items() if not fields.get(key)]
    name, version = fields.get("name", ""), fields.get("version", "")
    if name and not is_normalized_name(canonicalize_name(name)):
        problems.append(MetadataProblem(f"METADATA: {quoted(name)} is not a valid name", ("name",)))
    if version and _parse_version(version) is None:
        problems.append(MetadataProblem(f"METADATA: {quoted(version)} is not a valid version (PEP 440)", ("version",)))
    if not problems and not _is_named(named, name, version):
        found = f"METADATA is of {name} {version}, but the name {named} says otherwise"
        problems.append(MetadataProblem(found, ("other name",)))
    return problems


def _is_named(named: str, name: str, version: str) -> bool:
    own_name, own_version = name_and_version(named)
    is_same = canonicalize_name(own_name) == canonicalize_name(name)
    return is_same and _parse_version(own_version) == _parse_version(version)


def _parse_version(text: str) -> Version | None:
    # Wheels of old builders spell the "+" before a local version as "_".
    for spelling in (text, text.replace("_", "+", 1)):
        with suppress(ValueError):
            return Version(spelling)
    return None


def _read_record(data: bytes | None) -> tuple[tuple[RecordEntry, ...], list[MetadataProblem]]:
    if data is None:
        return (), []
    try:
        record = parse_record(data, "RECORD")
        return record, [] if record else [MetadataProblem("RECORD lists nothing", ("empty", "RECORD"))]
    except InputError as e:
        return (), [MetadataProblem(f"{e.source} {e.found}", ("unreadable", "RECORD"))]
