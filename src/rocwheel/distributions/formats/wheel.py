"""Writing of wheels (binary distribution format 1.0), member by member, under the final name only when whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.core.hashing import FollowingHash, SealedPart, seal
from rocwheel.core.writing import AtomicFile
from rocwheel.distributions.content.content import BytesContent
from rocwheel.distributions.formats.record import RecordRow, render_record
from rocwheel.distributions.packing.compression import STORED, pack_whole
from rocwheel.distributions.variants.label import with_label
from rocwheel.distributions.zip.writer import ZipTime, ZipWriter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rocwheel.core.hashing import Seal
    from rocwheel.core.reading import FileStamp
    from rocwheel.distributions.content.digest import Digest

__all__ = ["WheelName", "WheelWriter", "normalized_file_part"]

_METADATA_LEVEL = 9


class WheelName(msgspec.Struct, frozen=True):
    """The parts of a wheel's file name; ``tag`` is the whole compatibility tag, such as ``py3-none-any``."""

    distribution: str
    version: str
    tag: str
    label: str = ""
    """The label of a wheel variant (:pep:`825`, a draft); empty for none."""

    @property
    def stem(self) -> str:
        """Normalised distribution and version, as in the names of the wheel and of its ``.dist-info``."""
        return f"{normalized_file_part(self.distribution)}-{self.version.replace('-', '_')}"

    @property
    def file_name(self) -> str:
        """The wheel's file name."""
        return with_label(f"{self.stem}-{self.tag}.whl", self.label)

    @property
    def dist_info(self) -> str:
        """The name of the metadata folder inside the wheel."""
        return f"{self.stem}.dist-info"


def normalized_file_part(distribution: str) -> str:
    """Return a distribution name as file names spell it: lower case, runs of ``-_.`` become one ``_``."""
    return canonicalize_name(distribution).replace("-", "_")


class WheelWriter:
    """A `rocwheel.distributions.packing.parallel.Sink` that writes one wheel and its RECORD.

    ``dist_info`` is the name of the metadata folder inside it.

    Members appear in the order in which they are written; `close` adds the given metadata files and RECORD at the
    end, as the format recommends, syncs the file and gives it its name. `abort` leaves nothing behind.
    With ``is_hashed``, it has the file's `sha256` then. With ``is_sealed``, `sealed` tells later whether the file
    still has the bytes that were written.
    """

    def __init__(
        self, path: Path, dist_info: str, moment: ZipTime, *, is_sealed: bool = False, is_hashed: bool = False
    ) -> None:
        self.path = path
        self.sha256 = ""
        """Of the file after `close`, in hexadecimal digits."""
        self.sealed: tuple[FileStamp, Seal] | None = None
        """What the file was like after `close`, and the hashes of what is in it."""
        self._is_sealed = is_sealed
        self._is_hashed = is_hashed
        self._hash: FollowingHash | None = None
        self._parts: list[SealedPart] = []
        self._dist_info = dist_info
        self._moment = moment
        self._rows: list[RecordRow] = []
        self._member = ""
        self._stored_from = -1
        """Where the packed bytes of a member begin that is stored, so that its digest is theirs."""
        self._file: AtomicFile | None = None
        self._zip: ZipWriter | None = None

    def begin(self, name: str, mode: int, method: int, size: int) -> None:
        """Start a member of at most ``size`` unpacked bytes, packed by ``method``; the first one creates the file."""
        self._member = name
        self._open_zip().begin(name, mode, method, size)
        self._stored_from = self._open_zip().tell() if method == STORED else -1

    def write(self, data: bytes | bytearray | memoryview, sha256: bytes = b"") -> None:
        """Append packed bytes to the member, with their SHA-256 where somebody knows it."""
        start = self._open_zip().tell()
        self._open_zip().write(data)
        if sha256 and self._stored_from < 0:
            self._parts.append(SealedPart(start, start + len(data), sha256))

    def end(self, digest: Digest) -> None:
        """Complete the member and add it to RECORD."""
        if self._stored_from >= 0:
            self._parts.append(SealedPart(self._stored_from, self._open_zip().tell(), digest.sha256))
        self._open_zip().end(digest.size, digest.crc32)
        self._rows.append(RecordRow(self._member, digest.sha256, digest.size))
        if self._hash:
            self._hash.follow(self._open_zip().tell())

    def close(self, metadata: Mapping[str, bytes]) -> None:
        """Write the files of ``.dist-info``, given by their names in it, and RECORD, and give the wheel its name."""
        for name, data in metadata.items():
            self._add_now(f"{self._dist_info}/{name}", data)
        record_path = f"{self._dist_info}/RECORD"
        self._add_now(record_path, render_record(self._rows, record_path))
        self._open_zip().close()
        if self._file is not None:
            found = seal(self._file.tell(), self._parts, self._file.read) if self._is_sealed else None
            sha256 = self._hash.finish(self._file.tell()) if self._hash else ""
            self._file.commit()
            if found and self._file.stamp:
                self.sealed = self._file.stamp, found
            self.sha256 = sha256

    def abort(self) -> None:
        """Remove what was written; harmless after `close`."""
        if self._file is not None:
            self._file.discard()

    def _add_now(self, name: str, data: bytes) -> None:
        packed = pack_whole(BytesContent(data), _METADATA_LEVEL)
        self.begin(name, 0o644, packed.method, len(data))
        self.write(packed.data)
        self.end(packed.digest)

    def _open_zip(self) -> ZipWriter:
        if self._zip is None:
            self._file = AtomicFile(self.path)
            self._zip = ZipWriter(self._file, self._moment)
            self._hash = FollowingHash(self._file.read) if self._is_hashed else None
        return self._zip
