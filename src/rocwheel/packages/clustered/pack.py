"""Packing on a worker: members become a piece in the exchange, and a small record."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rocwheel.cluster.versions import require_like
from rocwheel.distributions.packing.parallel import Packer
from rocwheel.distributions.packing.spans import CutFacts, Span, digest_spans, encode_span, level_for, pack_span
from rocwheel.packages.building.contents import is_compressed, member_content
from rocwheel.packages.building.members import PlacedMember, add_member
from rocwheel.packages.clustered.exchange import attach_exchanges
from rocwheel.packages.clustered.records import Cut, Hashed, Opening, Packed, PackedMember, Settings
from rocwheel.packages.clustered.spool import Spool, open_spool
from rocwheel.packages.plan import TarMember

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocwheel.distributions.content.content import Content
    from rocwheel.distributions.content.digest import Digest
    from rocwheel.distributions.packing.stream_codec import StreamFormat
    from rocwheel.packages.clustered.exchange import Exchange

__all__ = ["hash_member", "pack_cut", "pack_group"]


def pack_group(settings: Settings, first: int, members: Sequence[PlacedMember]) -> Packed:
    """Pack members into one piece; ``first`` is the place of the first one in its group."""
    _begin(settings)
    with open_spool() as spool:
        target = _Target(Recorder(spool), settings.level)
        for placed in members:
            add_member(target, placed, mtime=settings.mtime, executor=_INLINE)
        target.packer.drain()
        return Packed(first, spool.store(settings.exchange), tuple(target.recorder.members))


def pack_cut(settings: Settings, name: str, span: Span) -> Cut:
    """Pack a span of the member that has this name in the exchange."""
    _begin(settings)
    with open_spool() as spool:
        facts = _pack_span(settings, name, span, spool)
        return Cut(span, spool.store(settings.exchange), facts)


def _pack_span(settings: Settings, name: str, span: Span, spool: Spool) -> CutFacts:
    placed, content = _member(settings.exchange, name, settings.mtime)
    member = placed.member
    if isinstance(member, TarMember) and member.compression != "none":
        return encode_span(content, span, member.compression, spool.write)
    level = _level(settings.exchange, name, settings.mtime, settings.level)
    return pack_span(content, span, level, spool.write)


def hash_member(settings: Settings, name: str, spans: Sequence[Span]) -> Hashed:
    """Return the digest of the member that has this name in the exchange, and the CRC-32 of each of its spans."""
    _begin(settings)
    _, content = _member(settings.exchange, name, settings.mtime)
    return Hashed(*digest_spans(content, spans))


def _begin(settings: Settings) -> None:
    """Prepare this process; raise `VersionError` where it would make other bytes, as a worker that came later may."""
    require_like(settings.facts)
    attach_exchanges()


@lru_cache(maxsize=4)
def _member(exchange: Exchange, name: str, mtime: int) -> tuple[PlacedMember, Content]:
    """Return a member and its content, which takes reading all files of a tar that are edited."""
    placed = exchange.load_member(name)
    return placed, member_content(placed.member, mtime=mtime, executor=_INLINE)


@lru_cache(maxsize=4)
def _level(exchange: Exchange, name: str, mtime: int, level: int) -> int:
    """Return the level that all spans of a member are packed with, as `add_member` decides of a whole one."""
    placed, content = _member(exchange, name, mtime)
    return 0 if is_compressed(placed.member) else level_for(content, level)


class Recorder:
    """A `rocwheel.distributions.packing.parallel.Sink` that writes members into a spool, and notes what each is."""

    def __init__(self, spool: Spool) -> None:
        self.members: list[PackedMember] = []
        self._spool = spool
        self._opening: Opening | None = None
        self._start = 0

    def begin(self, name: str, mode: int, method: int, size: int) -> None:
        """Start a member."""
        self._opening = Opening(name, mode, method, size)
        self._start = self._spool.size

    def write(self, data: bytes | bytearray | memoryview, sha256: bytes = b"") -> None:  # noqa: ARG002 (the sink's)
        """Append packed bytes."""
        self._spool.write(data)

    def end(self, digest: Digest) -> None:
        """Complete the member."""
        assert self._opening is not None, "`begin` comes first"
        self.members.append(PackedMember(self._opening, self._spool.size - self._start, digest))


class _Target:
    """A `rocwheel.packages.building.members.MemberTarget` that packs on the thread of the task."""

    def __init__(self, recorder: Recorder, level: int) -> None:
        self.recorder = recorder
        self.packer = Packer(_INLINE, level)

    def add(self, name: str, mode: int, content: Content) -> None:
        self.packer.add(self.recorder, name, mode, content)

    def add_stored(self, name: str, mode: int, content: Content) -> None:
        self.packer.add_stored(self.recorder, name, mode, content)

    def add_encoded(self, name: str, mode: int, content: Content, encoding: StreamFormat) -> None:
        self.packer.add_encoded(self.recorder, name, mode, content, encoding)


class _InlineExecutor(Executor):
    """Does work at once: a cluster has a task for each of its threads already."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as e:
            future.set_exception(e)
        return future


_INLINE = _InlineExecutor()
