"""Packing that takes what was packed before from a cache, and keeps what it packs.

A member is known by the hash of its bytes after all edits. Its packed bytes are kept under that hash, the codec, the
level and what identifies the codec. A member in blocks has an entry that lists those of its blocks; the blocks of a
sequence are known by their own bytes as well, so that a change in a tar leaves the others known.

The hash of what comes from unchanged files is noted by their stamps, so that such files need not be read. It is known
after the packing, at no cost. So a large member without a note is read for its hash first only if one of its size was
packed before.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.content.content import BytesContent, EditedContent, FileContent, SequenceContent
from rocwheel.distributions.content.digest import Digest, digest_bytes, digest_content
from rocwheel.distributions.packing.codec_identity import codec_identity, xz_identity
from rocwheel.distributions.packing.compression import (
    BLOCK,
    DEFLATED,
    STORED,
    Packed,
    PackedBlock,
    deflate_block,
    expected_size,
    history_of,
    is_worthwhile,
    join,
    pack_bytes,
    pack_whole,
    store_block,
    store_whole,
)
from rocwheel.distributions.packing.cuts import block_ranges, piece_ranges
from rocwheel.distributions.packing.deflate_part import deflate_part
from rocwheel.distributions.packing.origin import origin_of
from rocwheel.distributions.packing.stream_codec import StreamFormat, compress_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.core.cache import Entry, Store
    from rocwheel.distributions.content.content import Content

__all__ = ["KnownMember", "MemberCache", "known_ranges"]

_NOTED = 256 << 10
"""Contents from this size on, in bytes, have a note of their hash: to read smaller ones costs no more than the note."""


class _Facts(msgspec.Struct, frozen=True, array_like=True):
    """What an entry says of a member: the digest of its bytes, the ZIP method, and the keys of its blocks."""

    digest: Digest
    method: int = DEFLATED
    blocks: tuple[bytes, ...] = ()


class KnownMember(msgspec.Struct, frozen=True):
    """A member that is in the cache, and the keys of its blocks, if it is packed in blocks."""

    digest: Digest
    method: int = DEFLATED
    blocks: tuple[bytes, ...] = ()


class MemberCache:
    """Packs at one level with the help of a store. Members above ``whole_limit`` bytes are packed in blocks."""

    def __init__(self, store: Store, level: int, whole_limit: int) -> None:
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
        return KnownMember(digest, facts.method, facts.blocks) if entry and (facts := _decode(entry)).blocks else None

    def note(self, content: Content, digest: Digest) -> None:
        """Keep the digest of a content that was read, by the stamps of its files, and by the hash before an edit."""
        keys = [_note_key(content)]
        if isinstance(content, EditedContent) and content.source_sha256:
            keys.append(_edited_key(content))
        for key in keys:
            if key and not self._store.has(key):
                self._store.put(key, _encode(_Facts(digest)))

    def keep_blocks(self, content: Content, method: int, digest: Digest, blocks: Sequence[bytes]) -> None:
        """Keep which blocks make a content of this digest, and that one of its size is known."""
        facts = _encode(_Facts(digest, method, tuple(blocks)))
        self._store.put(self._blocks_key(content, digest), facts)
        self._store.put(self._size_key(content.size), b"")
        self.note(content, digest)

    def pack_whole(self, content: Content) -> Packed:
        """Do what `rocwheel.distributions.packing.compression.pack_whole` does, unless the cache has it."""
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
        key, facts = self._whole_key(packed.digest), _encode(_Facts(packed.digest, packed.method))
        if packed.method == STORED and not is_costly:
            self._store.put(key, facts)
            return packed
        return msgspec.structs.replace(packed, sha256=self._put(key, packed.data, facts))

    def deflate_block(self, content: Content, start: int, stop: int) -> PackedBlock:
        """Do what `rocwheel.distributions.packing.compression.deflate_block` does, unless the cache has it."""
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
        """Do what `rocwheel.distributions.packing.stream_codec.compress_piece` does, unless the cache has it."""
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
    return hashlib.sha256(msgspec.msgpack.encode(parts)).digest()


def _encode(facts: _Facts) -> bytes:
    return msgspec.msgpack.encode(facts)


def _decode(entry: Entry) -> _Facts:
    return msgspec.msgpack.decode(entry.facts, type=_Facts)
