"""Finds installed distributions by their metadata, but none in the working directory, as `_trusted` finds modules."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distributions

from ._trusted import trusted_entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import Distribution

__all__ = ["find_distribution", "list_distributions"]


def find_distribution(name: str) -> Distribution:
    """Return the distribution of a name. Raises `PackageNotFoundError` when it isn't installed."""
    found = next(iter(distributions(name=name, path=trusted_entries())), None)
    if found is None:
        raise PackageNotFoundError(name)
    return found


def list_distributions() -> list[Distribution]:
    """Return all distributions."""
    return list(distributions(path=trusted_entries()))
