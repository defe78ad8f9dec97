"""A store that obstore reaches: what is the same for S3, web servers and memory."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from rocwheel.foundation.files.reading.regular_files import open_unchanged
from rocwheel.stores.content_types import content_type
from rocwheel.stores.errors import (
    BrokenTransferError,
    CredentialsError,
    ForbiddenError,
    MissingFileError,
    RangesIgnoredError,
    StoreError,
    TakenError,
    outdated,
    taken,
)
from rocwheel.stores.names import checked_name
from rocwheel.stores.objects.large_uploads import (
    forget_hash,
    is_note,
    note_hash,
    noted_hash,
    put_large,
    require_possible,
)
from rocwheel.stores.objects.transfer import Transfer
from rocwheel.stores.objects.translate import translated
from rocwheel.stores.resume import Patience, resumed
from rocwheel.stores.store import LoadedFile, StoredFile
from rocwheel.stores.urls import join_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.foundation.files.reading.file_stamp import FileStamp

__all__ = ["ObjectStore"]

_AT_ONCE = 32 << 20
"""Bytes of the largest file that is sent in one request: only such a request can be told not to replace a file."""
_SHA256 = "sha256"
"""The name of the object's own metadata with the hash."""


class ObjectStore:
    """Files behind a store of obstore. See `rocwheel.stores.store.Store`."""

    def __init__(self, inner: Any, url: str, *, has_own_metadata: bool = True, has_user: bool = False) -> None:
        self.url = url.rstrip("/")
        self._inner = inner
        self._has_own_metadata = has_own_metadata
        self._has_user = has_user

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder of this machine: no."""
        return False

    def place(self, name: str) -> str:
        """Return the URL of a file as messages show it."""
        return join_url(self.url, name)

    def list(self, prefix: str = "") -> Iterator[StoredFile]:
        """Yield the files in the folder ``prefix`` and below, in order of their names."""
        with self._translating(prefix):
            found = [meta for page in obstore.list(self._inner, prefix or None, chunk_size=1000) for meta in page]
        for meta in sorted(found, key=lambda meta: str(meta["path"])):
            if not is_note(str(meta["path"])):
                yield _stored(meta)

    def head(self, name: str) -> StoredFile:
        """Return what the store says of a file, with the hash that was noted beside it."""
        path = self._checked(name)
        try:
            with self._translating(name):
                answer = obstore.get(self._inner, path, options={"head": True})
                return _stored(answer.meta, self._noted(path, answer), name)
        except StoreError as e:
            if isinstance(e, ForbiddenError | CredentialsError) or type(e) is StoreError:
                self._ask_why(name, path)
            raise

    def _noted(self, path: str, answer: Any) -> str:
        """Return the hash that was noted of a file, with it or, of a large one, beside it."""
        noted = str(dict(answer.attributes).get(_SHA256, ""))
        if noted or not self._has_own_metadata or answer.meta["size"] <= _AT_ONCE:
            return noted
        return noted_hash(self._inner, path, answer.meta["e_tag"])

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

    def stream(self, name: str, start: int = 0, *, e_tag: str | None = None) -> Iterator[bytes]:
        """Yield the bytes from ``start`` in pieces; what ends early is taken up there, if the file is the same."""
        get = partial(obstore.get, self._inner, self._checked(name))
        transfer, patience = Transfer(get, self.place(name), start, e_tag), Patience()
        while True:
            before = transfer.position
            try:
                with self._translating(name, reads=True):
                    yield from transfer.attempt()
            except RangesIgnoredError:
                transfer.take_whole()
            except BrokenTransferError as e:
                patience.pause_or_raise(e, has_progress=transfer.position > before)
            else:
                return

    def put(
        self,
        name: str,
        source: bytes | Path,
        *,
        create: bool = True,
        sha256: str = "",
        stamp: FileStamp | None = None,
    ) -> None:
        """Store a file; a large one in parts, under another name until it is whole."""
        path = self._checked(name)
        if isinstance(source, Path) and create and source.stat().st_size > _AT_ONCE:
            self._put_large(path, source, sha256, stamp)
            return
        if isinstance(source, Path) and source.stat().st_size <= _AT_ONCE:
            with self._translating(name), open_unchanged(source, stamp) as file:
                source = file.read()  # as a whole: nothing is sent of a file that changes while it is read
        attributes = self._attributes(name, sha256)
        mode: Any = "create" if create else "overwrite"
        with self._translating(name):
            if isinstance(source, bytes):
                in_parts = len(source) > _AT_ONCE
                obstore.put(self._inner, path, source, mode=mode, attributes=attributes, use_multipart=in_parts)
                return
            with open_unchanged(source, stamp) as file:
                obstore.put(self._inner, path, file, mode=mode, attributes=attributes)

    def _put_large(self, path: str, source: Path, sha256: str, stamp: FileStamp | None) -> None:
        require_possible(self.place(path), source.stat().st_size)
        try:
            with self._translating(path):
                put_large(self._inner, path, source, sha256, stamp)
        except MissingFileError as e:
            # Whoever publishes the same bytes has just finished, and removed this run's part.
            raise taken(self.place(path)) from e
        if sha256 and self._has_own_metadata:
            with suppress(BaseError):  # the file is there; without a note it is read when it is asked for
                note_hash(self._inner, path, sha256)

    def swap(self, name: str, data: bytes, e_tag: str | None) -> str | None:
        """Replace a small file if it still has that tag, and return the new one."""
        mode: Any = "create" if e_tag is None else {"e_tag": e_tag}
        attributes = self._attributes(name)
        try:
            with self._translating(name):
                done = obstore.put(self._inner, self._checked(name), data, mode=mode, attributes=attributes)
                return done["e_tag"]
        except (TakenError, MissingFileError) as e:
            raise outdated(self.place(name)) from e

    def delete(self, name: str) -> None:
        """Remove a file; nothing where there is none."""
        path = self._checked(name)
        with suppress(MissingFileError), self._translating(name):
            obstore.delete(self._inner, path)
        if self._has_own_metadata:
            forget_hash(self._inner, path)

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
            raise taken(place) from e
        except PreconditionError as e:
            raise outdated(place) from e
        except (BaseError, FileNotFoundError) as e:
            raise translated(place, e, reads=reads, has_user=self._has_user) from e


def _stored(meta: Any, sha256: str = "", name: str = "") -> StoredFile:
    return StoredFile(name or str(meta["path"]), meta["size"], meta["e_tag"], meta["last_modified"], sha256)
