"""Writes files and folders that appear under their names only when they are complete."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rocwheel.core.errors import InputError, WorkError, read_error, write_error
from rocwheel.core.reading import FileStamp, read_at
from rocwheel.core.scratch import make_scratch_file, scratch_folder
from rocwheel.core.symlinks import MAX_LINKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor


PERMISSIONS = 0o7777
"""All bits that chmod(2) accepts."""
UNSAFE = 0o6002
"""Setuid, setgid, and write permission for everyone: the audit reports them."""
_SAFE = 0o755
_READABLE = 0o644
_ANY_EXECUTE = 0o111


def safe_mode(mode: int) -> int:
    """Return the bits that a copy keeps, without those that let it run as another user or let others write to it.

    For mode 0, as in archives without modes, return the mode that installers set.
    """
    return mode & _SAFE or _READABLE


def plain_mode(mode: int) -> int:
    """Return 0o755 for anything executable, and 0o644 otherwise, so that the creator's umask has no effect."""
    return _SAFE if mode & _ANY_EXECUTE else _READABLE


def check_destination(dest_dir: Path, *, option: str = "--dest-dir") -> None:
    """Raise `InputError` if something at or above ``dest_dir``, the value of ``option``, is not a folder."""
    try:
        nearest = next(path for path in (dest_dir, *dest_dir.parents) if path.exists() or path.is_symlink())
        is_folder = nearest.is_dir()
    except OSError as e:
        raise read_error(dest_dir, e) from e
    if not is_folder:
        raise InputError(nearest, "is not a folder", expected="a folder to write to", remedy=f"Change {option}.")


def check_output(output: Path, *, option: str = "--output") -> None:
    """Raise `InputError` if the file ``output`` can't be written: it is a folder or device, or a parent is a file.

    A dangling link is fine: the file replaces it.
    """
    check_place(output, option=option)
    check_destination(output.parent, option=option)
    if output.is_dir():
        raise InputError(output, "is a folder", expected="a file to write to", remedy=f"Change {option}.")


def check_place(output: Path, *, option: str = "--output") -> None:
    """Raise `InputError` if ``output`` can't be a file or a folder because a device or pipe is there.

    Also rejects ``-``, which means standard output elsewhere.
    """
    if str(output) == "-":
        raise InputError(option, "is -, but the output can't go to standard output", remedy="Name a file.")
    try:
        is_other = output.exists() and not output.is_file() and not output.is_dir()
    except OSError as e:
        raise read_error(output, e) from e
    if is_other:
        raise InputError(output, "is not a regular file", expected="a file to write to", remedy=f"Change {option}.")


def check_other(output: Path, given: Path | None, what: str) -> None:
    """Raise `InputError` if the file ``output`` would replace ``given``, an input that messages call ``what``."""
    try:
        is_given = given is not None and output.resolve() == given.resolve()
    except (OSError, RuntimeError):  # a loop of links, which can't be read
        return
    if is_given:
        raise InputError(output, f"is {what}", expected="another output file")


_WRITEBACK_STEP = 16 << 20


