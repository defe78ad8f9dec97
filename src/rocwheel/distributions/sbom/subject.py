"""The distribution that a bill of materials is about, as a part of the bill that can be changed."""

from __future__ import annotations

from typing import Any, NamedTuple

from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError

__all__ = ["OpenBill", "open_bill"]


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
