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
"""All bits for chmod(2)."""
UNSAFE = 0o6002
"""Setuid, setgid, and write permission for everyone. The audit reports these bits."""
_SAFE = 0o755
_READABLE = 0o644
_ANY_EXECUTE = 0o111


def safe_mode(mode: int) -> int:
    """Return a mode without the bits that would let a copy run as another user, or let others write to it.

    For mode 0, as in archives without modes, return the mode that installers set.
    """
    return mode & _SAFE or _READABLE


def plain_mode(mode: int) -> int:
    """Return 0o755 for executable files, and 0o644 otherwise, so that the creator's umask has no effect."""
    return _SAFE if mode & _ANY_EXECUTE else _READABLE


def check_destination(dest_dir: Path, *, option: str = "--dest-dir") -> None:
    """Raise `InputError` if ``dest_dir``, the value of ``option``, or a folder above it isn't a folder."""
    try:
        nearest = next(path for path in (dest_dir, *dest_dir.parents) if path.exists() or path.is_symlink())
        is_folder = nearest.is_dir()
    except OSError as e:
        raise read_error(dest_dir, e) from e
    if not is_folder:
        raise InputError(nearest, "isn't a folder", expected="an output folder", remedy=f"Change {option}.")


def check_output(output: Path, *, option: str = "--output") -> None:
    """Raise `InputError` if the file ``output`` is a folder or device, or if its parent is a file.

    A broken link is valid, because the file replaces it.
    """
    check_place(output, option=option)
    check_destination(output.parent, option=option)
    if output.is_dir():
        raise InputError(output, "is a folder", expected="an output file", remedy=f"Change {option}.")


def check_place(output: Path, *, option: str = "--output") -> None:
    """Raise `InputError` if ``output`` can't be a file or a folder because it is a device or pipe.

    Also rejects ``-``, which means standard output in other options.
    """
    if str(output) == "-":
        raise InputError(option, "is -, but this command can't write to standard output", remedy="Pass a file name.")
    try:
        is_other = output.exists() and not output.is_file() and not output.is_dir()
    except OSError as e:
        raise read_error(output, e) from e
    if is_other:
        raise InputError(output, "isn't a regular file", expected="an output file", remedy=f"Change {option}.")


def check_other(output: Path, given: Path | None, what: str) -> None:
    """Raise `InputError` if the file ``output`` would replace the input ``given``.

    ``what`` describes the input in messages.
    """
    try:
        is_given = given is not None and output.resolve() == given.resolve()
    except (OSError, RuntimeError):  # a loop of links, which can't be read
        return
    if is_given:
        raise InputError(output, f"is {what}", expected="a different output file")


_WRITEBACK_STEP = 16 << 20


