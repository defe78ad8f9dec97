"""Packs members, using a cache that stores packed bytes for later builds.

A file that changed a moment ago is treated as unknown, because it could change again without leaving a trace. Git's
documentation calls such a file "racily clean".

A member's key is the hash of its bytes after all edits. The cache stores the packed bytes under that hash, the codec,
its level, and its identity. A member that is packed in blocks has an entry that lists its blocks. The blocks of a
sequence are also stored under the hash of their own bytes. Therefore, a change in one part of a tar doesn't invalidate
the other blocks.

The cache also stores the hashes of unchanged files, keyed by the files' stamps, so that these files don't need to be
read again. Packing yields the hash at no extra cost. Therefore, a large member without a stored hash is read to compute
its hash only if a member of the same size was packed before.
"""

from __future__ import annotations

import hashlib
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core import patch
from rocwheel.core.hashing import source_hash
from rocwheel.core.reading import is_settled
from rocwheel.wheels import content as contents
from rocwheel.wheels.content import (
    BytesContent,
    Digest,
    EditedContent,
    FileContent,
    PatchedContent,
    SequenceContent,
    digest_bytes,
    digest_content,
)
from rocwheel.wheels.member_compression import (
    BLOCK,
    DEFLATED,
    STORED,
    Packed,
    PackedBlock,
    StreamFormat,
    block_ranges,
    codec_identity,
    compress_bytes,
    deflate_block,
    deflate_part,
    expected_size,
    history_of,
    is_worthwhile,
    join,
    pack_bytes,
    pack_whole,
    piece_ranges,
    store_block,
    store_whole,
    xz_identity,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.core.cache import CacheEntry, EntryStore
    from rocwheel.core.patch import FilePatch
    from rocwheel.core.reading import FileRange
    from rocwheel.wheels.content import Content


_encode = msgspec.msgpack.encode


class _UnknownError(Exception):
    """An error for bytes that can't be identified without reading them."""


def origin_of(content: Content) -> bytes | None:
    """Return a value that changes if the content's bytes change, or if the code that produces them changes.

    Returns `None` for unnamed files, new files, and large patches, for which there is no such value.
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
    return source_hash(Path(contents.__file__)) + source_hash(Path(patch.__file__))


def _describe(content: Content, now: int) -> Iterator[bytes]:
    """Yield a description of the content. If the bytes differ, the descriptions also differ."""
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
    """Return whether a file's stamp identifies its bytes at the time ``now``, in nanoseconds since 1970."""
    # A placeholder's stamp says nothing about the remote file's bytes.
    return source.stamp is not None and is_settled(source.stamp, now) and not source.is_remote


def _describe_range(source: FileRange, now: int) -> tuple[object, ...]:
    stamp = source.stamp
    if stamp is None or not is_known(source, now):
        raise _UnknownError
    # A new hard link changes `changed`, but not the bytes. The hash detects that nothing else changed.
    return stamp.device, stamp.inode, stamp.size, stamp.modified, stamp.changed, source.offset, source.size


def _describe_patch(changes: FilePatch) -> Iterator[object]:
    yield changes.size
    for replacement in changes.replacements:
        if not isinstance(replacement.data, bytes):
            raise _UnknownError
        yield (replacement.start, replacement.stop, replacement.source, replacement.data)


_NOTED = 256 << 10
"""The minimum size in bytes of content whose hash is stored. For fewer bytes, reading costs no more than a lookup."""


class KnownMember(msgspec.Struct, frozen=True, array_like=True):
    """A member's cache entry: its digest, its ZIP method, and the keys of its blocks, if any."""

    digest: Digest
    method: int = DEFLATED
    blocks: tuple[bytes, ...] = ()


class MemberCache:
    """Packs members at a single compression level, with a store as its cache.

    Members larger than ``whole_limit`` bytes are packed in blocks.
    """

    def __init__(self, store: EntryStore, level: int, whole_limit: int) -> None:
        self._store = store
        self._level = level
        self._whole_limit = whole_limit

    def digest_of(self, content: Content) -> Digest | None:
        """Return the content's digest, found by its files' stamps, or `None` if the content must be read."""
        entry = self._store.get(key) if (key := _note_key(content)) else None
        return _decode(entry).digest if entry else None

    def digest_of_edited(self, content: EditedContent) -> Digest | None:
        """Return an edited file's digest, found by its edit and the file's hash, and set that hash on ``content``."""
        content.source_sha256 = digest_content(FileContent(content.source)).sha256
        entry = self._store.get(_edited_key(content))
        return _decode(entry).digest if entry else None

    def may_have(self, content: Content) -> bool:
        """Return whether large content should be hashed because it may already be packed in the cache."""
        return not isinstance(content, SequenceContent) and self._store.has(self._size_key(content.size))

    def find(self, content: Content, digest: Digest) -> KnownMember | None:
        """Return the cached member for content with this digest, or `None` if the cache doesn't have it."""
        if self._store.has(self._whole_key(digest)):
            return KnownMember(digest)
        entry = self._store.get(self._blocks_key(content, digest))
        return known if entry and (known := _decode(entry)).blocks else None

    def note(self, content: Content, digest: Digest) -> None:
        """Store the content's digest under its files' stamps, and under the hash of the unedited file."""
        keys = [_note_key(content)]
        if isinstance(content, EditedContent) and content.source_sha256:
            keys.append(_edited_key(content))
        for key in keys:
            if key and not self._store.has(key):
                self._store.put(key, _encode(KnownMember(digest)))

    def keep_blocks(self, content: Content, method: int, digest: Digest, blocks: Sequence[bytes]) -> None:
        """Store the block keys for content with this digest, and record that content of this size was packed."""
        facts = _encode(KnownMember(digest, method, tuple(blocks)))
        self._store.put(self._blocks_key(content, digest), facts)
        self._store.put(self._size_key(content.size), b"")
        self.note(content, digest)

    def pack_whole(self, content: Content) -> Packed:
        """Pack content like `rocwheel.wheels.member_compression.pack_whole`, using the cache."""
        with content.open(0, content.size) as buffers:
            data = join(buffers)
        digest = digest_bytes(data)
        self.note(content, digest)
        if entry := self._store.get(self._whole_key(digest)):
            method = _decode(entry).method
            if method == STORED:
                return Packed(data, method, digest, is_kept=True)
            return Packed(entry.data, method, digest, is_kept=True, sha256=entry.sha256)
        return self._keep(content, pack_bytes(data, digest, self._level))

    def recall_whole(self, content: Content, digest: Digest) -> Packed:
        """Return the packed form of content with this digest; pack it again if the entry is damaged or missing."""
        entry = self._store.get(self._whole_key(digest))
        if entry is None:
            # If sampling chose to store, deflating may save a little, but would produce different bytes than before.
            is_deflated = is_worthwhile(content.size, expected_size(content))
            return self._keep(content, pack_whole(content, self._level) if is_deflated else store_whole(content))
        method = _decode(entry).method
        if method == STORED and not entry.data:
            return msgspec.structs.replace(store_whole(content), is_kept=True)
        return Packed(entry.data, method, digest, is_kept=True, sha256=entry.sha256)

    def store_edited(self, content: EditedContent) -> Packed:
        """Return an edited file uncompressed, and cache it, because the edit costs more than the disk space."""
        packed = store_whole(content)
        self.note(content, packed.digest)
        return self._keep(content, packed)

    def _keep(self, content: Content, packed: Packed) -> Packed:
        # If deflate doesn't shrink a file, keep the bytes only if the edit is costly.
        is_costly = isinstance(content, EditedContent) and content.is_costly
        key, facts = self._whole_key(packed.digest), _encode(KnownMember(packed.digest, packed.method))
        if packed.method == STORED and not is_costly:
            self._store.put(key, facts)
            return packed
        return msgspec.structs.replace(packed, sha256=self._put(key, packed.data, facts))

    def deflate_block(self, content: Content, start: int, stop: int) -> PackedBlock:
        """Deflate a block like `rocwheel.wheels.member_compression.deflate_block`, using the cache."""
        if isinstance(content, SequenceContent):
            return self._deflate_piece(content, start, stop)
        return self._keep_block(deflate_block(content, start, stop, self._level))

    def store_block(self, content: EditedContent, start: int, stop: int) -> PackedBlock:
        """Return a block of an edited file uncompressed, and cache it."""
        return self._keep_block(store_block(content, start, stop))

    def _keep_block(self, block: PackedBlock) -> PackedBlock:
        packed_hash = hashlib.sha256(block.data).digest()
        key = _key("block", packed_hash)
        self._store.put_hashed(key, b"", block.data, packed_hash)
        return msgspec.structs.replace(block, key=key, sha256=packed_hash)

    def _deflate_piece(self, content: Content, start: int, stop: int) -> PackedBlock:
        """Deflate a piece of a sequence.

        The key is the hash of its bytes and of the bytes that prime the compressor.
        """
        history = history_of(start)
        is_last = stop == content.size
        with content.open(start - history, stop) as buffers:
            data = memoryview(join(buffers))
        key = _key("piece", codec_identity(), self._level, history, is_last, hashlib.sha256(data).digest())
        entry = self._store.get(key)
        if entry:
            return PackedBlock(entry.data, data[history:], data[:history], key, is_kept=True, sha256=entry.sha256)
        packed = deflate_part(data, history, self._level, is_last=is_last)
        sha256 = self._put(key, packed)
        return PackedBlock(packed, data[history:], data[:history], key, sha256=sha256)

    def recall_block(self, key: bytes, method: int, content: Content, start: int, stop: int) -> PackedBlock:
        """Return the block with this key. If the entry is damaged or missing, pack the block again."""
        if entry := self._store.get(key):
            return PackedBlock(entry.data, b"", key=key, is_kept=True, sha256=entry.sha256)
        is_stored = method == STORED
        block = store_block(content, start, stop) if is_stored else deflate_block(content, start, stop, self._level)
        return msgspec.structs.replace(block, sha256=self._put(key, block.data))

    def compress_piece(self, content: Content, start: int, stop: int, format_: StreamFormat) -> PackedBlock:
        """Compress a piece like `rocwheel.wheels.member_compression.compress_piece`, using the cache."""
        with content.open(start, stop) as buffers:
            data = memoryview(join(buffers))
        identity = xz_identity() if format_ == "xz" else codec_identity()
        key = _key("stream", identity, format_, hashlib.sha256(data).digest())
        if entry := self._store.get(key):
            return PackedBlock(entry.data, b"", key=key, is_kept=True, sha256=entry.sha256)
        packed = compress_bytes([data], format_)
        return PackedBlock(packed, b"", key=key, sha256=self._put(key, packed))

    def _put(self, key: bytes, packed: bytes | bytearray | memoryview, facts: bytes = b"") -> bytes:
        """Store packed bytes, and return their hash."""
        sha256 = hashlib.sha256(packed).digest()
        self._store.put_hashed(key, facts, packed, sha256)
        return sha256

    def _whole_key(self, digest: Digest) -> bytes:
        return _key("whole", codec_identity(), self._level, digest.sha256)

    def _blocks_key(self, content: Content, digest: Digest) -> bytes:
        cuts = hashlib.sha256(repr(known_ranges(content, digest)).encode()).digest()
        return _key("blocks", codec_identity(), self._level, cuts, digest.sha256)

    def _size_key(self, size: int) -> bytes:
        return _key("size", codec_identity(), self._level, size)


def known_ranges(content: Content, digest: Digest) -> list[tuple[int, int]]:
    """Return the block ranges for content with this digest, without planning an edit."""
    is_sequence = isinstance(content, SequenceContent)
    return piece_ranges(content, BLOCK) if is_sequence else block_ranges(digest.size, BLOCK)


def _edited_key(content: EditedContent) -> bytes:
    return _key("edited", content.source_sha256, content.edit)


def _note_key(content: Content) -> bytes | None:
    if isinstance(content, BytesContent) or (not isinstance(content, EditedContent) and content.size < _NOTED):
        return None
    origin = origin_of(content)
    return _key("note", origin) if origin else None


def _key(*parts: str | bytes | int) -> bytes:
    return hashlib.sha256(_encode(parts)).digest()


# Create the decoder only once. A run crashed when several threads prepared the type at the same time.
_DECODER = msgspec.msgpack.Decoder(KnownMember)


def _decode(entry: CacheEntry) -> KnownMember:
    return _DECODER.decode(entry.facts)
