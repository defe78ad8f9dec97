"""A store on which somebody else is faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocwheel.stores.store import Store

__all__ = ["RacedStore"]


class RacedStore:
    """Another store's face, where somebody else does something just before one file is replaced for the first time."""

    def __init__(self, store: Store, name: str, act: Callable[[Store], object]) -> None:
        self._store, self._name, self._act = store, name, act

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def swap(self, name: str, data: bytes, e_tag: str | None) -> str | None:
        """Replace a file, the one after somebody else has acted."""
        if name == self._name:
            self._name = ""
            self._act(self._store)
        return self._store.swap(name, data, e_tag)
