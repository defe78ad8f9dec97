"""Which parts of a distribution come without a license text, by its own bill of materials."""

from __future__ import annotations

import msgspec

from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError

__all__ = ["find_unlicensed"]


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
