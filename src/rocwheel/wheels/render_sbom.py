"""Writes software bills of materials with ``cyclonedx-python-lib``, which is slow to import."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING
from urllib.parse import quote

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

import rocwheel
from rocwheel.wheels.sbom import bill_text

if TYPE_CHECKING:
    from rocwheel.wheels.sbom import BillItem, BillOfMaterials


def render_bill(bill: BillOfMaterials) -> bytes:
    """Return the bill's JSON text. Equal values produce the same output."""
    components = {item.key: _component(item) for item in (bill.subject, *bill.items)}
    bom = Bom(components=[components[item.key] for item in bill.items])
    bom.metadata.timestamp = datetime.fromtimestamp(bill.seconds, timezone.utc)
    bom.metadata.component = components[bill.subject.key]
    tool = Component(name="rocwheel", version=rocwheel.__version__, type=ComponentType.APPLICATION, bom_ref="tool")
    bom.metadata.tools.components.add(tool)
    for item in (bill.subject, *bill.items):
        bom.register_dependency(components[item.key], [components[key] for key in item.made_of])
    return bill_text(json.loads(JsonV1Dot6(bom).output_as_string()))


def _component(item: BillItem) -> Component:
    return Component(
        name=item.name,
        version=item.version or None,
        type=ComponentType.LIBRARY,
        bom_ref=item.key,
        purl=_package_url(item.package_url),
        licenses=[LicenseExpression(item.license)] if item.license else [],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=item.sha256)] if item.sha256 else [],
        external_references=map(_text, item.license_files),
        properties=[Property(name=name, value=value) for name, value in item.properties.items()],
    )


def _package_url(text: str) -> PackageURL | None:
    try:
        return PackageURL.from_string(text) if text else None
    except ValueError:
        return None


def _text(path: str) -> ExternalReference:
    place = quote(path.encode("utf-8", "surrogateescape"))
    return ExternalReference(type=ExternalReferenceType.LICENSE, url=XsUri(f"../licenses/{place}"))
