"""The bill of materials of a wheel that was made from a finished one, with what was changed (CycloneDX's pedigree)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from rocwheel.core.errors import InputError
from rocwheel.core.messages import first_of
from rocwheel.distributions.sbom.bill import SBOM_NAME, bill_text
from rocwheel.distributions.sbom.subject import open_bill
from rocwheel.distributions.zip.reader import read_member

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rocwheel.distributions.zip.reader import ZipMember

__all__ = ["change_notes", "changed_bill"]

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
