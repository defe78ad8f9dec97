"""The differences between the metadata of two packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.diffing.compare_items import compare_field
from rocwheel.distributions.formats.platforms.tags import split_tags

if TYPE_CHECKING:
    from rocwheel.diffing.changes import FieldChange
    from rocwheel.diffing.values import Metadata, Package

__all__ = ["compare_metadata", "plain_requirements"]


def compare_metadata(old: Package, new: Package) -> tuple[FieldChange, ...]:
    """Return the fields of the metadata that differ, by their names there; tags one by one."""
    one, other = old.metadata, new.metadata
    return (
        *compare_field("Name", filter(None, [old.name]), filter(None, [new.name])),
        *compare_field("Requires-Dist", plain_requirements(old), plain_requirements(new)),
        *compare_field("Requires-Python", filter(None, [one.requires_python]), filter(None, [other.requires_python])),
        *compare_field("Provides-Extra", one.extras, other.extras),
        *compare_field("Entry point", one.entry_points, other.entry_points),
        *_compare_tags(one, other),
        *compare_field("GPU target", one.targets, other.targets),
        *compare_field("License", filter(None, [one.license]), filter(None, [other.license])),
        *compare_field("Summary", filter(None, [one.summary]), filter(None, [other.summary])),
    )


def plain_requirements(package: Package) -> tuple[str, ...]:
    """Return the requirements; packages of one build pin one another to their version, which is no difference."""
    pin = f"=={package.version}"
    return tuple(
        f"{text.partition(pin)[0]}==VERSION{text.partition(pin)[2]}" if _ends_pin(text, pin) else text
        for text in package.metadata.requires
    )


def _ends_pin(text: str, pin: str) -> bool:
    before, found, rest = text.partition(pin)
    return bool(before and found) and (not rest or rest[0] in " ;)")


def _compare_tags(one: Metadata, other: Metadata) -> list[FieldChange]:
    names = ("Python tag", "ABI tag", "Platform tag")
    return [
        change
        for name, before, after in zip(names, one.tags, other.tags, strict=True)
        for change in compare_field(name, split_tags(before) if before else (), split_tags(after) if after else ())
    ]
