"""The bill of materials of a distribution that gets another version."""

from __future__ import annotations

from typing import Any

from rocwheel.distributions.sbom.bill import bill_text
from rocwheel.foundation.decoding import decode_json
from rocwheel.foundation.errors import InputError

__all__ = ["promoted_bill"]


def promoted_bill(data: bytes, old: str, new: str, source: str) -> bytes:
    """Return the text of a bill with the new version of the distribution itself; those of its components stay.

    Raises `InputError`, led by ``source``, for what is no bill of CycloneDX.
    """
    try:
        bill = decode_json(data, dict[str, Any])
        subject = bill["metadata"]["component"]
        reference, version = subject["bom-ref"], subject["version"]
        dependencies = bill.get("dependencies", [])
        own: dict[str, Any] = next((one for one in dependencies if one["ref"] == reference), {})
    except (ValueError, KeyError, TypeError) as e:
        raise InputError(
            source, "is no bill of materials", expected="CycloneDX JSON with a component of its own"
        ) from e
    if version != old:
        return data
    subject["version"] = new
    for table, name in ((subject, "bom-ref"), (subject, "purl"), (own, "ref")):
        if isinstance(text := table.get(name), str) and text.endswith(f"@{old}"):
            table[name] = f"{text.removesuffix(old)}{new}"
    return bill_text(bill)
