"""One file on its way from a store of obstore, perhaps in several requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocwheel.stores.errors import BrokenTransferError, outdated
from rocwheel.stores.store import is_same_tag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Transfer"]

_PIECE = 8 << 20


class Transfer:
    """How far a file is, and which one it was at first: another one's bytes never follow.

    ``get`` asks for the file, with obstore's ``options``; ``e_tag`` is what the store called it before, if it did.
    """

    def __init__(self, get: Callable[..., Any], place: str, start: int, e_tag: str | None) -> None:
        self.position = start
        self._get = get
        self._place = place
        self._e_tag = e_tag
        self._is_whole = False
        self._first: tuple[object, int] | None = None

    def take_whole(self) -> None:
        """From now on, ask for the whole file and throw away what is there already."""
        self._is_whole = True

    def attempt(self) -> Iterator[bytes]:
        """Yield what one request brings.

        Raises `OutdatedError` where the store has another file by then, `BrokenTransferError` for an end before that of
        the file, and what obstore raises.
        """
        answer = self._get(options=self._options())
        self._require_same(answer.meta)
        skipped = self.position if self._is_whole else 0
        for piece in answer.stream(min_chunk_size=_PIECE):
            rest = bytes(piece)[skipped:]
            skipped -= min(skipped, len(piece))
            if rest:
                yield rest
                self.position += len(rest)
        size = answer.meta["size"]
        if self.position < size:
            found = f"ends at byte {self.position} of {size}"
            raise BrokenTransferError(self._place, found, remedy="Try again later.")

    def _options(self) -> dict[str, Any]:
        if self._is_whole or not self.position:
            return {}
        e_tag = self._first[0] if self._first else None
        # A weak tag never matches (RFC 9110, 13.1.1): the answer's is compared instead.
        is_strong = isinstance(e_tag, str) and not e_tag.startswith("W/")
        return {"range": {"offset": self.position}} | ({"if_match": e_tag} if is_strong else {})

    def _require_same(self, meta: Any) -> None:
        """Compare the tag of an answer, or its date where there is none, and its size with what was said before."""
        found = (meta["e_tag"] or meta["last_modified"], meta["size"])
        self._first = self._first or found
        if found != self._first or not is_same_tag(self._e_tag, meta["e_tag"]):
            raise outdated(self._place)
