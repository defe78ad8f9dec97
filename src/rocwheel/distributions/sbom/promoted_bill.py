"""The bill of materials of a distribution that gets another version."""

from __future__ import annotations

from rocwheel.distributions.sbom.bill import bill_text
from rocwheel.distributions.sbom.subject import open_bill

__all__ = ["promoted_bill"]


def promoted_bill(data: bytes, old: str, new: str, source: str) -> bytes:
    """Return the text of a bill with the new version of the distribution itself; those of its components stay.

    Raises `InputError`, led by ``source``, for what is no bill of CycloneDX.
    """
    opened = open_bill(data, source)
    if opened.subject["version"] != old:
        return data
    opened.subject["version"] = new
    opened.rename(f"@{old}", f"@{new}")
    return bill_text(opened.bill)
