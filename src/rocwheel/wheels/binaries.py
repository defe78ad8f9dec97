"""Finds the binaries at a path: a file, every file below a folder, or the members of a wheel."""

from __future__ import annotations

import os
import re
import stat
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from rocwheel.binary.kind import HEAD_SIZE, is_binary
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.progress import Progress, tracked
from rocwheel.core.reading import FileRange, open_regular
from rocwheel.core.remote_file import source_of
from rocwheel.wheels.zip_directory import read_directory
from rocwheel.wheels.zip_headers import ZIP_MAGIC
from rocwheel.wheels.zip_reader import ZipMember, member_head, open_content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rocwheel.core.reading import Data

Result = TypeVar("Result")

_INSTALLED = re.compile(r"\A[^/]+\.data/(?:purelib|platlib)/")
"""The folder in a wheel whose files are installed next to the other packages."""


def installed_place(member: str) -> str:
    """Return the path at which a wheel member is installed, or any other path unchanged."""
    return _INSTALLED.sub("", member, count=1)


class Binary(msgspec.Struct, frozen=True):
    """A file to read: a plain file or an archive member.

    ``name`` is the name used in messages: its path, or ``wheel!member``. ``place`` is its ``/``-separated path inside
    the folder or wheel where it was found. ``place`` is empty for a file that was specified directly; such a file is
    read regardless of its content. If the package isn't a wheel, a member is unpacked to ``file``. For a remote file,
    ``file`` is the path of its placeholder.
    """

    name: str
    place: str
    size: int
    member: ZipMember | None = None
    file: Path | None = None

    @property
    def folder(self) -> Path | None:
        """The folder that contains the file and the related files, or `None` for a package member."""
        is_itself = self.member is None and self.file in {None, Path(self.name)}
        return Path(self.name).parent if is_itself else None

    def for_any_machine(self) -> Binary:
        """Return the binary in a form that can be read on any machine that has access to the file."""
        if self.member is None:
            return self
        member = msgspec.structs.replace(self.member, packed=self.member.packed.for_any_machine())
        return msgspec.structs.replace(self, member=member)

    @contextmanager
    def view(self, *, limit: int | None = None) -> Iterator[Data]:
        """Yield the bytes of the file or member.

        A compressed wheel member is unpacked into an unnamed file that is deleted when the block ends. Raises
        `InputError` if the file can't be read, or if a member is damaged or unpacks to more than ``limit`` bytes.
        """
        if self.member is None:
            with FileRange.whole(self.file or Path(self.name)).view() as data:
                yield data
            return
        with open_content(self.member, limit=limit) as unpacked, unpacked.view() as data:
            yield data


def is_wheel(path: Path) -> bool:
    """Return whether a file is a ZIP archive, like a wheel, and not a binary with an appended archive.

    Raises `InputError` if the file can't be read.
    """
    return _head_of_archive(path)[1]


def inner_wheel_warnings(paths: Iterable[Path]) -> Iterator[str]:
    """Yield a warning for each wheel in a folder. Commands that change the other files don't open these wheels."""
    for path in paths:
        if path.suffix == ".whl" and path.is_file():
            yield f"{path}: is a wheel and is left unchanged; to process it, specify the wheel itself"


def is_given_wheel(path: Path) -> bool:
    """Return whether a file that was specified directly is a wheel.

    Raises `InputError` if the file can't be read, or if its name or first bytes indicate a wheel but it isn't a wheel.
    """
    if not path.is_file():
        return False
    head, is_archive = _head_of_archive(path)
    if not is_archive and not is_binary(head) and (head.startswith(ZIP_MAGIC) or path.suffix == ".whl"):
        expected = "a complete wheel, with its central directory at the end"
        raise InputError(path, "is a truncated or damaged archive", expected=expected)
    return is_archive


def _head_of_archive(path: Path) -> tuple[bytes, bool]:
    """Return the first bytes of a file, and whether it is a ZIP archive, or empty values if it isn't a file."""
    if not path.is_file():
        return b"", False
    try:
        with open_regular(path) as file:
            head = file.read(HEAD_SIZE)
            return head, not is_binary(head) and zipfile.is_zipfile(file)
    except OSError as e:
        raise read_error(path, e) from e


