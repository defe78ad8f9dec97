"""Writes files and folders that appear under their names only when they are whole."""

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
"""All bits that chmod(2) takes."""
UNSAFE = 0o6002
"""Setuid, setgid, and write permission for everybody: what the audit calls wrong."""
_SAFE = 0o755
_READABLE = 0o644
_ANY_EXECUTE = 0o111


def safe_mode(mode: int) -> int:
    """Return the bits that a copy keeps: none by which it runs as another user, or by which others may write to it.

    Without any, as in archives that have none, they are those that installers set.
    """
    return mode & _SAFE or _READABLE


def plain_mode(mode: int) -> int:
    """Return 0o755 for anything executable, else 0o644: the umask of whoever made it must not show."""
    return _SAFE if mode & _ANY_EXECUTE else _READABLE


def check_destination(dest_dir: Path, *, option: str = "--dest-dir") -> None:
    """Raise `InputError` if something at or above ``dest_dir``, which ``option`` has named, is not a folder."""
    try:
        nearest = next(path for path in (dest_dir, *dest_dir.parents) if path.exists() or path.is_symlink())
        is_folder = nearest.is_dir()
    except OSError as e:
        raise read_error(dest_dir, e) from e
    if not is_folder:
        raise InputError(nearest, "not a folder", expected="a folder to write to", remedy=f"Change {option}.")


def check_output(output: Path, *, option: str = "--output") -> None:
    """Raise `InputError` where the file ``output`` can't go: a folder or device stands there, or a file above it.

    A link that leads nowhere is no fault: the file takes its place.
    """
    check_place(output, option=option)
    check_destination(output.parent, option=option)
    if output.is_dir():
        raise InputError(output, "a folder", expected="a file to write to", remedy=f"Change {option}.")


def check_place(output: Path, *, option: str = "--output") -> None:
    """Raise `InputError` where neither a file nor a folder ``output`` can go: a device or pipe stands there.

    ``-``, standard output elsewhere, is a fault, too.
    """
    if str(output) == "-":
        raise InputError(option, "is -, and nothing is written to standard output", remedy="Name a file.")
    try:
        is_other = output.exists() and not output.is_file() and not output.is_dir()
    except OSError as e:
        raise read_error(output, e) from e
    if is_other:
        raise InputError(output, "not a regular file", expected="a file to write to", remedy=f"Change {option}.")


def check_other(output: Path, given: Path | None, what: str) -> None:
    """Raise `InputError` where the file ``output`` would take the place of ``given``, which is ``what`` and is read."""
    try:
        is_given = given is not None and output.resolve() == given.resolve()
    except (OSError, RuntimeError):  # a ring of links, which nothing is read from
        return
    if is_given:
        raise InputError(output, f"is {what}", expected="another file to write to")


_WRITEBACK_STEP = 16 << 20


