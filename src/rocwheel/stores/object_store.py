"""A store that obstore reaches: what is the same for S3, web servers and memory."""

from __future__ import annotations

import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from rocwheel.foundation.files.regular_files import open_unchanged
from rocwheel.stores.content_types import content_type
from rocwheel.stores.errors import (
    BrokenTransferError,
    CredentialsError,
    ForbiddenError,
    MissingFileError,
    OutdatedError,
    RangesIgnoredError,
    StoreError,
    TakenError,
)
from rocwheel.stores.names import UPLOADS, checked_name
from rocwheel.stores.resume import pause_or_raise, resumed
from rocwheel.stores.store import LoadedFile, StoredFile
from rocwheel.stores.translate import translated
from rocwheel.stores.urls import join_url

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ObjectStore"]

_AT_ONCE = 32 << 20
"""Bytes of the largest file that is sent in one request: only such a request can be told not to replace a file."""
_PIECE = 8 << 20
_SHA256 = "sha256"
"""The name of the object's own metadata with the hash."""


class ObjectStore:
    """Files behind a store of obstore. See `rocwheel.stores.store.Store`."""

    def __init__(self, inner: Any, url: str, *, has_own_metadata: bool = True) -> None:
        self.url = url.rstrip("/")
        self._inner = inner
        self._has_own_metadata = has_own_metadata

    def place(self, name: str) -> str:
        """Return the URL of a file as messages show it."""
        return join_url(self.url, name)

    def list(self, prefix: str = "") -> Iterator[StoredFile]:
        """Yield the files in the folder ``prefix`` and below, in order of their names."""
        with self._translating(prefix):
            found = [meta for page in obstore.list(self._inner, prefix or None, chunk_size=1000) for meta in page]
        for meta in sorted(found, key=lambda meta: str(meta["path"])):
            yield _stored(meta)

    def head(self, name: str) -> StoredFile:
        """Return what the store says of a file, with the hash that was noted beside it."""
        path = self._checked(name)
        try:
            with self._translating(name):
                answer = obstore.get(self._inner, path, options={"head": True})
                noted = str(dict(answer.attributes).get(_SHA256, ""))
                return _stored(answer.meta, noted, name)
        except StoreError as e:
            if isinstance(e, ForbiddenError | CredentialsError) or type(e) is StoreError:
                self._ask_why(name, path)
            raise

    def _ask_why(self, name: str, path: str) -> None:
        """Raise what the store says of a file that it says nothing of: answers to HEAD have no room for reasons."""
        with suppress(RangesIgnoredError), self._translating(name):
            obstore.get_range(self._inner, path, start=0, end=1)

    def load(self, name: str) -> LoadedFile:
        """Return the bytes of a small file with its tag."""
        path = self._checked(name)

        def load() -> LoadedFile:
            with self._translating(name, reads=True):
                answer = obstore.get(self._inner, path)
                meta = answer.meta
                return LoadedFile(bytes(answer.bytes()), meta["e_tag"])

        return resumed(load)

    def read(self, name: str) -> bytes:
        """Return the bytes of a small file."""
        return self.load(name).data

    def read_range(self, name: str, start: int, stop: int) -> bytes:
        """Return the bytes from ``start`` to ``stop``."""
        if stop <= start:
            return b""
        path = self._checked(name)

        def read() -> bytes:
            with self._translating(name, reads=True):
                return bytes(obstore.get_range(self._inner, path, start=start, end=stop))

        return resumed(read)

    def stream(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield the bytes from ``start`` in pieces; what ends early is taken up there, if the file is the same."""
        path = self._checked(name)
        position, e_tag, failures = start, None, 0
        while True:
            before = position
            try:
                with self._translating(name, reads=True):
                    answer = obstore.get(self._inner, path, options=_from(position, e_tag))
                    e_tag, size = answer.meta["e_tag"], answer.meta["size"]
                    for piece in answer.stream(min_chunk_size=_PIECE):
                        yield bytes(piece)
                        position += len(piece)
                if position < size:
                    found = f"ends at byte {position} of {size}"
                    raise BrokenTransferError(self.place(name), found, remedy="Try again later.")
            except RangesIgnoredError:
                yield from self._rest_of_whole(name, position)
                return
            except BrokenTransferError as e:
                failures = 1 if position > before else failures + 1
                pause_or_raise(e, failures)
            else:
                return

    def _rest_of_whole(self, name: str, position: int) -> Iterator[bytes]:
        """Yield what follows ``position``, from a server that sends whole files only."""
        passed = 0
        with self._translating(name, reads=True):
            for piece in obstore.get(self._inner, name).stream(min_chunk_size=_PIECE):
                passed += len(piece)
                if passed > position:
                    yield bytes(piece)[max(position - passed, -len(piece)) :]

    def put(self, name: str, source: bytes | Path, *, create: bool = True, sha256: str = "") -> None:
        """Store a file; a large one in parts, under another name until it is whole."""
        path = self._checked(name)
        if isinstance(source, Path) and create and source.stat().st_size > _AT_ONCE:
            self._put_large(path, source, sha256)
            return
        attributes = self._attributes(name, sha256)
        mode: Any = "create" if create else "overwrite"
        with self._translating(name):
            if isinstance(source, bytes):
                obstore.put(self._inner, path, source, mode=mode, attributes=attributes)
                return
            with open_unchanged(source) as file:
                obstore.put(self._inner, path, file, mode=mode, attributes=attributes)

    def _put_large(self, path: str, source: Path, sha256: str) -> None:
        part = f"{UPLOADS}/{sha256 or uuid.uuid4().hex}"
        # Parts of an upload that nobody ends are in no listing: the note tells that there are some.
        note = f"{part}.begun"
        try:
            with self._translating(path), open_unchanged(source) as file:
                obstore.put(self._inner, note, b"", mode="overwrite")
                obstore.put(self._inner, part, file, mode="overwrite", use_multipart=True, chunk_size=_PIECE)
            with self._translating(path):
                obstore.copy(self._inner, part, path, overwrite=False)
        except MissingFileError as e:
            # Whoever publishes the same bytes at the same time has just finished.
            raise _taken(self.place(path)) from e
        finally:
            for name in (part, note):
                with suppress(BaseError, FileNotFoundError):
                    obstore.delete(self._inner, name)

    def swap(self, name: str, data: bytes, e_tag: str | None) -> str | None:
        """Replace a small file if it still has that tag, and return the new one."""
        mode: Any = "create" if e_tag is None else {"e_tag": e_tag}
        attributes = self._attributes(name)
        try:
            with self._translating(name):
                done = obstore.put(self._inner, self._checked(name), data, mode=mode, attributes=attributes)
                return done["e_tag"]
        except (TakenError, MissingFileError) as e:
            raise _outdated(self.place(name)) from e

    def delete(self, name: str) -> None:
        """Remove a file; nothing where there is none."""
        with suppress(MissingFileError), self._translating(name):
            obstore.delete(self._inner, self._checked(name))

    def _checked(self, name: str) -> str:
        return checked_name(self.url, name)

    def _attributes(self, name: str, sha256: str = "") -> dict[str, str]:
        own = {_SHA256: sha256} if sha256 and self._has_own_metadata else {}
        return {"Content-Type": content_type(name), **own}

    @contextmanager
    def _translating(self, name: str, *, reads: bool = False) -> Iterator[None]:
        place = self.place(name)
        try:
            yield
        except AlreadyExistsError as e:
            raise _taken(place) from e
        except PreconditionError as e:
            raise _outdated(place) from e
        except (BaseError, FileNotFoundError) as e:
            raise translated(place, e, reads=reads) from e


def _taken(place: str) -> StoreError:
    return TakenError(place, "is there already", remedy="Give the new file another name or version.")


def _outdated(place: str) -> StoreError:
    return OutdatedError(place, "was changed meanwhile by somebody else", remedy="Try again.")


def _from(position: int, e_tag: str | None) -> Any:
    options: dict[str, Any] = {"range": {"offset": position}} if position else {}
    return options | ({"if_match": e_tag} if position and e_tag else {})


def _stored(meta: Any, sha256: str = "", name: str = "") -> StoredFile:
    return StoredFile(name or str(meta["path"]), meta["size"], meta["e_tag"], meta["last_modified"], sha256)
