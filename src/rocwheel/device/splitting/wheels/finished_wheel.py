"""A finished wheel, fat or of a split: its name, version and tags, its members and its metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.metadata import RawMetadata
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from rocwheel.core.errors import InputError
from rocwheel.core.workers import raise_all
from rocwheel.targets.declaration import DECLARATION_NAME
from rocwheel.wheels.metadata import CoreMetadataError, is_license_name, parse_core_metadata, wheel_headers
from rocwheel.wheels.names import check_identity, split_label, split_wheel_file_name
from rocwheel.wheels.variants import load_draft
from rocwheel.wheels.zip_directory import SIGNATURES, find_dist_info, read_directory, refuse_outside
from rocwheel.wheels.zip_reader import ZipMember, read_member

if TYPE_CHECKING:
    from pathlib import Path

    from packaging.version import Version

__all__ = ["FinishedWheel", "read_finished_wheel"]

_WRITTEN_ANEW = ("METADATA", "WHEEL", "RECORD", DECLARATION_NAME, *SIGNATURES)


class FinishedWheel(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel by what its metadata says; texts are the bytes of files of ``.dist-info``, none for absent ones."""

    path: str
    dist_info: str
    members: tuple[ZipMember, ...]
    metadata: bytes
    wheel: bytes
    declaration: bytes | None
    fields: RawMetadata
    tags: tuple[str, ...]
    """As WHEEL lists them."""
    is_purelib: bool
    build: str
    """The build number; empty if there is none."""
    file_tags: str
    """The compressed tags of the file name."""
    shown: str = ""
    """What messages call it: the folder that it was packed from; its path, if empty."""

    @property
    def source(self) -> str:
        """How messages name the wheel."""
        return self.shown or self.path

    def source_of(self, member: ZipMember) -> str:
        """Return how messages name one of its members."""
        return f"{self.shown}/{member.name}" if self.shown else member.source

    @property
    def shown_names(self) -> dict[str, str]:
        """How messages name each of its members, by the member's own name."""
        return {member.name: self.source_of(member) for member in self.kept_members}

    @property
    def name(self) -> str:
        """The distribution's name, as METADATA spells it."""
        return self.fields["name"]

    @property
    def version(self) -> str:
        """The version, as METADATA spells it."""
        return self.fields["version"].strip()

    @property
    def kept_members(self) -> tuple[ZipMember, ...]:
        """The members that are not written anew, in the order of the archive."""
        anew = {f"{self.dist_info}/{name}" for name in _WRITTEN_ANEW}
        return tuple(member for member in self.members if member.name not in anew)

    def licenses(self) -> dict[str, ZipMember]:
        """Return the license texts by the names that METADATA has for them, or by their paths where it has none.

        Where neither METADATA nor ``.dist-info`` has any, they are those beside the code.
        """
        by_name = {member.name: member for member in self.members}
        found = {}
        for name in self.fields.get("license_files", ()):
            places = (f"{self.dist_info}/licenses/{name}", f"{self.dist_info}/{name}")
            if member := next((by_name[place] for place in places if place in by_name), None):
                found[name] = member
        known = {member.name for member in found.values()}
        return found | {
            name: member for member in self.members if member.name not in known and (name := self._license(member))
        } or {member.name: member for member in self.members if _is_text_of_license(member.name)}

    def _license(self, member: ZipMember) -> str:
        """Return the name of a license text in ``.dist-info``; empty for another member."""
        folder, _, name = member.name.partition("/")
        if folder != self.dist_info or name.endswith("/"):
            return ""
        if name.startswith("licenses/"):
            return name.removeprefix("licenses/")
        return name if "/" not in name and is_license_name(name) else ""


def _is_text_of_license(path: str) -> bool:
    """Return whether a member is a license text by its name: no module that deals with licenses."""
    name = path.rpartition("/")[2]
    return is_license_name(name) and not name.endswith((".py", ".pyi", ".pyc", ".so", ".h", ".json"))


def read_finished_wheel(path: Path, shown: str = "") -> FinishedWheel:
    """Read what a wheel is; nothing but its metadata is unpacked. Messages call it ``shown``, or by its path.

    Raises `InputError`, or `ProblemsError` for several: for a wheel variant (a draft), for what is not a wheel or is
    damaged, has no ``.dist-info`` or several, no METADATA, no WHEEL, no name or version, or others than its file name,
    and for members that installers refuse.
    """
    source = shown or str(path)
    if label := split_label(path.name)[1]:
        raise _refuse_variant(source, label)
    project, version = _parse_name(path, source)
    members = read_directory(path)
    dist_info = find_dist_info(source, (member.name for member in members))
    if f"{dist_info}/{load_draft().names.in_wheel}" in {member.name for member in members}:
        raise _refuse_variant(source, "")
    refuse_outside(source, members)
    texts = _read_texts(source, dist_info, members)
    place = f"{dist_info}/METADATA"
    fields = _parse_metadata(f"{shown}/{place}" if shown else f"{path}!{place}", texts["METADATA"])
    check_identity(source, fields, project, version)
    headers = wheel_headers(texts["WHEEL"])
    parts = split_wheel_file_name(path.name)
    return FinishedWheel(
        path=str(path),
        shown=shown,
        dist_info=dist_info,
        members=members,
        metadata=texts["METADATA"],
        wheel=texts["WHEEL"],
        declaration=texts.get(DECLARATION_NAME),
        fields=fields,
        tags=tuple(value for key, value in headers if key == "tag"),
        is_purelib=("root-is-purelib", "true") in [(key, value.lower()) for key, value in headers],
        build="".join(parts.stem.split("-")[2:]),
        file_tags="-".join(parts.tags),
    )


def _refuse_variant(source: str, label: str) -> InputError:
    """Return the error for a wheel variant (:pep:`825`, a draft): split, it has no code for the GPUs that it is for."""
    found = f"is a wheel variant{f' ({label})' if label else ''}, which has its code itself"
    remedy = "Split the plain wheel, and make variants of its device wheels with `rocwheel index --variants`."
    return InputError(source, found, expected="a plain wheel", remedy=remedy)


def _parse_name(path: Path, source: str) -> tuple[str, Version]:
    """Return project, normalised, and version, as the file name has them."""
    try:
        project, version, _, _ = parse_wheel_filename(path.name)
    except InvalidWheelFilename as e:
        expected = "NAME-VERSION-PYTHON-ABI-PLATFORM.whl"
        raise InputError(source, "is not named as a wheel is", expected=expected) from e
    return str(project), version


def _read_texts(source: str, dist_info: str, members: tuple[ZipMember, ...]) -> dict[str, bytes]:
    by_name = {member.name: member for member in members}
    absent = [name for name in ("METADATA", "WHEEL") if f"{dist_info}/{name}" not in by_name]
    raise_all(source, [InputError(source, f"has no {dist_info}/{name}", expected="a wheel") for name in absent])
    wanted = [name for name in ("METADATA", "WHEEL", DECLARATION_NAME) if f"{dist_info}/{name}" in by_name]
    return {name: read_member(by_name[f"{dist_info}/{name}"]) for name in wanted}


def _parse_metadata(source: str, text: bytes) -> RawMetadata:
    try:
        fields, _ = parse_core_metadata(text)
    except CoreMetadataError as e:
        raise InputError(source, f"can't be read: {e}") from e
    absent = [field for field in ("Name", "Version") if not fields.get(field.lower())]
    raise_all(source, [InputError(source, f"has no {field}, or several", expected="one") for field in absent])
    return fields
