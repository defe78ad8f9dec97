"""What is in a distribution, and what it was made of."""

from __future__ import annotations

import json
import uuid
from typing import Any

import msgspec

__all__ = ["SBOM_NAME", "BillItem", "BillOfMaterials", "bill_text"]

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
