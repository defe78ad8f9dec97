"""A store that counts what is asked of it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocwheel.stores.store import Store

__all__ = ["CountedStore"]

_KINDS = {
    "list": "list",
    "head": "head",
    "load": "get",
    "read": "get",
    "read_range": "get",
    "stream": "get",
    "put": "put",
    "swap": "put",
    "delete": "delete",
}


class CountedStore:
    """Another store's face; ``requests`` has how many of each kind there were.

    A long listing and a large file count once, whatever they take.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.requests: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._store, name)
        return self._counted(value, _KINDS[name]) if name in _KINDS else value

    def _counted(self, method: Callable[..., Any], kind: str) -> Callable[..., Any]:
        def counted(*words: Any, **more: Any) -> Any:
            self.requests[kind] += 1
            return method(*words, **more)

        return counted
