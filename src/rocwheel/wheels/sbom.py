"""Software bills of materials of distributions, for ``.dist-info/sboms`` (:pep:`770`, CycloneDX): read and changed."""

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
"""The place of a bill in ``.dist-info`` (:pep:`770`)."""


class BillItem(msgspec.Struct, frozen=True):
    """Something that a distribution holds, or that this was made of."""

    key: str
    """What others name it by; used once in a bill."""
    name: str
    version: str = ""
    package_url: str = ""
    """As purl-spec has it; one that can't be read is left out."""
    license: str = ""
    """An SPDX expression."""
    license_files: tuple[str, ...] = ()
    """Paths of its license texts in ``.dist-info/licenses``."""
    sha256: str = ""
    properties: dict[str, str] = {}
    made_of: tuple[str, ...] = ()
    """Keys of other items."""


class BillOfMaterials(msgspec.Struct, frozen=True):
    """What is in a distribution: itself as the first item, and all that it names, directly or by another one."""

    subject: BillItem
    items: tuple[BillItem, ...]
    seconds: int
    """When it was made, in seconds since 1970."""


def bill_text(bill: dict[str, Any]) -> bytes:
    """Return the text of a bill of CycloneDX; its serial number is made of all else that it says."""
    said = {name: value for name, value in bill.items() if name != "serialNumber"}
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(said, sort_keys=True))
    return json.dumps({**said, "serialNumber": number.urn}, indent=1, sort_keys=True).encode() + b"\n"


class OpenBill(NamedTuple):
    """A bill of CycloneDX as tables, which may be changed."""

    bill: dict[str, Any]
    subject: dict[str, Any]
    """The component of the distribution itself."""
    own: dict[str, Any]
    """What it depends on; empty where the bill doesn't say."""

    def rename(self, old: str, new: str) -> None:
        """Replace the end of the distribution's names: of its package URL, and of its ``bom-ref`` and references."""
        for table, name in ((self.subject, "bom-ref"), (self.subject, "purl"), (self.own, "ref")):
            if isinstance(text := table.get(name), str) and text.endswith(old):
                table[name] = f"{text.removesuffix(old)}{new}"


def open_bill(data: bytes, source: str) -> OpenBill:
    """Return a bill as its tables; raise `InputError`, led by ``source``, for what is no bill of CycloneDX."""
    try:
        bill = decode_json(data, dict[str, Any])
        subject = bill["metadata"]["component"]
        reference, _, _ = subject["bom-ref"], subject["name"], subject["version"]
        dependencies = bill.get("dependencies", [])
        own: dict[str, Any] = next((one for one in dependencies if one["ref"] == reference), {})
    except (ValueError, KeyError, TypeError) as e:
        raise InputError(
            source, "is no bill of materials", expected="CycloneDX JSON with a component of its own"
        ) from e
    return OpenBill(bill, subject, own)


_KEPT = ("type", "name", "version", "purl", "licenses", "pedigree")
"""What an ancestor keeps of the component that the distribution was."""
_RECORD = "rocwheel:record-sha256"
_MOST = 20
"""Files that are named one by one."""


def changed_bill(members: Iterable[ZipMember], dist_info: str, notes: str, *, name: str = "") -> dict[str, bytes]:
    """Return the bill of a wheel that is made from one with these members, by its name in ``.dist-info``.

    The components stay: the new wheel is made of them, too. Its own component gets the old one as an ancestor, with the
    SHA-256 of the old RECORD, which has the hash of every file, and ``notes`` on what was changed. ``name`` is that of
    the new distribution, where it is another. Nothing is returned for a wheel without a bill; one that can't be read
    stays as it is for the audit to tell, and is none for a distribution of another name.
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
    """Return the notes on what a command did to the files of a wheel; ``files`` are names by what was done to them.

    >>> change_notes("rocwheel repair", {"changed": ["a", "b"], "left out": []})
    'rocwheel repair: changed a, b'
    """
    return f"{command}: {'; '.join(f'{what} {first_of(names, _MOST)}' for what, names in files.items() if names)}"


def promoted_bill(data: bytes, old: str, new: str, source: str) -> bytes:
    """Return the text of a bill with the new version of the distribution itself; those of its components stay.

    Raises `InputError`, led by ``source``, for what is no bill of CycloneDX.
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
        """Whether it is licensed by itself, not an artifact or a package that has parts of projects."""
        # What splitting device code adds to the artifacts was none of those that were read: it has no number of files.
        # The reference to a project has a slash, that to an artifact is its name.
        is_artifact = self.ref == self.name or any(one.name == "rocwheel:files" for one in self.properties)
        return not (is_artifact or self.purl.startswith("pkg:deb/"))


class _Bill(msgspec.Struct, frozen=True):
    components: tuple[_Component, ...] = ()


def find_unlicensed(data: bytes, source: str) -> tuple[str, ...]:
    """Return the names of the projects in a bill of rocwheel that it names no license text for.

    Raises `InputError`, led by ``source``, for what is no bill of CycloneDX.
    """
    try:
        bill = decode_json(data, _Bill)
    except msgspec.DecodeError as e:
        raise InputError(source, f"is no bill of materials ({e})", expected="JSON of CycloneDX") from e
    return tuple(
        one.name for one in bill.components if one.is_project and all(ref.type != "license" for ref in one.references)
    )
