"""Putting distributions and their core metadata where the pages of an index lead to."""

from __future__ import annotations

import enum
import hashlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from rocwheel.core.errors import InputError, WorkError, read_error
from rocwheel.core.hashing import hash_file
from rocwheel.core.reading import FileStamp, open_unchanged
from rocwheel.core.scratch import scratch_folder
from rocwheel.core.writing import atomic_file
from rocwheel.distributions.index.entries.entry import read_metadata
from rocwheel.distributions.index.notes.known_files import KNOWN_NAME, settled
from rocwheel.distributions.index.write_changed import write_changed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocwheel.distributions.index.entries.entry import IndexEntry
    from rocwheel.distributions.index.notes.found import Found
    from rocwheel.distributions.index.notes.known_files import KnownFile

__all__ = ["FilePlacement", "Places"]

_PIECE = 1 << 20


class FilePlacement(enum.Enum):
    """Where the files that an index lists are."""

    RELATIVE = "relative"
    """In the folder of distributions; pages link to them."""
    HARDLINK = "hardlink"
    """In the index, as hard links to them."""
    COPY = "copy"
    """In the index, as copies."""

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        parameter, names = "files", ", ".join(placement.value for placement in cls)
        raise InputError(parameter, f"is {value!r}", expected=f"one of {names}")


class Places(msgspec.Struct, frozen=True, eq=False):
    """Where the files of an index go. Thousands of files share one such value, so it is compared by identity."""

    dist_dir: Path
    output: Path
    placement: FilePlacement

    @property
    def holds_files(self) -> bool:
        """Whether the index has the distributions themselves."""
        return self.placement is not FilePlacement.RELATIVE

    @property
    def base(self) -> str:
        """What leads from a project's folder to the files: empty, or ending in a slash."""
        if self.holds_files:
            return ""
        return f"{os.path.relpath(self.dist_dir.resolve(), self.output.resolve() / 'project')}/"

    def targets(self, known: KnownFile) -> list[Path]:
        """Return the paths that are written for a distribution: its copy if any, and its metadata if it shows any."""
        return [Path(name) for name in self._target_names(known.entry)]

    def _target_names(self, entry: IndexEntry) -> list[str]:
        # Not paths yet: of thousands of them, making those would be most of the work.
        folder = f"{self.output}/{entry.project}" if self.holds_files else str(self.dist_dir)
        copies = [f"{folder}/{entry.filename}"] if self.holds_files else []
        return copies + ([f"{folder}/{entry.filename}.metadata"] if entry.metadata_sha256 is not None else [])

    def holds(self, known: KnownFile, beside: Mapping[str, FileStamp] | None = None) -> bool:
        """Return whether all that an earlier run has written for a distribution stands as it was written.

        ``beside`` has the stamps of the metadata in the folder of distributions, by their names; without it, each is
        asked for.
        """
        if known.placement != self.placement.value:
            return False
        entry = known.entry
        if beside is None or self.holds_files:
            return tuple(map(_stamp, self._target_names(entry))) == known.placed
        return known.placed == (() if entry.metadata_sha256 is None else (beside.get(entry.filename),))

    def place(self, found: Found) -> KnownFile:
        """Write what is not there yet, and return what is known of the distribution now.

        Raises `WorkError` when that can't be done, or when the distribution has changed since it was read.
        """
        if found.known.placed and self.holds(found.known):
            return found.known
        begun = time.time_ns()
        targets = self.targets(found.known)
        source = self.dist_dir / found.known.entry.filename
        # As it is now: a link of a dead run to the file may be gone meanwhile, which changes the stamp.
        stamp = _require(source, found.known.stamp)
        metadata = self._read_metadata(found, source, stamp, targets[-1]) if targets else None
        if self.holds_files:
            self._place_copy(source, targets[0], found.known.entry, stamp)
        if metadata is not None:
            self._write_metadata(targets[-1], metadata)
        # Linking has changed the stamp, and only that: the next run need not read the file again.
        stamp = _require(source, stamp)
        placed = settled((_stamp(target) for target in targets), begun)
        return msgspec.structs.replace(found.known, stamp=stamp, placed=placed, placement=self.placement.value)

    def _read_metadata(self, found: Found, source: Path, stamp: FileStamp, target: Path) -> bytes | None:
        """Return the core metadata whose hash the pages give; none if they give none, or if it stands there already."""
        wanted = found.known.entry.metadata_sha256
        if wanted is None or found.metadata is not None:
            return found.metadata
        if _has_hash(target, wanted):
            return None
        data = read_metadata(source)
        _require(source, stamp)
        if hashlib.sha256(data).hexdigest() != wanted:
            remedy = f"Remove {self.output / KNOWN_NAME}, and run it again."
            raise WorkError(source, "its core metadata have another hash than an earlier run has noted", remedy=remedy)
        return data

    def _write_metadata(self, target: Path, metadata: bytes) -> None:
        try:
            write_changed(target, metadata)
        except WorkError as e:
            if self.holds_files:
                raise
            remedy = "Make its folder writable, or have the index hold the files: --files hardlink or copy."
            raise WorkError(e.source, e.found, remedy=remedy) from e

    def _place_copy(self, source: Path, target: Path, entry: IndexEntry, stamp: FileStamp) -> None:
        if target.parent.exists() and target.parent.samefile(source.parent):
            return  # a folder of distributions that is named like a project
        if self.placement is FilePlacement.HARDLINK:
            _hardlink(source, target, stamp)
        elif not _is_copy(source, target, entry):
            _copy(source, target, stamp)


def _require(source: Path, stamp: FileStamp) -> FileStamp:
    """Return the stamp that a file has now; raise `ChangedFileError` unless it is the one that was read."""
    try:
        status = source.stat()
    except OSError as e:
        raise read_error(source, e, kind=WorkError) from e
    stamp.require(status, str(source))
    return FileStamp.of(status)


def _stamp(path: Path | str) -> FileStamp | None:
    try:
        return FileStamp.of(os.lstat(path))
    except OSError:
        return None


def _is_copy(source: Path, target: Path, entry: IndexEntry) -> bool:
    """Return whether a file is a whole copy already: to read it is less than to write it again."""
    try:
        is_other = target.stat().st_size == entry.size and not target.samefile(source)
    except OSError:
        return False
    return is_other and _has_hash(target, entry.sha256)


def _has_hash(path: Path, sha256: str) -> bool:
    try:
        return hash_file(path) == sha256
    except OSError:
        return False


def _copy(source: Path, target: Path, stamp: FileStamp) -> None:
    try:
        # In this order: the bytes are compared with the stamp before they get the name.
        with atomic_file(target) as writer, open_unchanged(source) as reader:
            stamp.require(os.fstat(reader.fileno()), str(source))
            while data := reader.read(_PIECE):
                writer.write(data)
    except OSError as e:
        raise read_error(source, e, kind=WorkError) from e


def _hardlink(source: Path, target: Path, stamp: FileStamp) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and target.samefile(source):
            return
        with scratch_folder(target) as folder:
            temporary = folder / target.name
            temporary.hardlink_to(source)
            stamp.require(temporary.stat(), str(source))
            temporary.replace(target)
    except OSError as e:
        remedy = "Use --files copy when the folders are on different file systems."
        raise WorkError(target, f"can't be a hard link to {source} ({e.strerror})", remedy=remedy) from e
