"""A folder as a store, for ``file://`` URLs and plain paths."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.core.errors import limit_remedy, read_error
from rocwheel.core.messages import absent_remedy
from rocwheel.core.progress import SILENT
from rocwheel.core.reading import open_regular, open_unchanged
from rocwheel.core.scratch import is_scratch, locked_folder, remove_abandoned
from rocwheel.core.writing import AtomicFile
from rocwheel.stores.store import (
    BrokenTransferError,
    ForbiddenError,
    LoadedFile,
    MissingFileError,
    MissingStoreError,
    StoredFile,
    StoreError,
    TakenError,
    checked_name,
    is_same_tag,
    outdated,
    taken,
)
from rocwheel.stores.urls import shown_url_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from rocwheel.core.reading import FileStamp

_SILENCE = 1.0
"""The time that a writer waits for another writer before it reports the wait, in seconds."""

_PIECE = 1 << 20

logger = logging.getLogger(__name__)


class FolderStore:
    """A folder, which doesn't have to exist before the first write. Implements `rocwheel.stores.store.Store`."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.folder = folder
        self.url = url or folder.absolute().as_uri()
        self._is_warned = False
        self._scratch: dict[Path, tuple[str, ...]] = {}

    @property
    def is_folder(self) -> bool:
        """Always ``True``, because this store is a folder on this machine."""
        return True

    def place(self, name: str) -> str:
        """Return the URL of a file as shown in messages."""
        return shown_url_below(self.url, name)

    def list(self, prefix: str = "") -> Iterator[StoredFile]:
        """Yield the files in and below the folder ``prefix``, except unfinished files.

        Raises `MissingStoreError` if the folder doesn't exist.
        """
        if not self.folder.is_dir():
            remedy = absent_remedy(self.url) or "Correct the path."
            raise MissingStoreError(self.url, "is not a folder", remedy=remedy)
        top = self._path(prefix) if prefix else self.folder
        found: list[Path] = []
        for root, _, names in os.walk(top, onerror=self._refuse_listing):
            found += [Path(root, name) for name in names if not is_scratch(name)]
            if scratch := tuple(filter(is_scratch, names)):
                self._scratch[Path(root)] = scratch
        for path in sorted(found, key=lambda path: path.relative_to(self.folder).as_posix()):
            with suppress(FileNotFoundError):  # the file is gone by now, or is a broken symlink
                yield _stored(path.relative_to(self.folder).as_posix(), path.stat())

    def tidy(self) -> None:
        """Remove the unfinished files of killed processes from the listed folders."""
        for folder, names in self._scratch.items():
            remove_abandoned(folder, names)
        self._scratch.clear()

    def head(self, name: str) -> StoredFile:
        """Return the file system's information about a file."""
        with self._reporting(name):
            path = self._path(name)
            if path.is_dir():
                raise FileNotFoundError
            return _stored(name, path.stat())

    def load(self, name: str) -> LoadedFile:
        """Return the bytes of a small file with its tag."""
        with self._reporting(name), open_regular(self._path(name)) as file:
            tag = _tag(os.fstat(file.fileno()))
            return LoadedFile(file.read(), tag)

    def read(self, name: str) -> bytes:
        """Return the bytes of a small file."""
        return self.load(name).data

    def read_range(self, name: str, start: int, stop: int) -> bytes:
        """Return the bytes from ``start`` up to, but not including, ``stop``."""
        with self._reporting(name), open_regular(self._path(name)) as file:
            file.seek(start)
            return file.read(max(stop - start, 0))

    def stream(self, name: str, start: int = 0, *, e_tag: str | None = None) -> Iterator[bytes]:
        """Yield the bytes from ``start`` in chunks."""
        with self._reporting(name), open_unchanged(self._path(name)) as file:
            if not is_same_tag(e_tag, _tag(os.fstat(file.fileno()))):
                raise outdated(self.place(name))
            file.seek(start)
            while piece := file.read(_PIECE):
                yield piece

    def put(
        self,
        name: str,
        source: bytes | Path,
        *,
        create: bool = True,
        sha256: str = "",
        stamp: FileStamp | None = None,
        advance: Callable[[int], object] = SILENT.advance,
    ) -> None:
        """Copy a file into the folder. ``sha256`` is ignored because a folder can't store it."""
        del sha256
        target = self._path(name)
        if create and os.path.lexists(target):  # check before anything is copied
            raise taken(self.place(name))
        with self._new_file(name) as file:
            _copy(source, stamp, file, advance)
            with self._locked(target):
                self._commit(name, file, create=create)

    def swap(self, name: str, data: bytes, e_tag: str | None) -> str | None:
        """Replace a small file if it still has the tag ``e_tag``, and return the new tag."""
        target = self._path(name)
        with self._new_file(name) as file:
            file.write(data)
            with self._locked(target):
                if self._tag_at(name) != e_tag:
                    raise outdated(self.place(name))
                try:
                    self._commit(name, file, create=e_tag is None)
                except TakenError as e:
                    raise outdated(self.place(name)) from e
                return self._tag_at(name)

    def delete(self, name: str) -> None:
        """Remove a file if it exists."""
        with self._reporting(name), suppress(FileNotFoundError, NotADirectoryError):
            self._path(name).unlink()

    def _tag_at(self, name: str) -> str | None:
        """Return the tag of a file, or `None` if the file doesn't exist."""
        with self._reporting(name), suppress(FileNotFoundError, NotADirectoryError):
            return _tag(self._path(name).stat())
        return None

    def _path(self, name: str) -> Path:
        return self.folder / checked_name(self.url, name)

    @contextmanager
    def _new_file(self, name: str) -> Iterator[AtomicFile]:
        file = AtomicFile(self._path(name))
        try:
            yield file
        finally:
            file.discard()

    def _locked(self, target: Path) -> AbstractContextManager[None]:
        """Lock the folder in which a file is given its final name. Stores in parent folders share the lock."""
        return locked_folder(target.parent, silence=_SILENCE, on_no_lock=self._warn)

    def _warn(self, error: OSError) -> None:
        if not self._is_warned:  # some network file systems don't support locks
            text = "%s: can't be locked (%s); make sure that only one run publishes there at a time"
            logger.warning(text, self.url, error.strerror)
        self._is_warned = True

    def _commit(self, name: str, file: AtomicFile, *, create: bool) -> None:
        """Give a file its final name. Even without locks, the file system itself rejects a duplicate name."""
        if not create:
            file.commit()
        elif not file.commit_new():
            raise taken(self.place(name))

    def _refuse_listing(self, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise _error(self.url, error) from error

    @contextmanager
    def _reporting(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as e:
            raise _error(self.place(name), e) from e


def _copy(source: bytes | Path, stamp: FileStamp | None, file: AtomicFile, advance: Callable[[int], object]) -> None:
    if isinstance(source, bytes):
        file.write(source)
        return
    try:
        with open_unchanged(source, stamp) as reader:
            while piece := reader.read(_PIECE):
                file.write(piece)
                advance(len(piece))
    except OSError as e:  # the source raises these errors; writing the file raises its own
        raise read_error(source, e) from e


def _stored(name: str, status: os.stat_result) -> StoredFile:
    modified = datetime.fromtimestamp(status.st_mtime, timezone.utc)
    return StoredFile(name, status.st_size, _tag(status), modified)


def _tag(status: os.stat_result) -> str:
    """Return a value that changes when a file is modified or replaced, because a replacement has another inode."""
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"


def _error(place: str, error: OSError) -> StoreError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return MissingFileError(place, "does not exist", remedy="Correct the name.")
    if isinstance(error, PermissionError):
        return ForbiddenError(place, f"can't be accessed ({error.strerror})", remedy="Check its permissions.")
    found = f"can't be read or written ({error.strerror or error})"
    return BrokenTransferError(place, found, remedy=limit_remedy(error) or "Check the disk.")
