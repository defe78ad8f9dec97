"""The binaries in a place that a command is given: a file, a folder with all that is below it, or a wheel's members."""

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
"""The folder of a wheel whose files are installed beside all others."""


def installed_place(member: str) -> str:
    """Return where a member of a wheel is once that is installed; any other place stays as it is."""
    return _INSTALLED.sub("", member, count=1)


class Binary(msgspec.Struct, frozen=True):
    """A file that is worth reading, wherever it is.

    ``name`` is how messages call it: its path, or ``wheel!member``. ``place`` is its path, with ``/``, below the folder
    or in the wheel that it was found in; empty for a file that was itself given, which comes whatever is in it. A
    member of another package than a wheel was unpacked to ``file``, which is also the path of a file elsewhere.
    """

    name: str
    place: str
    size: int
    member: ZipMember | None = None
    file: Path | None = None

    @property
    def folder(self) -> Path | None:
        """The folder that the file is in, where other files belong to it; none for a member of a package."""
        is_itself = self.member is None and self.file in {None, Path(self.name)}
        return Path(self.name).parent if is_itself else None

    def for_any_machine(self) -> Binary:
        """Return the binary as machines that share the file can read it."""
        if self.member is None:
            return self
        member = msgspec.structs.replace(self.member, packed=self.member.packed.for_any_machine())
        return msgspec.structs.replace(self, member=member)

    @contextmanager
    def view(self, *, limit: int | None = None) -> Iterator[Data]:
        """Yield the bytes; a packed member of a wheel is unpacked into a nameless file, which goes with the block.

        Raises `InputError` for a file that can't be read, and for a member that is damaged or that unpacks to more than
        ``limit`` bytes, if there is one.
        """
        if self.member is None:
            with FileRange.whole(self.file or Path(self.name)).view() as data:
                yield data
            return
        with open_content(self.member, limit=limit) as unpacked, unpacked.view() as data:
            yield data


def is_wheel(path: Path) -> bool:
    """Return whether a file is a ZIP archive, as wheels are, rather than a binary with an archive behind it.

    Raises `InputError` when it can't be read.
    """
    return _head_of_archive(path)[1]


def inner_wheel_warnings(paths: Iterable[Path]) -> Iterator[str]:
    """Yield a warning for each wheel among the files of a folder: what changes the others doesn't open it."""
    for path in paths:
        if path.suffix == ".whl" and path.is_file():
            yield f"{path}: is a wheel, which stays as it is: give it by itself"


def is_given_wheel(path: Path) -> bool:
    """Return whether a file that was itself given is a wheel, as `is_wheel` does.

    Raises `InputError` for one that is named as a wheel or begins as an archive and is none, or that can't be read.
    """
    if not path.is_file():
        return False
    head, is_archive = _head_of_archive(path)
    if not is_archive and not is_binary(head) and (head.startswith(ZIP_MAGIC) or path.suffix == ".whl"):
        expected = "a whole wheel, with its directory at the end"
        raise InputError(path, "a truncated or damaged archive", expected=expected)
    return is_archive


def _head_of_archive(path: Path) -> tuple[bytes, bool]:
    """Return the first bytes of a file, and whether it is a ZIP archive; neither of what is no file."""
    if not path.is_file():
        return b"", False
    try:
        with open_regular(path) as file:
            head = file.read(HEAD_SIZE)
            return head, not is_binary(head) and zipfile.is_zipfile(file)
    except OSError as e:
        raise read_error(path, e) from e


def read_binaries(path: Path, read: Callable[[Data, Binary], Result]) -> Iterator[tuple[str, Result | InputError]]:
    """Yield the name of each binary at ``path`` and what ``read`` makes of its bytes.

    In a folder or a wheel, a file that is damaged or that ``read`` refuses comes with its error. An error about
    ``path`` itself is raised.
    """
    for name, result in read_found(list(find_binaries(path)), read):
        if isinstance(result, InputError) and name == str(path):
            raise result
        yield name, result


def read_found(
    binaries: Iterable[Binary | InputError], read: Callable[[Data, Binary], Result], *, limit: int | None = None
) -> Iterator[tuple[str, Result | InputError]]:
    """Yield the name of each of ``binaries``, and what ``read`` makes of its bytes, or its error.

    A packed member that unpacks to more than ``limit`` bytes comes with an error.
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
    """Yield binaries, and report each as done when the next one is asked for."""
    sizes = [0 if isinstance(found, InputError) else found.size for found in binaries]
    return tracked(progress, label, binaries, sizes)


def find_all_binaries(paths: Iterable[Path]) -> Iterator[Binary | InputError]:
    """Yield what `find_binaries` finds at each of ``paths``."""
    for path in paths:
        yield from find_binaries(path)


def find_places(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the place of every file in the folders and wheels among ``paths``, whatever it is, as `Binary` has it.

    What can't be read is passed over: `find_binaries` reports it.
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
    """Yield the binaries at ``path``, in order: the file itself, those below a folder, or those in a wheel.

    What can't be read, is damaged or is not a regular file comes as the error that says so; the rest follows. In a
    folder, symlinks are passed over, and files named as wheels are looked into; files that are no binaries don't come.
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
        # A pipe would be waited for, a device read without end.
        yield InputError(path, "isn't a regular file", expected="a binary, a folder or a wheel")


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
