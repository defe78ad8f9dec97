"""Bills of materials in wheels, for tests."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from rocwheel.wheels.render_sbom import render_bill
from rocwheel.wheels.sbom import SBOM_NAME, BillItem, BillOfMaterials
from tests.support.wheels import members

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["bill_of", "pedigree", "record_digest", "with_bill"]


def with_bill(name: str, version: str = "1.0") -> dict[str, bytes]:
    """Return the bill of a wheel, made of one artifact, by the name of its member."""
    url = f"pkg:pypi/{name}@{version}"
    subject = BillItem(url, name, version, url, made_of=("a",))
    bill = BillOfMaterials(subject, (BillItem("a", "base_lib_generic", sha256="0" * 64),), 315532800)
    return {f"{name.replace('-', '_')}-{version}.dist-info/{SBOM_NAME}": render_bill(bill)}


def bill_of(wheel: Path) -> dict[str, Any]:
    """Return the bill of a wheel, which has to follow the published schema."""
    [data] = [data for name, data in members(wheel).items() if name.endswith(SBOM_NAME)]
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(data.decode()) is None
    bill: dict[str, Any] = json.loads(data)
    return bill


def pedigree(wheel: Path) -> tuple[str, str]:
    """Return the notes on what a wheel was changed by, and the SHA-256 of the RECORD that it had before."""
    found = bill_of(wheel)["metadata"]["component"]["pedigree"]
    [ancestor] = found["ancestors"]
    return found["notes"], ancestor["properties"][0]["value"]


def record_digest(wheel: Path) -> str:
    """Return the SHA-256 of a wheel's RECORD."""
    [data] = [data for name, data in members(wheel).items() if name.endswith(".dist-info/RECORD")]
    return hashlib.sha256(data).hexdigest()
