"""Packing of wheels (binary distribution format 1.0): open, add members, close; when anything fails, nothing stays."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.hashing import Seal
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import FileStamp
from rocwheel.distributions.formats.wheel import WheelWriter
from rocwheel.distributions.packing.delivery import PackedCount
from rocwheel.distributions.packing.parallel import Packer
from rocwheel.distributions.zip.reader import digest_member, iter_packed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rocwheel.core.cache import Store
    from rocwheel.distributions.content.content import Content
    from rocwheel.distributions.content.digest import Digest
    from rocwheel.distributions.packing.stream_codec import StreamFormat
    from rocwheel.distributions.zip.reader import ZipMember
    from rocwheel.distributions.zip.writer import ZipTime

__all__ = ["DEFAULT_LEVEL", "HIGHEST_LEVEL", "OpenWheel", "WheelPacker", "WrittenWheel", "write_wheels"]

DEFAULT_LEVEL = 6
HIGHEST_LEVEL = 12
"""libdeflate level of wheel members."""


@contextmanager
def write_wheels(
    executor: Executor,
    moment: ZipTime,
    *,
    level: int = DEFAULT_LEVEL,
    progress: Progress = SILENT,
    kept: Store | None = None,
    is_hashed: bool = False,
) -> Iterator[WheelPacker]:
    """Yield a packer of wheels; at the end of the block they are whole, and have their names.

    The ``executor`` packs members, ``moment`` dates them, and ``level`` is libdeflate's, 0 stores. What the
    ``kept`` store has is not packed again. With ``is_hashed``, the packer tells the hashes of wheels. Raises
    `WorkError` when a wheel can't be written. After any exception, no wheel stays that is not whole.
    """
    # Closing syncs to disk: a thread of its own lets the next wheel go on meanwhile.
    with ThreadPoolExecutor(1, "rocwheel-close") as closer:
        packer = Packer(executor, level, progress=progress, kept=kept)
        make = partial(WheelWriter, moment=moment, is_sealed=kept is not None, is_hashed=is_hashed)
        wheels = WheelPacker(packer, make, closer, progress)
        try:
            yield wheels
            wheels.finish()
        except BaseException:
            wheels.abort()
            raise


class WrittenWheel(msgspec.Struct, frozen=True):
    """A finished wheel, its state when it got its name, and how many of its members were packed for it."""

    path: Path
    stamp: FileStamp
    seal: Seal
    members: PackedCount
    sha256: str = ""
    """Of the file, in hexadecimal digits, if it was asked for."""


class WheelPacker:
    """Opens wheels, one after the other or several at once, whose members share the workers of one `Packer`."""

    def __init__(
        self, packer: Packer, make_writer: Callable[..., WheelWriter], closer: Executor, progress: Progress
    ) -> None:
        self._packer = packer
        self._make_writer = make_writer
        self._closer = closer
        self._progress = progress
        self._writers: list[WheelWriter] = []
        self._closing: list[Future[None]] = []
        self._counted = PackedCount()
        self._counts: dict[Path, PackedCount] = {}

    def open(self, path: Path, *, dist_info: str) -> OpenWheel:
        """Begin the wheel that will stand at ``path``, whose metadata folder is named ``dist_info``."""
        writer = self._make_writer(path, dist_info)
        self._writers.append(writer)
        return OpenWheel(writer, self._packer, self._progress, partial(self._close, writer))

    @property
    def count(self) -> PackedCount:
        """How many members were packed, and how many a cache had, of those that were written."""
        return self._packer.count

    @property
    def written(self) -> list[WrittenWheel]:
        """The wheels that have their names, if they are sealed."""
        return [
            WrittenWheel(writer.path, *writer.sealed, self._counts[writer.path], writer.sha256)
            for writer in self._writers
            if writer.sealed
        ]

    @property
    def digests(self) -> dict[Path, str]:
        """The SHA-256, in hexadecimal digits, of the wheels that have their names, if these are hashed."""
        return {writer.path: writer.sha256 for writer in self._writers}

    def call(self, function: Callable[[], object]) -> None:
        """Call a function, on the thread that adds, once every member that was added so far is written."""
        self._packer.call(function)

    def drain(self) -> None:
        """Write every member that was added so far; its content is not read any more."""
        self._packer.drain()

    def finish(self) -> None:
        """Wait until every closed wheel has its name."""
        self._packer.drain()
        for future in self._closing:
            future.result()

    def abort(self) -> None:
        """Drop what is not written yet, and remove every wheel that is not whole."""
        self._packer.cancel()
        wait([future for future in self._closing if not future.cancel()])
        for writer in self._writers:
            writer.abort()

    def _close(self, writer: WheelWriter, metadata: Mapping[str, bytes]) -> None:
        self._counts[writer.path] = self.count.since(self._counted)
        self._counted = self.count
        self._closing.append(self._closer.submit(writer.close, metadata))


class OpenWheel:
    """A wheel that takes members, which appear in it in the order in which they are added."""

    def __init__(
        self, writer: WheelWriter, packer: Packer, progress: Progress, close: Callable[[Mapping[str, bytes]], None]
    ) -> None:
        self._writer = writer
        self._packer = packer
        self._progress = progress
        self._close = close

    def add(self, name: str, mode: int, content: Content) -> None:
        """Add a member, which the workers pack."""
        self._packer.add(self._writer, name, mode, content)

    def add_stored(self, name: str, mode: int, content: Content) -> None:
        """Add a member that is compressed already; it is not deflated again."""
        self._packer.add_stored(self._writer, name, mode, content)

    def add_encoded(self, name: str, mode: int, content: Content, encoding: StreamFormat) -> None:
        """Add a member that holds the content compressed as a stream of its own."""
        self._packer.add_encoded(self._writer, name, mode, content, encoding)

    def add_packed(self, member: ZipMember, mode: int, digest: Digest | None = None) -> None:
        """Add a member of another archive as it is packed there; raise `InputError` later if it is damaged.

        With its ``digest``, it is copied without a look at what is packed in it.
        """
        self._packer.call(partial(self._copy, member, mode, digest))

    def close(self, metadata: Mapping[str, bytes]) -> None:
        """Complete the wheel, once its members are written, with these files of ``.dist-info`` and RECORD."""
        self._packer.call(partial(self._close, metadata))

    def _copy(self, member: ZipMember, mode: int, digest: Digest | None) -> None:
        self._writer.begin(member.name, mode, member.method, member.size)
        if digest is None:
            digest = digest_member(member, copy_to=self._writer.write)
        else:
            deque(map(self._writer.write, iter_packed(member)), maxlen=0)
        self._writer.end(digest)
        self._progress.advance(member.size)
