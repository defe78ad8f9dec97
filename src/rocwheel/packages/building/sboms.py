"""The bill of materials of each wheel of a plan: the artifacts that it was made of, their components and licenses."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from rocwheel.distributions.sbom.bill import SBOM_NAME, BillItem, BillOfMaterials

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rocwheel.artifacts.summary import ArtifactDigest
    from rocwheel.distributions.formats.source_date import SourceDate
    from rocwheel.packages.plan import Plan, PlannedComponent, PlannedWheel

__all__ = ["add_sboms"]


def add_sboms(plan: Plan, digests: Mapping[str, ArtifactDigest], source_date: SourceDate) -> Plan:
    """Return a plan whose wheels have their bills; ``digests`` are those of the artifacts, by name.

    A wheel variant that holds nothing but requirements has none.
    """
    # Loading what writes them takes long, and other commands load this module, too.
    render = import_module("rocwheel.distributions.sbom.render").render_bill

    def with_bill(wheel: PlannedWheel) -> PlannedWheel:
        if not wheel.components:
            return wheel
        bill = render(_make_bill(wheel, digests, source_date.seconds))
        return msgspec.structs.replace(wheel, info_texts=wheel.info_texts | {SBOM_NAME: bill.decode()})

    return msgspec.structs.replace(plan, wheels=tuple(map(with_bill, plan.wheels)))


def _make_bill(wheel: PlannedWheel, digests: Mapping[str, ArtifactDigest], seconds: int) -> BillOfMaterials:
    items = {item.key: item for component in wheel.components for item in _items(component, digests)}
    made_of = tuple(dict.fromkeys(key for one in wheel.components for key in (one.artifacts or (_key(one),))))
    name, version = wheel.name.distribution, wheel.name.version
    url = f"pkg:pypi/{name}@{version}"
    subject = BillItem(url, name, version, url, wheel.metadata.license_expression or "", made_of=made_of)
    # An artifact has parts of several components.
    parts: dict[str, list[str]] = {}
    for component in wheel.components:
        for artifact in component.artifacts:
            parts.setdefault(artifact, []).append(_key(component))
    return BillOfMaterials(subject, tuple(_with_parts(item, parts) for item in items.values()), seconds)


def _with_parts(item: BillItem, parts: Mapping[str, list[str]]) -> BillItem:
    return msgspec.structs.replace(item, made_of=(*item.made_of, *parts.get(item.key, ())))


def _key(component: PlannedComponent) -> str:
    return f"{component.artifact}/{component.project}" if component.project else f"{component.artifact}/"


def _items(component: PlannedComponent, digests: Mapping[str, ArtifactDigest]) -> Iterator[BillItem]:
    for artifact in component.artifacts:
        yield _artifact(artifact, digests.get(artifact))
    repositories = [url for url in component.upstream if url.startswith("pkg:github/")]
    packages = [url for url in component.upstream if url not in repositories]
    yield BillItem(
        _key(component),
        component.name,
        component.version,
        repositories[0] if repositories else "",
        component.license or "",
        component.license_files,
        made_of=tuple(packages),
    )
    for url in packages:
        name, _, version = url.rpartition("/")[2].partition("?")[0].partition("@")
        yield BillItem(url, unquote(name), unquote(version), url)


def _artifact(name: str, digest: ArtifactDigest | None) -> BillItem:
    if digest is None:
        return BillItem(name, name)
    facts = {"rocwheel:files": str(digest.files), "rocwheel:bytes": str(digest.size)}
    return BillItem(name, name, sha256=digest.sha256, properties=facts)