class AtomicFile:
    """A temporary file next to ``path``. `commit` syncs it and gives it the final name. Otherwise, it is removed.

    Creating, writing, and committing raise `WorkError` if the folder isn't writable or the disk is full. Writes are
    buffered, so a full disk might be detected only in a later step. With ``makes_folder``, missing parent folders are
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
        """The stamp of the file under its final name."""
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
        """Tell the kernel to start writing the remaining bytes to disk while other files are written.

        Call this after the last write.
        """
        with self._reporting():
            self._begin_writeback()

    def _begin_writeback(self) -> None:
        """Tell the kernel to start writing the new bytes to disk, so that `commit` has little left to sync.

        Linux starts writeback of a range that the process no longer needs, without waiting for the disk.
        """
        self.file.flush()
        size = self.file.tell() - self._writeback_begun
        os.posix_fadvise(self.file.fileno(), self._writeback_begun, size, os.POSIX_FADV_DONTNEED)
        self._writeback_begun += size

    def sync(self) -> None:
        """Wait until all bytes are on disk, so that `commit` doesn't wait. No bytes may be written afterwards."""
        with self._reporting():
            self.file.flush()
            os.fsync(self.file.fileno())
            self._is_synced = True

    def commit(self) -> None:
        """Sync the bytes to disk and give the file its final name. If that fails, discard the file."""
        self._finish(self._replace)

    def commit_new(self) -> bool:
        """Commit the file only if the name is free, and return whether it was free. Otherwise, discard the file.

        A single file system operation checks and assigns the name. On file systems without hard links, this takes two
        operations.
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
        """Remove the temporary file. This has no effect after `commit`."""
        if self._is_gone:
            return
        with suppress(OSError):
            self.file.close()
        # A failed removal, for example, on a file system that became read-only, must not hide why the work failed.
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
    """Refuse to replace any open file, and anything that is neither a file nor a link."""
    if not (path.is_file() or path.is_dir()) or _leads_to_open_file(path):
        # Replacing a device or a pipe would destroy it. Root could even destroy /dev/null.
        raise WorkError(path, "isn't a regular file, so it can't be replaced", remedy="Choose another output.")
    if path.is_dir() and not path.is_symlink():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))


def _leads_to_open_file(path: Path) -> bool:
    """Return whether a path leads, directly or through links, to an open file of a process, such as ``/dev/stdout``.

    Such a name is a link that the system provides and other programs need.
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
    """Open an `AtomicFile` that is committed if the block succeeds, or discarded otherwise."""
    target = AtomicFile(path, mode=mode)
    try:
        yield target
        target.commit()
    finally:
        target.discard()


SYNCING = 4
"""The number of threads that wait for the disk; the disk combines the writes from several threads."""


@contextmanager
def atomic_files(executor: Executor) -> Iterator[list[AtomicFile]]:
    """Yield a list for files that the block writes.

    They are committed if the block succeeds, or discarded otherwise.

    Files get their final names only after all of them are on disk. `SYNCING` workers from ``executor`` wait for that.
    If a file can't be committed, the earlier files keep their names. Raises the same errors as `AtomicFile.commit`.
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
    """Yield an empty folder that becomes ``dest`` if the block succeeds. Otherwise, the folder is removed.

    ``sources`` are the block's inputs. Raises `InputError` if ``dest`` exists and isn't an empty folder, or if it is
    one of the sources or inside one. Also raises `InputError` for sources that can't be read, and `WorkError` if
    writing fails.
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
    """Let the block create a folder. If the block fails, remove the folder if it is new and empty."""
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        yield
    except BaseException:
        for created in made:
            with suppress(OSError):
                created.rmdir()
        raise


def require_free(dest: Path, *sources: Path) -> None:
    """Raise `InputError` if ``dest`` can't become a new folder, before anything is written."""
    for source in sources:
        if source.is_dir() and dest.resolve().is_relative_to(source.resolve()):
            raise InputError(
                dest, f"is a folder in {source}, which this command copies", expected=f"a folder outside {source}"
            )
        if source.is_file() and dest.exists() and dest.samefile(source):
            expected, remedy = "a new or empty folder", "Choose another folder."
            raise InputError(dest, "is an input file", expected=expected, remedy=remedy)
    try:
        if dest.is_dir() and not any(dest.iterdir()):
            _require_replaceable_folder(dest)
            return
        exists = dest.is_symlink() or dest.exists()
    except OSError as e:
        raise read_error(dest, e) from e
    if exists:
        raise InputError(
            dest,
            "already exists",
            expected="a new or empty folder",
            remedy="Choose another folder, or remove this folder.",
        )


def _require_replaceable_folder(dest: Path) -> None:
    found = "is a mount point" if dest.is_mount() else "is the current folder" if dest.samefile(".") else ""
    if found:
        remedy = "Pass a new folder inside it."
        raise InputError(dest, f"{found}, which the output would replace", remedy=remedy)


def _error(error: OSError, dest: Path, sources: tuple[Path, ...]) -> InputError:
    if error.filename and any(Path(error.filename).is_relative_to(source) for source in sources):
        return read_error(error.filename, error, remedy="Check its permissions.")
    return write_error(dest, error)
