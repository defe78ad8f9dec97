"""The cache on disk: its location, its hash-verified entries, and their removal.

All numbers are little-endian::

    16 bytes  "rocwheel entry 1"
    4         size of the facts
    8         size of the data
    32        SHA-256 of the data
    32        SHA-256 of the 60 bytes before, the key, and the facts
    ...       facts, then data

An entry is used only if it belongs to this user or to root, and if no one else can write to it. The hashes don't
contain a secret, so they reveal only damage.

An entry is first written under a temporary name, so that an entry under its final name is always complete. Entries
aren't synced to disk, because their hashes reveal damage from a power failure. A damaged entry is removed, and the code
that requested it creates it again.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import pwd
import re
import stat
import struct
import time
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

import msgspec

from rocwheel.core.errors import InputError, read_error
from rocwheel.core.messages import quoted
from rocwheel.core.progress import SILENT, Progress, tracked
from rocwheel.core.reading import belongs_to_user
from rocwheel.core.scratch import make_scratch_file, remove_abandoned, write_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_VARIABLE = "ROCWHEEL_CACHE_DIR"


def cache_folder() -> Path:
    """Return ``ROCWHEEL_CACHE_DIR``, or a folder in the user's cache folder.

    Users may remove the folder at any time.

    The user's cache folder is ``XDG_CACHE_HOME`` unless that is a relative path, which the XDG Base Directory
    Specification requires applications to ignore. Otherwise, it is ``.cache`` in ``HOME``. If ``HOME`` isn't absolute,
    the home folder from the user database is used. Raises `InputError` if no variable is set and the user has no home
    folder.
    """
    if named := os.environ.get(_VARIABLE):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return Path(base if base.startswith("/") else _home() / ".cache", "rocwheel")


def _home() -> Path:
    named = os.environ.get("HOME", "")
    home = named if named.startswith("/") else _known_home()
    if not home:
        found, expected = "isn't set, and this user has no home folder", "a folder for the rocwheel cache"
        raise InputError(_VARIABLE, found, expected=expected, remedy=f"Set {_VARIABLE} to the path of a folder.")
    return Path(home)


def _known_home() -> str:
    """Return the user's home folder from the system, or an empty string if it is unknown, as in containers."""
    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
    return home if home.startswith("/") else ""


LIMIT_VARIABLE = "ROCWHEEL_CACHE_LIMIT"

DEFAULT_LIMIT = 10 * 10**9
"""The maximum total size of packed members in bytes."""


class CachePlace(msgspec.Struct, frozen=True):
    """A cache's folder, and its maximum size in bytes after a build."""

    folder: Path
    limit: int = DEFAULT_LIMIT


_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*([kmgt]?)(i?)b?", re.IGNORECASE | re.ASCII)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_LARGEST = 1 << 63
"""A size in bytes that no file system exceeds."""


def cache_limit(environment: Mapping[str, str]) -> int:
    """Return the size limit for packed members in bytes. Raises `InputError` if the variable is not a size."""
    text = environment.get(LIMIT_VARIABLE, "")
    return parse_size(text, source=LIMIT_VARIABLE) if text else DEFAULT_LIMIT


def packed_cache(environment: Mapping[str, str]) -> CachePlace:
    """Return the location of this user's packed members. Raises the same errors as `cache_limit`."""
    return CachePlace(cache_folder() / "packed", cache_limit(environment))


def parse_size(text: str, *, source: str) -> int:
    """Return a size such as ``20GB``, ``1.5 TiB``, or ``0`` in bytes. Raises `InputError` for any other text."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise InputError(source, f"is {quoted(text)}", expected="a size, such as 20GB or 500MiB")
    number, unit, binary = found.groups()
    size = float(number) * (1024 if binary else 1000) ** _POWERS[unit.lower()]
    if size > _LARGEST:
        raise InputError(source, f"is {quoted(text)}", expected="a size that fits on a disk")
    return int(size)


_MAGIC = b"rocwheel entry 1"
_HEAD = struct.Struct("<16sIQ32s")
_CHECK = 32


class CacheEntry(msgspec.Struct, frozen=True):
    """A cached value: data, and facts in an encoding that the caller chooses."""

    facts: bytes
    data: memoryview = memoryview(b"")
    sha256: bytes = b""
    """The hash of the data if the entry was read."""


class DamagedEntryError(Exception):
    """The bytes of an entry differ from the bytes that were written for its key."""


class ForeignEntryError(Exception):
    """An entry belongs to another user, or other users can write to it, so it may contain anything."""


def render_head(key: bytes, facts: bytes, size: int, sha256: bytes) -> bytes:
    """Return all bytes of an entry that precede data with this size and hash."""
    head = _HEAD.pack(_MAGIC, len(facts), size, sha256)
    return head + hashlib.sha256(head + key + facts).digest() + facts


def parse_entry(key: bytes, raw: memoryview) -> CacheEntry:
    """Parse the bytes of a key's entry. Raises `DamagedEntryError` if any byte has changed."""
    start = _HEAD.size + _CHECK
    if len(raw) < start:
        raise DamagedEntryError
    magic, facts_size, size, sha256 = _HEAD.unpack_from(raw)
    facts, data = raw[start : start + facts_size], raw[start + facts_size :]
    check = hashlib.sha256(b"".join([raw[: _HEAD.size], key, facts])).digest()
    if magic != _MAGIC or raw[_HEAD.size : start] != check or len(data) != size:
        raise DamagedEntryError
    if hashlib.sha256(data).digest() != sha256:
        raise DamagedEntryError
    return CacheEntry(bytes(facts), data, sha256)


