"""METADATA and PKG-INFO as others wrote them, read by ``packaging`` (core metadata 2.x)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.metadata import parse_email

if TYPE_CHECKING:
    from packaging.metadata import RawMetadata

__all__ = ["CoreMetadataError", "parse_core_metadata"]


class CoreMetadataError(ValueError):
    """Text that is not core metadata; the text of the error says why."""


def parse_core_metadata(data: bytes) -> tuple[RawMetadata, dict[str, list[str]]]:
    """Return the fields of core metadata, and apart from them those that are unknown or can't be read.

    Raises `CoreMetadataError` for messages within messages, which the standard library reads as e-mails have them.
    """
    try:
        return parse_email(data)
    except RecursionError as e:
        msg = "messages are nested too deeply in it"
        raise CoreMetadataError(msg) from e