def read_binaries(path: Path, read: Callable[[Data, Binary], Result]) -> Iterator[tuple[str, Result | InputError]]:
    """Yield the name of each binary at ``path``, and the result of ``read`` for its bytes.

    If a file in a folder or wheel is damaged, or ``read`` rejects it, yield the error as the result. An error about
    ``path`` itself is raised.
    """
    for name, result in read_found(list(find_binaries(path)), read):
        if isinstance(result, InputError) and name == str(path):
            raise result
        yield name, result


def read_found(
    binaries: Iterable[Binary | InputError], read: Callable[[Data, Binary], Result], *, limit: int | None = None
) -> Iterator[tuple[str, Result | InputError]]:
    """Yield the name of each binary in ``binaries``, and the result of ``read`` for its bytes, or an error.

    A compressed member that unpacks to more than ``limit`` bytes is yielded with an error.
    """
    for found in binaries:
        name = str(found.source) if isinstance(found, InputError) else found.name
        try:
            if isinstance(found, InputError):
                raise found
            with found.view(limit=limit) as data:
                result: Result | InputError = read(data, found)
        except InputError as e:
            result = e
        yield name, result


def tracked_binaries(
    binaries: Sequence[Binary | InputError], label: str, progress: Progress
) -> Iterator[Binary | InputError]:
    """Yield binaries, and report each binary as done when the next one is requested."""
    sizes = [0 if isinstance(found, InputError) else found.size for found in binaries]
    return tracked(progress, label, binaries, sizes)


def find_all_binaries(paths: Iterable[Path]) -> Iterator[Binary | InputError]:
    """Yield the results of `find_binaries` for each path in ``paths``."""
    for path in paths:
        yield from find_binaries(path)


def find_places(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the path of every file in the folders and wheels among ``paths``, in the form of `Binary.place`.

    Unreadable files are skipped, because `find_binaries` reports them.
    """
    for path in paths:
        if path.is_dir():
            for root, _, names in os.walk(path):
                for name in names:
                    if name.endswith(".whl"):
                        yield from _member_names(Path(root, name))
                    yield Path(root, name).relative_to(path).as_posix()
        elif path.is_file() and zipfile.is_zipfile(path):
            yield from _member_names(path)


def _member_names(wheel: Path) -> Iterator[str]:
    try:
        yield from (member.name for member in read_directory(wheel))
    except InputError:
        return


def find_binaries(path: Path) -> Iterator[Binary | InputError]:
    """Yield the binaries at ``path``, in order: the file itself, or the binaries in a folder or wheel.

    For anything that can't be read, is damaged, or isn't a regular file, an error is yielded, and the search continues.
    In a folder, symlinks are skipped, wheels are opened, and files that aren't binaries are left out.
    """
    try:
        mode = path.stat().st_mode
    except OSError as e:
        yield read_error(path, e)
        return
    if stat.S_ISDIR(mode):
        unreadable: list[OSError] = []
        walk = os.walk(path, onerror=unreadable.append)
        for file in sorted(Path(root, name) for root, _, names in walk for name in names):
            yield from _find_file(file, path)
        for error in unreadable:
            yield read_error(error.filename, error, remedy="")
    elif stat.S_ISREG(mode):
        yield from _find_given(path)
    else:
        # Reading a pipe would block, and reading a device would never end.
        yield InputError(path, "isn't a regular file", expected="a binary, a folder, or a wheel")


def _find_given(path: Path) -> Iterator[Binary | InputError]:
    try:
        is_archive = is_given_wheel(path)
    except InputError as e:
        yield e
    else:
        file = path if source_of(path) else None
        yield from _find_members(path) if is_archive else [Binary(str(path), "", path.stat().st_size, file=file)]


def _find_file(path: Path, folder: Path) -> Iterator[Binary | InputError]:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return
        if path.suffix == ".whl":
            yield from _find_members(path)
            return
        with path.open("rb") as file:
            if is_binary(file.read(HEAD_SIZE)):
                yield Binary(str(path), path.relative_to(folder).as_posix(), os.fstat(file.fileno()).st_size)
    except OSError as e:
        yield read_error(path, e)


def _find_members(wheel: Path) -> Iterator[Binary | InputError]:
    try:
        members = read_directory(wheel)
    except InputError as e:
        yield e
        return
    for member in members:
        yield from _find_member(member)


def _find_member(member: ZipMember) -> Iterator[Binary | InputError]:
    try:
        if is_binary(member_head(member)):
            yield Binary(member.source, member.name, member.size, member)
    except InputError as e:
        yield e
