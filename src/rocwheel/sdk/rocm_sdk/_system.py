"""Reads all information about a machine, so that tests can simulate another machine."""

from __future__ import annotations

import errno
import os
import sys
from functools import lru_cache
from pathlib import Path

if sys.platform != "win32":
    import grp
    import pwd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TIME_LIMIT = 30
"""The time limit for programs, in seconds."""


class System:
    """The file system below ``root``, the environment variables, and the platform of a machine."""

    def __init__(
        self,
        root: Path = Path("/"),
        environ: Mapping[str, str] | None = None,
        platform: str = sys.platform,
    ) -> None:
        self._root = root
        self._environ = os.environ if environ is None else environ
        self.platform = platform

    def variable(self, name: str) -> str:
        """Return the value of an environment variable without surrounding blanks; empty if the variable isn't set."""
        return self._environ.get(name, "").strip()

    def variables(self) -> dict[str, str]:
        """Return all environment variables."""
        return dict(self._environ)

    def home(self) -> str:
        """Return the path of the user's home folder, or an empty string if unknown."""
        path = self._environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 (Path raises for an unknown one)
        return path if os.path.isabs(path) else ""  # noqa: PTH117

    def read_text(self, path: str) -> str | None:
        """Return the text of a file, or `None` if it can't be read."""
        try:
            return self._locate(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def refusal(self, path: str) -> str:
        """Return the error that prevents reading a file, such as ``EACCES``, or an empty string.

        Files in sysfs fail when they are read, not when they are opened.
        """
        try:
            self._locate(path).read_bytes()
        except OSError as e:
            return errno.errorcode.get(e.errno or 0, str(e))
        return ""

    def read_given(self, path: str) -> str | None:
        """Return the text of a file whose path is in a variable, or `None` if the file can't be read.

        Like the variables, the file belongs to this process and not to the machine below ``root``.
        """
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def output(self, program: str) -> str | None:
        """Return the cached output of a program, or `None` if the program is absent, fails, or hangs."""
        return _output(program)

    def absolute(self, path: str) -> str:
        """Return the absolute path. An empty path represents the working directory."""
        return os.path.abspath(path)  # noqa: PTH100 (no Path: the empty one is the working directory)

    def exists(self, path: str) -> bool:
        """Return whether a file, folder, or device exists and is accessible."""
        try:
            return self._locate(path).exists()
        except OSError:
            return False

    def list_names(self, folder: str) -> list[str]:
        """Return the names in a folder, or an empty list if the folder can't be listed."""
        try:
            return sorted(entry.name for entry in self._locate(folder).iterdir())
        except OSError:
            return []

    def listing_refusal(self, folder: str) -> str:
        """Return the error that prevents listing a folder, such as ``ENOENT``, or an empty string."""
        try:
            next(self._locate(folder).iterdir(), None)
        except OSError as e:
            return errno.errorcode.get(e.errno or 0, str(e))
        return ""

    def real_path(self, path: str) -> str:
        """Return the path with all symbolic links resolved. Two paths to the same file have the same result."""
        return os.path.realpath(self._locate(path))

    def device_refusal(self, path: str) -> str:
        """Return the error, such as ``EPERM``, that prevents opening a device to read and write, or an empty string."""
        try:
            os.close(os.open(self._locate(path), os.O_RDWR | getattr(os, "O_CLOEXEC", 0)))
        except OSError as e:
            return errno.errorcode.get(e.errno or 0, str(e))
        return ""

    def owner_group(self, path: str) -> tuple[str, int]:
        """Return the name and the number of a file's group.

        If the group has no name, the number is also used as the name.
        """
        number = self._locate(path).stat().st_gid
        try:
            return grp.getgrgid(number).gr_name, number
        except KeyError:
            return str(number), number

    def has_group(self, number: int) -> bool:
        """Return whether this process is in a group."""
        return number in {os.getegid(), *os.getgroups()}

    def is_member(self, number: int) -> bool:
        """Return whether the user was added to a group. The change takes effect the next time the user logs in."""
        try:
            return self.user() in grp.getgrgid(number).gr_mem
        except KeyError:
            return False

    def user(self) -> str:
        """Return the user's name, or the user ID if the user has no name."""
        try:
            return pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            return str(os.geteuid())

    def _locate(self, path: str) -> Path:
        return self._root / path.lstrip("/")


@lru_cache(maxsize=None)
def _output(program: str) -> str | None:
    import subprocess  # noqa: PLC0415 (slow to import, and needed only to run programs)

    hidden = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    try:
        done = subprocess.run(
            [program],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIME_LIMIT,
            check=True,
            creationflags=hidden,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace")