_HEX = frozenset("0123456789abcdef")
_FOLDER_NAME, _NAME = 2, 62


class KeptEntry(msgspec.Struct, frozen=True, order=True):
    """An entry on disk: its last use in seconds since 1970, the size of its file in bytes, and its path."""

    used: float
    size: int
    path: str
    is_file: bool = True
    """Whether the entry is a file. A folder, link, or pipe at its path counts as damaged."""

    @property
    def key(self) -> bytes:
        """The key, which is part of the names of the file and its folder."""
        path = Path(self.path)
        return bytes.fromhex(path.parent.name + path.name)


class Trouble(msgspec.Struct, frozen=True):
    """An entry or folder that can't be read or removed. It is unknown whether its bytes are intact."""

    path: str
    reason: str
    """The system's error message."""


class Contents(msgspec.Struct, frozen=True):
    """The entries of a cache, least recently used first."""

    entries: tuple[KeptEntry, ...] = ()
    unreadable: tuple[Trouble, ...] = ()
    """Folders that can't be read. Their entries are missing from ``entries``."""


class Pruned(msgspec.Struct, frozen=True):
    """The removed and kept entries. Sizes are in bytes."""

    removed: int = 0
    removed_bytes: int = 0
    left: int = 0
    left_bytes: int = 0
    not_removed: tuple[Trouble, ...] = ()
    """Entries that should have been removed but couldn't be."""
    unreadable: tuple[Trouble, ...] = ()
    """Folders that can't be read. They stay unchanged and aren't counted."""


class VerifiedEntries(msgspec.Struct, frozen=True):
    """The number of verified entries, their size in bytes, and the faulty entries."""

    entries: int = 0
    bytes: int = 0
    damaged: tuple[str, ...] = ()
    """The paths of entries whose bytes have changed."""
    not_removed: tuple[str, ...] = ()
    """The damaged entries that couldn't be removed."""
    unreadable: tuple[Trouble, ...] = ()
    """Entries that can't be read and stay unchanged, and folders whose entries weren't verified."""


def read_contents(folder: Path) -> Contents:
    """Return all entries in a cache, or an empty cache if the folder doesn't exist.

    Entries that disappear in the meantime are skipped, and so is anything that isn't named like an entry. Unreadable
    subfolders are part of the result. Raises `InputError` if the folder itself can't be read.
    """
    entries: list[KeptEntry] = []
    unreadable: list[Trouble] = []
    for place in _folders(folder):
        try:
            with os.scandir(place) as found:
                entries += [kept for entry in found if _is_name(entry.name, _NAME) for kept in _kept_entries(entry)]
        except (FileNotFoundError, NotADirectoryError):  # noqa: PERF203  # folders are few
            continue
        except OSError as e:
            unreadable.append(Trouble(str(place), e.strerror or str(e)))
    return Contents(tuple(sorted(entries)), tuple(unreadable))


def _kept_entries(entry: os.DirEntry[str]) -> Iterator[KeptEntry]:
    """Yield the entry at a path, or nothing if the entry disappears in the meantime."""
    with suppress(FileNotFoundError):
        status = entry.stat(follow_symlinks=False)
        is_file = stat.S_ISREG(status.st_mode)
        yield KeptEntry(status.st_mtime, status.st_size if is_file else 0, entry.path, is_file)


