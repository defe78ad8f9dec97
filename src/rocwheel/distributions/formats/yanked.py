"""What a page of an index in JSON says of a file that is, or is not, yanked (:pep:`592`, :pep:`691`)."""

from __future__ import annotations

__all__ = ["yanked_reason"]


def yanked_reason(value: bool | str | None) -> str | None:
    """Return the reason, empty for none; none for a file that is not yanked.

    Only a value that counts as true yanks a file: an empty text does not, in pip nor by :pep:`691`.
    """
    if not value:
        return None
    return value if isinstance(value, str) else ""
