"""Files too large for one request: sent in parts, under another name until they are whole, with a note of their hash.

A request that copies takes no metadata along, and parts can't be told not to replace a file: so the hash is noted in a
small file beside, with the tag of the file that it is for.
"""

from __future__ import annotations

import posixpath
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec
import obstore
from obstore.exceptions import BaseError

from rocwheel.foundation.files.reading.regular_files import open_unchanged
from rocwheel.foundation.parsing.decoding import decode_json
from rocwheel.stores.errors import StoreError
from rocwheel.stores.names import HASHES, UPLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocwheel.foundation.files.reading.file_stamp import FileStamp

__all__ = ["forget_hash", "is_note", "note_hash", "noted_hash", "put_large", "require_possible"]

_PIECE = 8 << 20
_LARGEST = 5 << 30
"""Bytes that one request of S3 copies, and only a copy of one request can be told not to replace a file."""


class _Note(msgspec.Struct, frozen=True):
    """What is known of a file, as long as it has that tag."""

    e_tag: str
    sha256: str


def require_possible(place: str, size: int) -> None:
    """Raise `StoreError` for a file that is too large to get its name, before any of it is sent."""
    if size > _LARGEST:
        found = f"can't be stored with {size} bytes without the danger of replacing another file"
        raise StoreError(place, found, expected="at most 5 GiB", remedy="Make it of several files, such as by family.")


def put_large(inner: Any, path: str, source: Path, sha256: str, stamp: FileStamp | None = None) -> None:
    """Store a file that is not there yet; raises what obstore raises, and `ChangedFileError` as `open_unchanged` does.

    Each run has a part of its own. What killed runs have left of the same bytes goes when these have their name.
    """
    part = f"{UPLOADS}/{sha256}.{uuid.uuid4().hex}" if sha256 else f"{UPLOADS}/{uuid.uuid4().hex}"
    with _begun(inner, part):
        with open_unchanged(source, stamp) as file:
            obstore.put(inner, part, file, mode="overwrite", use_multipart=True, chunk_size=_PIECE)
        obstore.copy(inner, part, path, overwrite=False)
    if sha256:
        _remove_leftovers(inner, sha256)


@contextmanager
def _begun(inner: Any, part: str) -> Iterator[None]:
    """Note that a part is under way: the parts of an upload that nobody ends are in no listing."""
    note = f"{part}.begun"
    try:
        obstore.put(inner, note, b"", mode="overwrite")
        yield
    finally:
        for name in (part, note):
            with suppress(BaseError, FileNotFoundError):
                obstore.delete(inner, name)


def _remove_leftovers(inner: Any, sha256: str) -> None:
    """Remove the parts of other runs; those that are still under way find the file there."""
    with suppress(BaseError, FileNotFoundError):
        found = [str(meta["path"]) for page in obstore.list(inner, UPLOADS) for meta in page]
        for name in found:
            if name.startswith(f"{UPLOADS}/{sha256}"):
                obstore.delete(inner, name)


def note_hash(inner: Any, path: str, sha256: str) -> None:
    """Note the hash of a file that has just been stored; raises what obstore raises."""
    e_tag = obstore.head(inner, path)["e_tag"]
    if e_tag:
        obstore.put(inner, _note_name(path), msgspec.json.encode(_Note(e_tag, sha256)), mode="overwrite")


def noted_hash(inner: Any, path: str, e_tag: str | None) -> str:
    """Return the hash that was noted of a file that has this tag; empty where none was, or of other bytes."""
    with suppress(BaseError, FileNotFoundError, msgspec.DecodeError):
        note = decode_json(bytes(obstore.get(inner, _note_name(path)).bytes()), _Note)
        return note.sha256 if note.e_tag == e_tag else ""
    return ""


def forget_hash(inner: Any, path: str) -> None:
    """Remove the note of a file, if there is one."""
    with suppress(BaseError, FileNotFoundError):
        obstore.delete(inner, _note_name(path))


def is_note(name: str) -> bool:
    """Return whether a file is such a note."""
    return posixpath.basename(posixpath.dirname(name)) == HASHES


def _note_name(path: str) -> str:
    return posixpath.join(posixpath.dirname(path), HASHES, posixpath.basename(path))
