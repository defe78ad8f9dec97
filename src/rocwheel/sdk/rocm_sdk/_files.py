"""Reads files of the packages, which may be damaged or replaced.

`Path.rglob` silently skips folders that the current user may not list. In Python 3.14 and later, `Path.exists` and
similar methods return `False` if the disk fails or the current user has no access.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO, Any, TypeVar

    Kind = TypeVar("Kind")


class NotAFileError(OSError):
    """A path isn't a regular file. The message contains its type."""

    def __init__(self, path: Path, mode: int) -> None:
        self.path, self.found = path, next((name for test, name in KINDS if test(mode)), "something else")
        super().__init__(f"{path} is {self.found}, not a file")


OPENING = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOINHERIT", "O_BINARY"))
"""The flags for opening files. No system supports all of these flags."""

KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_regular(path: Path) -> IO[bytes]:
    """Open a file for reading. Raises `NotAFileError` for other types, and `OSError` if the file can't be opened."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise NotAFileError(path, mode)
    file = os.fdopen(os.open(path, OPENING), "rb")
    mode = os.fstat(file.fileno()).st_mode
    if not stat.S_ISREG(mode):  # another process has replaced the file
        file.close()
        raise NotAFileError(path, mode)
    return file


def read_regular(path: Path) -> str:
    """Return the text of a UTF-8 file with its original line endings.

    Raises the same errors as `open_regular`, and `UnicodeDecodeError`.
    """
    try:
        with open_regular(path) as file:
            return file.read().decode()
    except OSError as e:
        if e.errno is None or e.filename:
            raise
        raise OSError(e.errno, e.strerror, str(path)) from e  # errors from reading don't contain the file name


NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Errors that indicate that a path doesn't exist. After other errors, the path may exist."""


def list_below(folder: Path) -> list[Path]:
    """Return all files, links, and folders below a folder, sorted. Raises `OSError` if a folder can't be listed."""
    return sorted(_walk(folder))


def _walk(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        for entry in entries:
            path = folder / entry.name
            yield path
            if entry.is_dir(
                follow_symlinks=False
            ):  # `os.walk` would follow a link if the disk fails to report that it is a link
                yield from _walk(path)


def is_there(path: Path) -> bool:
    """Return whether a path exists. Raises `OSError` if the system can't determine this."""
    return _mode(path) != 0


def is_file(path: Path) -> bool:
    """Return whether a path points to a file. Raises `OSError` if the system can't determine this."""
    return stat.S_ISREG(_mode(path))


def is_folder(path: Path) -> bool:
    """Return whether a path points to a folder. Raises `OSError` if the system can't determine this."""
    return stat.S_ISDIR(_mode(path))


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError as e:
        if e.errno in NOWHERE:
            return 0
        raise


SHOWN = 60
"""The maximum length of an invalid value in a message."""


class DamagedFileError(ValueError):
    """A file of a package is damaged.

    The message contains the file, the value that was found, and the expected value.
    """

    def __init__(self, path: Path, found: str, expected: str) -> None:
        super().__init__(f"{path}: {found}; expected {expected}")
        self.path, self.found, self.expected = path, found, expected


def read_json(path: Path, kind: type[Kind], expected: str) -> Kind:
    """Return the JSON value in a file.

    Raises `DamagedFileError` if the file can't be read or its value has a different type, and `FileNotFoundError` if
    the file is missing.
    """
    try:
        import json  # noqa: PLC0415 (slow to import, and not needed to find libraries)

        value = json.loads(read_regular(path))
    except FileNotFoundError:
        raise
    except NotAFileError as e:
        raise DamagedFileError(path, f"is {e.found}", expected) from e
    except OSError as e:
        raise DamagedFileError(path, f"can't be read ({e.strerror})", expected) from e
    except UnicodeDecodeError as e:
        raise DamagedFileError(path, f"is not UTF-8 at byte {e.start}", expected) from e
    except ValueError as e:
        raise DamagedFileError(path, f"is not JSON ({e})", expected) from e
    except RecursionError as e:
        raise DamagedFileError(path, "is nested too deeply", expected) from e
    if not isinstance(value, kind):
        raise DamagedFileError(path, f"contains {_show(value)}", expected)
    return value


def read_field(path: Path, value: Any, name: str, kind: type[Kind]) -> Kind:
    """Return a field of type ``kind`` of a JSON object. Raises `DamagedFileError` for other types."""
    expected = f"an object whose {name!r} is {_NAMES[kind]}"
    if not isinstance(value, dict) or name not in value:
        raise DamagedFileError(path, f"has {_show(value)}", expected)
    field = value[name]
    if not isinstance(field, kind):
        raise DamagedFileError(path, f"has {_show(field)} for {name!r}", expected)
    return field


_NAMES: dict[type, str] = {str: "a string", list: "a list", dict: "an object"}


def _show(value: Any) -> str:
    import json  # noqa: PLC0415

    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
