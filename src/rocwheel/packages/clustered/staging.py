"""Where workers read the bytes of members: at a path that they share, or in the exchange, which gets them here."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.reading import FileRange, FileStamp
from rocwheel.packages.clustered.exchange import CHUNK
from rocwheel.packages.clustered.sending import sending
from rocwheel.packages.plan import FileMember, TarMember

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.packages.building.members import PlacedMember
    from rocwheel.packages.clustered.exchange import Exchange
    from rocwheel.packages.clustered.sending import Send
    from rocwheel.packages.plan import Member

__all__ = ["Staging", "sources"]

_STAGED = FileStamp(0, 0, 0, 0, 0, 1)
"""The stamp of a file in the exchange, which nobody changes."""


def sources(member: Member) -> Iterator[FileRange]:
    """Yield the ranges of files that a member comes from."""
    if isinstance(member, FileMember):
        yield member.source
    elif isinstance(member, TarMember):
        for entry in member.entries:
            if entry.file is not None:
                yield entry.file.source


class Staging:
    """Gives members the sources that workers have; with ``all_files``, they have none but those of the exchange.

    Files that only this process can read, such as an archive that it has unpacked, always go through the exchange.
    Small files share an object. Only a few chunks are in memory at a time.
    """

    def __init__(self, exchange: Exchange, *, all_files: bool) -> None:
        self._exchange = exchange
        self._all_files = all_files
        self._placed: dict[FileRange, FileRange] = {}
        self._count = 0
        self._bundle: list[tuple[FileRange, bytes]] = []
        self._bundle_size = 0

    def is_staged(self, source: FileRange) -> bool:
        """Return whether workers get a range by the exchange."""
        return bool(source.size) and (source.stamp is None or self._all_files)

    def place(self, members: tuple[PlacedMember, ...]) -> tuple[PlacedMember, ...]:
        """Return members as workers can read them; their bytes are in the exchange then.

        Raises `InputError` for a file that can't be read, `ChangedFileError` for one that has changed.
        """
        with sending() as send:
            for placed in members:
                for source in sources(placed.member):
                    if source not in self._placed and self.is_staged(source):
                        self._stage(source, send)
            self._put_bundle(send)
        return tuple(msgspec.structs.replace(placed, member=self._member(placed.member)) for placed in members)

    def _member(self, member: Member) -> Member:
        if isinstance(member, FileMember):
            return self._file(member)
        if isinstance(member, TarMember):
            entries = tuple(
                msgspec.structs.replace(entry, file=entry.file and self._file(entry.file)) for entry in member.entries
            )
            return msgspec.structs.replace(member, entries=entries)
        return member

    def _file(self, member: FileMember) -> FileMember:
        source = member.source
        if not self.is_staged(source):
            return msgspec.structs.replace(member, source=source.for_any_machine())
        return msgspec.structs.replace(member, source=self._placed[source])

    def _stage(self, source: FileRange, send: Send) -> None:
        if source.size < CHUNK:
            if self._bundle_size + source.size > CHUNK:
                self._put_bundle(send)
            self._bundle.append((source, source.read()))
            self._bundle_size += source.size
            return
        path = self._new_path(source.size)
        for number, start in enumerate(range(0, source.size, CHUNK)):
            part = source.part(start, min(start + CHUNK, source.size))
            send(partial(self._put_part, path, number, part))
        self._placed[source] = FileRange(path, 0, source.size, _STAGED)

    def _put_part(self, path: str, number: int, part: FileRange) -> None:
        self._exchange.put_chunk(path, number, part.read())

    def _put_bundle(self, send: Send) -> None:
        if not self._bundle:
            return
        data = b"".join(data for _, data in self._bundle)
        path = self._new_path(len(data))
        send(partial(self._exchange.put_chunk, path, 0, data))
        offset = 0
        for source, part in self._bundle:
            self._placed[source] = FileRange(path, offset, source.size, _STAGED)
            offset += len(part)
        self._bundle.clear()
        self._bundle_size = 0

    def _new_path(self, size: int) -> str:
        self._count += 1
        return self._exchange.input_path(self._count, size)
