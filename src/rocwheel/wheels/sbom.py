"""Reads and edits software bills of materials (SBOMs) in ``.dist-info/sboms`` (:pep:`770`, CycloneDX)."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError
from rocwheel.core.messages import first_of
from rocwheel.wheels.zip_reader import read_member

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rocwheel.wheels.zip_reader import ZipMember


SBOM_NAME = "sboms/rocwheel.cdx.json"
"""The path of the SBOM in ``.dist-info`` (:pep:`770`)."""


class BillItem(msgspec.Struct, frozen=True):
    """A component of a distribution, or an item from which a component was made."""

    key: str
    """The reference that other items use, which is unique in the bill."""
    name: str
    version: str = ""
    package_url: str = ""
    """The package URL, in the form defined by purl-spec. An invalid URL is left out."""
    license: str = ""
    """The license as an SPDX expression."""
    license_files: tuple[str, ...] = ()
    """The paths of the item's license texts in ``.dist-info/licenses``."""
    sha256: str = ""
    properties: dict[str, str] = {}
    made_of: tuple[str, ...] = ()
    """The keys of the items from which this item was made."""


class BillOfMaterials(msgspec.Struct, frozen=True):
    """A distribution's contents: the distribution itself as the subject, and its direct and indirect components."""

    subject: BillItem
    items: tuple[BillItem, ...]
    seconds: int
    """The creation time in seconds since 1970."""


def bill_text(bill: dict[str, Any]) -> bytes:
    """Return the text of a CycloneDX bill. Its serial number is derived from its other content."""
    said = {name: value for name, value in bill.items() if name != "serialNumber"}
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(said, sort_keys=True))
    return json.dumps({**said, "serialNumber": number.urn}, indent=1, sort_keys=True).encode() + b"\n"


class OpenBill(NamedTuple):
    """A CycloneDX bill as editable dictionaries."""

    bill: dict[str, Any]
    subject: dict[str, Any]
    """The component that represents the distribution itself."""
    own: dict[str, Any]
    """The distribution's dependencies, or an empty dictionary if the bill doesn't list any."""

    def rename(self, old: str, new: str) -> None:
        """Replace the suffix ``old`` with ``new`` in the distribution's package URL, ``bom-ref``, and reference.

        In a package URL, the ``+`` of a local version is written as ``%2B``.
        """
        for table, name in ((self.subject, "bom-ref"), (self.subject, "purl"), (self.own, "ref")):
            before, after = (text.replace("+", "%2B") if name == "purl" else text for text in (old, new))
            if isinstance(text := table.get(name), str) and text.endswith(before):
                table[name] = f"{text.removesuffix(before)}{after}"


def open_bill(data: bytes, source: str) -> OpenBill:
    """Parse a bill. Raises `InputError` about ``source`` if the data isn't a CycloneDX bill."""
    try:
        bill = decode_json(data, dict[str, Any])
        subject = bill["metadata"]["component"]
        reference, _, _ = subject["bom-ref"], subject["name"], subject["version"]
        dependencies = bill.get("dependencies", [])
        own: dict[str, Any] = next((one for one in dependencies if one["ref"] == reference), {})
    except (ValueError, KeyError, TypeError) as e:
        raise InputError(
            source, "isn't a bill of materials", expected="CycloneDX JSON with a component for the distribution itself"
        ) from e
    return OpenBill(bill, subject, own)


_KEPT = ("type", "name", "version", "purl", "licenses", "pedigree")
"""The fields of the distribution's component that are copied to the ancestor entry."""
_RECORD = "rocwheel:record-sha256"
_MOST = 20
"""The maximum number of files to list by name."""


def changed_bill(members: Iterable[ZipMember], dist_info: str, notes: str, *, name: str = "") -> dict[str, bytes]:
    """Return the bill for a wheel that is made from a wheel with these members, keyed by its name in ``.dist-info``.

    The components are preserved, because they are also parts of the new wheel. The old component is added as an
    ancestor to the distribution's component. The component's pedigree has ``notes`` about the changes. The ancestor has
    the SHA-256 of the old RECORD, which contains the hash of every file. ``name`` is the new distribution name, if it
    changes.

    Returns an empty dictionary if the wheel has no bill. An unreadable bill is copied unchanged, so that the audit can
    report it. If the distribution name changes, an unreadable bill is dropped.
    """
    found = {member.name: member for member in members}
    place, record = (found.get(f"{dist_info}/{one}") for one in (SBOM_NAME, "RECORD"))
    if place is None:
        return {}
    data = read_member(place)
    try:
        return {SBOM_NAME: _changed(data, read_member(record) if record else b"", notes, name, place.source)}
    except InputError:
        return {} if name else {SBOM_NAME: data}


def _changed(data: bytes, record: bytes, notes: str, name: str, source: str) -> bytes:
    opened = open_bill(data, source)
    subject = opened.subject
    ancestor: dict[str, Any] = {key: subject[key] for key in _KEPT if key in subject}
    if record:
        ancestor["properties"] = [{"name": _RECORD, "value": hashlib.sha256(record).hexdigest()}]
    subject["pedigree"] = {"ancestors": [ancestor], "notes": notes}
    if name:
        version = subject["version"]
        opened.rename(f"/{subject['name']}@{version}", f"/{name}@{version}")
        subject["name"] = name
    return bill_text(opened.bill)


def change_notes(command: str, files: Mapping[str, Sequence[str]]) -> str:
    """Return a note about a command's changes to a wheel's files; ``files`` maps each action to file names.

    >>> change_notes("rocwheel repair", {"changed": ["a", "b"], "left out": []})
    'rocwheel repair: changed a, b'
    """
    return f"{command}: {'; '.join(f'{what} {first_of(names, _MOST)}' for what, names in files.items() if names)}"


def promoted_bill(data: bytes, old: str, new: str, source: str) -> bytes:
    """Return a bill with a new version of the distribution itself. The versions of its components don't change.

    Raises `InputError` about ``source`` if the data isn't a CycloneDX bill.
    """
    opened = open_bill(data, source)
    if opened.subject["version"] != old:
        return data
    opened.subject["version"] = new
    opened.rename(f"@{old}", f"@{new}")
    return bill_text(opened.bill)


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _Reference(msgspec.Struct, frozen=True):
    type: str = ""


class _Component(msgspec.Struct, frozen=True, rename={"references": "externalReferences", "ref": "bom-ref"}):
    name: str
    ref: str = ""
    purl: str = ""
    properties: tuple[_Named, ...] = ()
    references: tuple[_Reference, ...] = ()

    @property
    def is_project(self) -> bool:
        """Whether the component is a project with a license, and not an artifact or package with parts of projects."""
        # An artifact that splitting created has no number of files, because it wasn't read. The reference of a
        # project contains a slash; the reference of an artifact is its name.
        is_artifact = self.ref == self.name or any(one.name == "rocwheel:files" for one in self.properties)
        return not (is_artifact or self.purl.startswith("pkg:deb/"))


class _Bill(msgspec.Struct, frozen=True):
    components: tuple[_Component, ...] = ()


def find_unlicensed(data: bytes, source: str) -> tuple[str, ...]:
    """Return the names of the projects in a rocwheel bill that have no license text.

    Raises `InputError` about ``source`` if the data isn't a CycloneDX bill.
    """
    try:
        bill = decode_json(data, _Bill)
    except msgspec.DecodeError as e:
        raise InputError(source, f"isn't a bill of materials ({e})", expected="CycloneDX JSON") from e
    return tuple(
        one.name for one in bill.components if one.is_project and all(ref.type != "license" for ref in one.references)
    )
