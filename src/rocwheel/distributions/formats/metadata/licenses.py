"""Which files of a distribution are licence texts, by their names; METADATA of many doesn't list them (:pep:`639`)."""

from __future__ import annotations

__all__ = ["is_license_name"]

_WORDS = ("licen", "copying", "notice", "copyright")


def is_license_name(name: str) -> bool:
    """Return whether a file is a licence text or a notice by its name, without its folder."""
    return any(word in name.lower() for word in _WORDS)