class AtomicFile:
    """A temporary file next to ``path``. `commit` syncs it to disk and gives it that name; otherwise no trace is left.

    Creating, writing and committing it raise `WorkError` when the folder can't be written or the disk is full. Writes
    are buffered: a full disk may show only at a later step. With ``makes_folder``, folders on the way are made.
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
        """That of the file when it had got its name."""
        self._writeback_begun = 0
        self._is_synced = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write bytes at the current position."""
        with self._reporting():
            self.file.write(data)
            if self.file.tell() - self._writeback_begun >= _WRITEBACK_STEP:
                self._begin_writeback()

    def overwrite(self, offset: int, data: bytes) -> None:
        """Replace bytes that were written before, without moving the current position."""
        with self._reporting():
            position = self.file.tell()
            self.file.seek(offset)
            self.file.write(data)
            self.file.seek(position)

    def read(self, start: int, stop: int) -> bytes:
        """Return bytes that were written before, without moving the current position."""
        with self._reporting():
            self.file.flush()
            return read_at(self.file.fileno(), stop - start, start)

    def tell(self) -> int:
        """Return the current position, in bytes from the beginning of the file."""
        return self.file.tell()

    def begin_writeback(self) -> None:
        """Have the kernel begin to write to disk what is left, while other files are written; nothing comes later."""
        with self._reporting():
            self._begin_writeback()

    def _begin_writeback(self) -> None:
        """Have the kernel begin to write to disk what has come since, so that `commit` finds little left to sync.

        Linux begins writeback of a range that the process no longer needs; it doesn't wait for the disk.
        """
        self.file.flush()
        size = self.file.tell() - self._writeback_begun
        os.posix_fadvise(self.file.fileno(), self._writeback_begun, size, os.POSIX_FADV_DONTNEED)
        self._writeback_begun += size

    def sync(self) -> None:
        """Wait until all bytes are on the disk, so that `commit` need not; none may be written any more."""
        with self._reporting():
            self.file.flush()
            os.fsync(self.file.fileno())
            self._is_synced = True

    def commit(self) -> None:
        """Sync the bytes to disk and give the file its name; it is discarded when that fails."""
        self._finish(self._replace)

    def commit_new(self) -> bool:
        """Do as `commit` does if nothing has that name, and return whether nothing had; else the file is discarded.

        One step of the file system finds that out and gives the name. Where it has no links for that, it takes two.
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
        """Remove the temporary file; harmless after `commit`."""
        if self._is_gone:
            return
        with suppress(OSError):
            self.file.close()
        # What can't be removed, as where the file system has turned read-only, must not hide why the work failed.
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
    """Refuse to take the name of what is neither a file nor a symlink to something, and that of an open file."""
    if not (path.is_file() or path.is_dir()) or _leads_to_open_file(path):
        # Taking the name of a device or a pipe would replace it: as root, even /dev/null.
        raise WorkError(path, "is not a regular file, so it can't be replaced", remedy="Name another output.")
    if path.is_dir() and not path.is_symlink():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))


def _leads_to_open_file(path: Path) -> bool:
    """Return whether a path is that of a file which a process has open, such as ``/dev/stdout``, by links or itself.

    Whatever that file is, its name there is a link of the system, which others need.
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
    """Open an `AtomicFile` that is committed when the block ends well, and discarded otherwise."""
    target = AtomicFile(path, mode=mode)
    try:
        yield target
        target.commit()
    finally:
        target.discard()


SYNCING = 4
"""Threads that wait for the disk, which writes what several ask for in one go."""


@contextmanager
def atomic_files(executor: Executor) -> Iterator[list[AtomicFile]]:
    """Yield a list for files that are written in the block, and committed when it ends well, or else discarded.

    Each gets its name once all are on the disk, which `SYNCING` workers of ``executor`` wait for. Where one can't be
    committed, those before it have their names. Raises what `AtomicFile.commit` does.
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
    """Yield an empty folder that becomes ``dest`` when the block ends well; otherwise nothing is left.

    ``sources`` are what the block reads. Raises `InputError` when ``dest`` exists and is not an empty folder, is in one
    of them, or is one; `InputError` for what the block can't read there, and `WorkError` for what it can't write.
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
    """Let the block make a folder: where the block fails, none is left that is empty and wasn't there."""
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        yield
    except BaseException:
        for created in made:
            with suppress(OSError):
                created.rmdir()
        raise


def require_free(dest: Path, *sources: Path) -> None:
    """Raise `InputError` when a new folder can't become ``dest``, before everything is written."""
    for source in sources:
        if source.is_dir() and dest.resolve().is_relative_to(source.resolve()):
            raise InputError(dest, f"a folder in {source}, which is copied", expected="one outside of it")
        if source.is_file() and dest.exists() and dest.samefile(source):
            expected, remedy = "a new or empty folder", "Name another one."
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
        raise InputError(dest, f"{found}, and the result would take its place", remedy=remedy)


def _error(error: OSError, dest: Path, sources: tuple[Path, ...]) -> InputError:
    if error.filename and any(Path(error.filename).is_relative_to(source) for source in sources):
        return read_error(error.filename, error, remedy="Check its permissions.")
    return write_error(dest, error)
