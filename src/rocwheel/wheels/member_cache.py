"""Packing that takes what was packed before from a cache, and keeps what it packs.

A file that was changed only just now counts as unknown, since it could be written to again without a trace (git's
documentation calls it "racily clean").

A member is known by the hash of its bytes after all edits. Its packed bytes are kept under that hash, the codec, the
level and what identifies the codec. A member in blocks has an entry that lists those of its blocks; the blocks of a
sequence are known by their own bytes as well, so that a change in a tar leaves the others known.

The hash of what comes from unchanged files is noted by their stamps, so that such files need not be read. It is known
after the packing, at no cost. So a large member without a note is read for its hash first only if one of its size was
packed before.
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
    return source_hash(Path(contents.__file__)) + source_hash(Path(patch.__file__))


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
    return source.stamp is not None and is_settled(source.stamp, now) and not source.is_remote


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


_NOTED = 256 << 10
"""Contents from this size on, in bytes, have a note of their hash: to read smaller ones costs no more than the note."""


class KnownMember(msgspec.Struct, frozen=True, array_like=True):
    """What an entry says of a member: the digest of its bytes, the ZIP method, and the keys of its blocks, if any."""

    digest: Digest
    method: int = DEFLATED
    blocks: tuple[bytes, ...] = ()


class MemberCache:
    """Packs at one level with the help of a store. Members above ``whole_limit`` bytes are packed in blocks."""

    def __init__(self, store: EntryStore, level: int, whole_limit: int) -> None:
        self._store = store
        self._level = level
        self._whole_limit = whole_limit

    def digest_of(self, content: Content) -> Digest | None:
        """Return the digest of a content by the stamps of its files, none if it has to be read for that."""
        entry = self._store.get(key) if (key := _note_key(content)) else None
        return _decode(entry).digest if entry else None

    def digest_of_edited(self, content: EditedContent) -> Digest | None:
        """Return the digest of an edited file by the file's hash, which is told to it, and its edit."""
        content.source_sha256 = digest_content(FileContent(content.source)).sha256
        entry = self._store.get(_edited_key(content))
        return _decode(entry).digest if entry else None

    def may_have(self, content: Content) -> bool:
        """Return whether reading a large content for its hash may spare its packing."""
        return not isinstance(content, SequenceContent) and self._store.has(self._size_key(content.size))

    def find(self, content: Content, digest: Digest) -> KnownMember | None:
        """Return the member that a content of this digest was packed as, if the cache has it."""
        if self._store.has(self._whole_key(digest)):
            return KnownMember(digest)
        entry = self._store.get(self._blocks_key(content, digest))
        return known if entry and (known := _decode(entry)).blocks else None

    def note(self, content: Content, digest: Digest) -> None:
        """Keep the digest of a content that was read, by the stamps of its files, and by the hash before an edit."""
        keys = [_note_key(content)]
        if isinstance(content, EditedContent) and content.source_sha256:
            keys.append(_edited_key(content))
        for key in keys:
            if key and not self._store.has(key):
                self._store.put(key, _encode(KnownMember(digest)))

    def keep_blocks(self, content: Content, method: int, digest: Digest, blocks: Sequence[bytes]) -> None:
        """Keep which blocks make a content of this digest, and that one of its size is known."""
        facts = _encode(KnownMember(digest, method, tuple(blocks)))
        self._store.put(self._blocks_key(content, digest), facts)
        self._store.put(self._size_key(content.size), b"")
        self.note(content, digest)

    def pack_whole(self, content: Content) -> Packed:
        """Do what `rocwheel.wheels.member_compression.pack_whole` does, unless the cache has it."""
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
        """Return what a content of this digest was packed as; it is packed again if the entry is damaged or gone."""
        entry = self._store.get(self._whole_key(digest))
        if entry is None:
            # What samples had let be stored may gain a little by being deflated: other bytes than before.
            is_deflated = is_worthwhile(content.size, expected_size(content))
            return self._keep(content, pack_whole(content, self._level) if is_deflated else store_whole(content))
        method = _decode(entry).method
        if method == STORED and not entry.data:
            return msgspec.structs.replace(store_whole(content), is_kept=True)
        return Packed(entry.data, method, digest, is_kept=True, sha256=entry.sha256)

    def store_edited(self, content: EditedContent) -> Packed:
        """Return an edited file as it is, and keep it, as the edit costs more than its place."""
        packed = store_whole(content)
        self.note(content, packed.digest)
        return self._keep(content, packed)

    def _keep(self, content: Content, packed: Packed) -> Packed:
        # Of a file that deflate doesn't shrink, that alone is worth its place.
        is_costly = isinstance(content, EditedContent) and content.is_costly
        key, facts = self._whole_key(packed.digest), _encode(KnownMember(packed.digest, packed.method))
        if packed.method == STORED and not is_costly:
            self._store.put(key, facts)
            return packed
        return msgspec.structs.replace(packed, sha256=self._put(key, packed.data, facts))

    def deflate_block(self, content: Content, start: int, stop: int) -> PackedBlock:
        """Do what `rocwheel.wheels.member_compression.deflate_block` does, unless the cache has it."""
        if isinstance(content, SequenceContent):
            return self._deflate_piece(content, start, stop)
        return self._keep_block(deflate_block(content, start, stop, self._level))

    def store_block(self, content: EditedContent, start: int, stop: int) -> PackedBlock:
        """Return a block of an edited file as it is, and keep it."""
        return self._keep_block(store_block(content, start, stop))

    def _keep_block(self, block: PackedBlock) -> PackedBlock:
        packed_hash = hashlib.sha256(block.data).digest()
        key = _key("block", packed_hash)
        self._store.put_hashed(key, b"", block.data, packed_hash)
        return msgspec.structs.replace(block, key=key, sha256=packed_hash)

    def _deflate_piece(self, content: Content, start: int, stop: int) -> PackedBlock:
        """Deflate a piece of a sequence, which is known by its bytes and those that prime the compressor."""
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
        """Return a block by its key; it is packed again if the entry is damaged or gone."""
        if entry := self._store.get(key):
            return PackedBlock(entry.data, b"", key=key, is_kept=True, sha256=entry.sha256)
        is_stored = method == STORED
        block = store_block(content, start, stop) if is_stored else deflate_block(content, start, stop, self._level)
        return msgspec.structs.replace(block, sha256=self._put(key, block.data))

    def compress_piece(self, content: Content, start: int, stop: int, format_: StreamFormat) -> PackedBlock:
        """Do what `rocwheel.wheels.member_compression.compress_piece` does, unless the cache has it."""
        with content.open(start, stop) as buffers:
            data = memoryview(join(buffers))
        identity = xz_identity() if format_ == "xz" else codec_identity()
        key = _key("stream", identity, format_, hashlib.sha256(data).digest())
        if entry := self._store.get(key):
            return PackedBlock(entry.data, b"", key=key, is_kept=True, sha256=entry.sha256)
        packed = compress_bytes([data], format_)
        return PackedBlock(packed, b"", key=key, sha256=self._put(key, packed))

    def _put(self, key: bytes, packed: bytes | bytearray | memoryview, facts: bytes = b"") -> bytes:
        """Keep packed bytes, and return their hash."""
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
    """Return where a content of this digest is cut into blocks; an edit need not be planned for that."""
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


def _decode(entry: CacheEntry) -> KnownMember:
    return msgspec.msgpack.decode(entry.facts, type=KnownMember)