class AtomicFile:
    """A temporary file next to ``path``. `commit` syncs it and gives it that name; otherwise, it is removed.

    Creating, writing, and committing raise `WorkError` if the folder can't be written or the disk is full. Writes are
    buffered, so a full disk may be detected only at a later step. With ``makes_folder``, missing parent folders are
    created.
    """

    def __init__(self, path: Path, *, mode: int = 0o644, makes_folder: bool = True) -> None:
        self.path = path
        self._mode = mode
        with self._reporting():
            if path.exists():
                _require_replaceable(path)
            elif makes_folder:
                path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = make_scratch_file(path)
        self._temporary, self._is_gone = Path(temporary), False
        self.file: IO[bytes] = os.fdopen(descriptor, "w+b")
        self.stamp: FileStamp | None = None
        """The stamp of the file after it got its name."""
        self._writeback_begun = 0
        self._is_synced = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write bytes at the current position."""
        with self._reporting():
            self.file.write(data)
            if self.file.tell() - self._writeback_begun >= _WRITEBACK_STEP:
                self._begin_writeback()

    def overwrite(self, offset: int, data: bytes) -> None:
        """Replace bytes that were already written, without moving the current position."""
        with self._reporting():
            position = self.file.tell()
            self.file.seek(offset)
            self.file.write(data)
            self.file.seek(position)

    def read(self, start: int, stop: int) -> bytes:
        """Return bytes that were already written, without moving the current position."""
        with self._reporting():
            self.file.flush()
            return read_at(self.file.fileno(), stop - start, start)

    def tell(self) -> int:
        """Return the current position, as an offset from the start of the file."""
        return self.file.tell()

    def begin_writeback(self) -> None:
        """Let the kernel start writing the rest to disk while other files are written. Call it after the last write."""
        with self._reporting():
            self._begin_writeback()

    def _begin_writeback(self) -> None:
        """Let the kernel start writing the new bytes to disk, so that `commit` has little left to sync.

        Linux starts writeback of a range that the process no longer needs, without waiting for the disk.
        """
        self.file.flush()
        size = self.file.tell() - self._writeback_begun
        os.posix_fadvise(self.file.fileno(), self._writeback_begun, size, os.POSIX_FADV_DONTNEED)
        self._writeback_begun += size

    def sync(self) -> None:
        """Wait until all bytes are on disk, so that `commit` need not wait. No bytes may be written afterwards."""
        with self._reporting():
            self.file.flush()
            os.fsync(self.file.fileno())
            self._is_synced = True

    def commit(self) -> None:
        """Sync the bytes to disk and give the file its name; discard it if that fails."""
        self._finish(self._replace)

    def commit_new(self) -> bool:
        """Like `commit`, but only if the name is free; return whether it was. Otherwise, discard the file.

        A single file system operation checks and assigns the name. On file systems without links, there are two.
        """
        return self._finish(self._link)

    def _finish(self, give_name: Callable[[], bool]) -> bool:
        try:
            with self._reporting(), self.file:
                if not self._is_synced:
                    self.sync()
                os.fchmod(self.file.fileno(), self._mode)
                is_named = give_name()
                self.stamp = FileStamp.of(os.fstat(self.file.fileno()))
                return is_named
        finally:
            self.discard()

    def _replace(self) -> bool:
        self._temporary.replace(self.path)
        self._is_gone = True
        return True

    def _link(self) -> bool:
        try:
            os.link(self._temporary, self.path)
        except FileExistsError:
            return False
        except OSError:
            return not os.path.lexists(self.path) and self._replace()
        return True

    def discard(self) -> None:
        """Remove the temporary file. Has no effect after `commit`."""
        if self._is_gone:
            return
        with suppress(OSError):
            self.file.close()
        # A failed removal, as on a file system that became read-only, must not hide why the work failed.
        with suppress(OSError):
            self._temporary.unlink(missing_ok=True)
            self._is_gone = True

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except OSError as e:
            raise write_error(self.path, e) from e


def _require_replaceable(path: Path) -> None:
    """Refuse to replace anything that is neither a file nor a link to something, and any open file."""
    if not (path.is_file() or path.is_dir()) or _leads_to_open_file(path):
        # Replacing a device or a pipe would destroy it: as root, even /dev/null.
        raise WorkError(path, "is not a regular file, so it can't be replaced", remedy="Name another output.")
    if path.is_dir() and not path.is_symlink():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))


def _leads_to_open_file(path: Path) -> bool:
    """Return whether a path leads to a file that a process has open, such as ``/dev/stdout``, directly or by links.

    Its name there is a link of the system, which other programs need.
    """
    for _ in range(MAX_LINKS):
        if path.parent.resolve().is_relative_to("/proc"):
            return True
        if not path.is_symlink():
            return False
        path = path.parent / path.readlink()
    return True


@contextmanager
def atomic_file(path: Path, *, mode: int = 0o644) -> Iterator[AtomicFile]:
    """Open an `AtomicFile` that is committed if the block succeeds, and discarded otherwise."""
    target = AtomicFile(path, mode=mode)
    try:
        yield target
        target.commit()
    finally:
        target.discard()


SYNCING = 4
"""The number of threads that wait for the disk. It combines the writes that several threads request."""


@contextmanager
def atomic_files(executor: Executor) -> Iterator[list[AtomicFile]]:
    """Yield a list for files that are written in the block, then committed if the block succeeds, or else discarded.

    Files get their names once all are on disk; `SYNCING` workers of ``executor`` wait for that. If one can't be
    committed, the earlier ones keep their names. Raises whatever `AtomicFile.commit` raises.
    """
    files: list[AtomicFile] = []
    try:
        yield files
        for file in files:
            file.begin_writeback()
        list(executor.map(_sync, (files[start::SYNCING] for start in range(SYNCING))))
        for file in files:
            file.commit()
    finally:
        for file in files:
            file.discard()


def _sync(files: Sequence[AtomicFile]) -> None:
    for file in files:
        file.sync()


@contextmanager
def new_folder(dest: Path, *sources: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes ``dest`` if the block succeeds; otherwise, it is removed.

    ``sources`` are what the block reads. Raises `InputError` if ``dest`` exists and is not an empty folder, or is one
    of the sources or inside one. Also raises `InputError` for sources that can't be read, and `WorkError` if writing
    fails.
    """
    require_free(dest, *sources)
    place = dest.resolve()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(place) as folder:
            root = folder / "content"
            root.mkdir()
            yield root
            root.chmod(0o755)
            root.replace(place)
    except OSError as e:
        raise _error(e, dest, sources) from e


@contextmanager
def no_folder_left(folder: Path) -> Iterator[None]:
    """Let the block create a folder. If the block fails, remove the folder if it is empty and new."""
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        yield
    except BaseException:
        for created in made:
            with suppress(OSError):
                created.rmdir()
        raise


def require_free(dest: Path, *sources: Path) -> None:
    """Raise `InputError` if a new folder can't become ``dest``, before anything is written."""
    for source in sources:
        if source.is_dir() and dest.resolve().is_relative_to(source.resolve()):
            raise InputError(dest, f"is a folder in {source}, which is copied", expected="a folder outside it")
        if source.is_file() and dest.exists() and dest.samefile(source):
            expected, remedy = "a new or empty folder", "Name another folder."
            raise InputError(dest, "is a file to read", expected=expected, remedy=remedy)
    try:
        if dest.is_dir() and not any(dest.iterdir()):
            _require_replaceable_folder(dest)
            return
        exists = dest.is_symlink() or dest.exists()
    except OSError as e:
        raise read_error(dest, e) from e
    if exists:
        raise InputError(dest, "already exists", expected="a new or empty folder", remedy="Remove it first.")


def _require_replaceable_folder(dest: Path) -> None:
    found = "is a mount point" if dest.is_mount() else "is the current folder" if dest.samefile(".") else ""
    if found:
        remedy = "Name a new folder below it."
        raise InputError(dest, f"{found}, but the result would replace it", remedy=remedy)


def _error(error: OSError, dest: Path, sources: tuple[Path, ...]) -> InputError:
    if error.filename and any(Path(error.filename).is_relative_to(source) for source in sources):
        return read_error(error.filename, error, remedy="Check its permissions.")
    return write_error(dest, error)