def _folders(folder: Path) -> Iterator[Path]:
    try:
        places = sorted(folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as e:
        raise read_error(folder, e) from e
    yield from (place for place in places if _is_name(place.name, _FOLDER_NAME))


def _is_name(name: str, length: int) -> bool:
    return len(name) == length and _HEX.issuperset(name)


def prune_entries(folder: Path, limit: int) -> Pruned:
    """Remove the least recently used entries until the remaining entries have at most ``limit`` bytes.

    Also removes leftovers from killed processes, and anything that isn't a file. A build that is reading a removed
    entry can still finish reading it. Raises the same errors as `read_contents`. Keeps files that can't be removed.
    """
    for place in _folders(folder):
        remove_abandoned(place)
    contents = read_contents(folder)
    total = sum(entry.size for entry in contents.entries)
    count = removed_bytes = 0
    stuck = []
    for entry in sorted(contents.entries, key=lambda entry: entry.is_file):
        if entry.is_file and total - removed_bytes <= limit:
            break
        try:
            remove_entry(Path(entry.path))
        except OSError as e:
            stuck.append(Trouble(entry.path, e.strerror or str(e)))
        else:
            count, removed_bytes = count + 1, removed_bytes + entry.size
    left, left_bytes = len(contents.entries) - count, total - removed_bytes
    return Pruned(count, removed_bytes, left, left_bytes, tuple(stuck), contents.unreadable)


def remove_entry(path: Path) -> None:
    """Remove an entry, or an empty folder at an entry's path.

    Raises `OSError` if that fails, for example, for a non-empty folder.
    """
    try:
        path.unlink(missing_ok=True)
    except IsADirectoryError:
        path.rmdir()


def verify_entries(folder: Path, progress: Progress = SILENT) -> VerifiedEntries:
    """Read every entry, and remove entries whose bytes have changed. Unreadable entries stay.

    Raises the same errors as `read_contents`.
    """
    contents = read_contents(folder)
    entries = contents.entries
    reading = tracked(progress, "reading the cache", entries, [entry.size for entry in entries])
    faults = [fault for entry in reading if (fault := _find_fault(entry))]
    damaged = tuple(fault for fault in faults if isinstance(fault, str))
    unreadable = (*contents.unreadable, *(fault for fault in faults if isinstance(fault, Trouble)))
    left = tuple(path for path in damaged if not _is_removed(path))
    return VerifiedEntries(len(entries), sum(entry.size for entry in entries), damaged, left, unreadable)


def _find_fault(entry: KeptEntry) -> str | Trouble | None:
    """Return the path of a damaged entry, the problem with reading it, or `None` if it is intact or was removed."""
    if not entry.is_file:
        return entry.path
    try:
        parse_entry(entry.key, memoryview(Path(entry.path).read_bytes()))
    except FileNotFoundError:
        return None
    except DamagedEntryError:
        return entry.path
    except OSError as e:  # for example, too many open files; the bytes may be intact
        return Trouble(entry.path, e.strerror or str(e))
    return None


def _is_removed(path: str) -> bool:
    try:
        remove_entry(Path(path))
    except OSError:
        return False
    return True


logger = logging.getLogger(__name__)

_T = TypeVar("_T")

RESERVE = 256 << 20
"""The number of bytes that must stay free on the disk, because build outputs are more important."""

_FRESH = 60
"""The number of seconds after which another use of an entry updates its modification time."""


_OF_ONE_FOLDER = frozenset({errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST})
"""Write errors that may affect only the entries in one folder."""


class EntryStore:
    """The entries in ``folder``.

    If the folder isn't writable, existing entries are used, and no new entries are stored.

    Pickling preserves only the folder, because each process checks the folder itself.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: list[Path] = []
        """Entries that weren't files or whose bytes had changed. They were removed if possible."""
        self._is_closed = False
        self._told: set[bool] = set()
        self._telling = Lock()

    def __reduce__(self) -> tuple[type[EntryStore], tuple[Path]]:
        """Pickle only the folder."""
        return EntryStore, (self.folder,)

    def path_of(self, key: bytes) -> Path:
        """Return the path of the entry for a key, if it exists."""
        name = key.hex()
        return self.folder / name[:2] / name[2:]

    def has(self, key: bytes) -> bool:
        """Return whether an entry that belongs to this user exists for a key, without reading its bytes."""
        with suppress(OSError, ValueError):
            return belongs_to_user(self.path_of(key).stat())
        return False

    def get(self, key: bytes) -> CacheEntry | None:
        """Return the entry for a key, or `None` if it doesn't exist or its hash doesn't match."""
        path = self.path_of(key)
        try:
            entry = parse_entry(key, memoryview(_read(path)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except DamagedEntryError:
            self._drop(path)
            return None
        except ForeignEntryError:
            self._tell(path, "belongs to another user, or other users can write to it")
            return None
        except OSError as e:
            self._report(self._culprit(path, path.parent), "read", e)
            return None
        _note_use(path)
        return entry

    def put(self, key: bytes, facts: bytes, data: bytes | bytearray | memoryview = b"") -> None:
        """Store an entry if possible. Replaces an existing entry, which might be damaged."""
        if not self._is_closed:
            self.put_hashed(key, facts, data, hashlib.sha256(data).digest())

    def put_hashed(self, key: bytes, facts: bytes, data: bytes | bytearray | memoryview, sha256: bytes) -> None:
        """Store an entry whose data has this hash."""
        if self._is_closed:
            return
        path = self.path_of(key)
        try:
            self._require_room(len(data))
            self._write(path, render_head(key, facts, len(data), sha256), data)
        except IsADirectoryError:
            self._pass_over(path)
        except OSError as e:
            self._report_write(path, e)

    def prune(self, limit: int) -> None:
        """Remove the least recently used entries until the remaining entries have at most ``limit`` bytes.

        Warns about problems unless there was an earlier problem.
        """
        try:
            done = prune_entries(self.folder, limit)
        except InputError as e:
            self._tell(self.folder, e.found)
            return
        for unread in done.unreadable:
            self._tell(Path(unread.path), f"can't be read ({unread.reason})")
        for stuck in done.not_removed:
            self._tell(Path(stuck.path), f"can't be removed ({stuck.reason})")

    def _write(self, path: Path, head: bytes, data: bytes | bytearray | memoryview) -> None:
        descriptor, name = _with_parent(path, lambda: make_scratch_file(path))
        try:
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                write_all(file, head)
                write_all(file, data)
                # A scratch file stays locked until it is closed. Until then, no process removes it as a leftover.
                Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise

    def _require_room(self, size: int) -> None:
        disk = _with_parent(self.folder / "entry", lambda: os.statvfs(self.folder))
        if disk.f_bavail * disk.f_frsize < size + RESERVE:
            raise OSError(errno.ENOSPC, f"less than {RESERVE >> 20} MiB would remain free on the disk")

    def _drop(self, path: Path) -> None:
        try:
            remove_entry(path)
        except OSError as e:
            if e.errno == errno.ENOTEMPTY:
                self._pass_over(path)
                return
            self._report_write(path, e)
        self.damaged.append(path)
        logger.warning("%s: was damaged; rocwheel will recreate it", path)

    def _pass_over(self, path: Path) -> None:
        if path not in self.damaged:
            self.damaged.append(path)
            logger.warning("%s: is a folder instead of a file; rocwheel skips it", path)

    def _culprit(self, *paths: Path) -> Path:
        """Return the first path that exists according to the system.

        Without permission to search a folder, the system reports that its contents don't exist.
        """
        return next((path for path in paths if os.path.lexists(path)), self.folder)

    def _report_write(self, path: Path, error: OSError) -> None:
        is_of_one = error.errno in _OF_ONE_FOLDER
        self._report(self._culprit(path.parent) if is_of_one else self.folder, "written", error)

    def _report(self, culprit: Path, done: str, error: OSError) -> None:
        """Warn about a problem. If the problem affects the entire folder, store no more entries."""
        self._tell(culprit, f"can't be {done} ({error.strerror or error})")
        self._is_closed = self._is_closed or culprit == self.folder

    def _tell(self, culprit: Path, found: str) -> None:
        """Warn about the first problem, and about the first problem that affects the entire folder.

        Ignore later problems.
        """
        is_whole = culprit == self.folder
        with self._telling:
            if self._told & {is_whole, True}:
                return
            self._told.add(is_whole)
        logger.warning("%s: %s; continuing without %s", culprit, found, "the cache" if is_whole else "it")


def _with_parent(path: Path, act: Callable[[], _T]) -> _T:
    """Call ``act`` and return its result. If the parent folder of ``path`` is missing, create it first."""
    try:
        return act()
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return act()


def _read(path: Path) -> bytearray:
    """Return the bytes of a file.

    Raises `DamagedEntryError` for a folder, link, or pipe, and `ForeignEntryError` for a file from another user.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as e:
        if e.errno in {errno.ELOOP, errno.ENXIO}:  # errors for a link and a socket
            raise DamagedEntryError from e
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise DamagedEntryError
    if not belongs_to_user(status):
        os.close(descriptor)
        raise ForeignEntryError
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        data = bytearray(status.st_size)
        rest = memoryview(data)
        while rest and (count := file.readinto(rest)):
            rest = rest[count:]
        return data[: len(data) - len(rest)] if rest else data


def _note_use(path: Path) -> None:
    with suppress(OSError):
        if path.stat().st_mtime + _FRESH < time.time():
            os.utime(path)
