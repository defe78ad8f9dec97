"""The identity of a content's bytes without reading them: the stamps of its files, and the edits on them.

A file that was changed only just now counts as unknown, since it could be written to again without a trace (git's
documentation calls it "racily clean").
"""

from __future__ import annotations

import hashlib
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core import patch
from rocwheel.core.python import source_hash
from rocwheel.core.reading import is_settled
from rocwheel.core.remote_placeholders import source_at
from rocwheel.distributions import content as contents
from rocwheel.distributions.content.content import (
    BytesContent,
    EditedContent,
    FileContent,
    PatchedContent,
    SequenceContent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.core.patch import FilePatch
    from rocwheel.core.reading import FileRange
    from rocwheel.distributions.content.content import Content

__all__ = ["is_known", "origin_of"]

_encode = msgspec.msgpack.encode


class _UnknownError(Exception):
    """Only reading tells which bytes it is about."""


def origin_of(content: Content) -> bytes | None:
    """Return a value that differs when the content has other bytes, or when other code makes them.

    None where that can't be known: for nameless files, new ones and large patches.
    """
    hasher = hashlib.sha256(_code_identity())
    try:
        for part in _describe(content, time.time_ns()):
            hasher.update(part)
    except _UnknownError:
        return None
    return hasher.digest()


@cache
def _code_identity() -> bytes:
    return source_hash(Path(contents.__file__).parent) + source_hash(Path(patch.__file__))


def _describe(content: Content, now: int) -> Iterator[bytes]:
    """Yield the description of a content, no two of which are alike where the bytes are not."""
    if isinstance(content, BytesContent):
        yield _encode(["bytes", hashlib.sha256(content.data).digest()])
    elif isinstance(content, FileContent):
        yield _encode(["file", *_describe_range(content.source, now)])
    elif isinstance(content, PatchedContent):
        yield _encode(["patched", *_describe_range(content.source, now), *_describe_patch(content.patch)])
    elif isinstance(content, EditedContent):
        yield _encode(["edited", *_describe_range(content.source, now), content.edit])
    elif isinstance(content, SequenceContent):
        yield _encode(["sequence", len(content.parts)])
        for part in content.parts:
            yield from _describe(part, now)
    else:
        raise _UnknownError


def is_known(source: FileRange, now: int) -> bool:
    """Return whether the stamp of a file tells ``now``, in nanoseconds since 1970, which bytes it has."""
    # The stamp of a file that stands for one elsewhere says nothing of the bytes there.
    return source.stamp is not None and is_settled(source.stamp, now) and not source_at(source.path)


def _describe_range(source: FileRange, now: int) -> tuple[object, ...]:
    stamp = source.stamp
    if stamp is None or not is_known(source, now):
        raise _UnknownError
    # Names come and go without a change of bytes, but with one of `changed`; that is left to the hash.
    return stamp.device, stamp.inode, stamp.size, stamp.modified, stamp.changed, source.offset, source.size


def _describe_patch(changes: FilePatch) -> Iterator[object]:
    yield changes.size
    for replacement in changes.replacements:
        if not isinstance(replacement.data, bytes):
            raise _UnknownError
        yield (replacement.start, replacement.stop, replacement.source, replacement.data)
