"""The wheels and sdists in a folder on this disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.distributions.index.entries.file_name import is_distribution_name

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["find_distributions"]

_INDEX = "simple"


def find_distributions(folder: Path) -> list[Path]:
    """Return the wheels and sdists in a folder of them and in the folders of families there, the index left out.

    Raises `OSError` for a folder that can't be read.
    """
    if not folder.is_dir():
        return []
    places = sorted(folder.iterdir())
    found = [place for place in places if _is_distribution(place)]
    if not found and any(place.is_file() for place in places):
        return []
    families = [place for place in places if place.is_dir() and place.name != _INDEX]
    return [*found, *(place for family in families for place in sorted(family.iterdir()) if _is_distribution(place))]


def _is_distribution(place: Path) -> bool:
    return is_distribution_name(place.name) and place.is_file()
