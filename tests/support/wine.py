"""Programs of Windows: compiled by MinGW-w64, run by Wine in a prefix of their own. Tests skip where either is absent.

Wine follows the documented rules by which DLLs are found and programs started. It is kinder than Windows in others: it
opens paths of any length, allows colons in names, and lets everybody make symlinks.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import subprocess
import tempfile
import termios
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.places import CACHE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Compiler", "Wine", "compile_for_windows", "windows_path", "wine"]

_COMPILER = "x86_64-w64-mingw32-gcc"
_WINE = "/usr/lib/wine/wine64"
_SERVER = "/usr/lib/wine/wineserver64"
_INSTALLS = "scripts/install-debian-packages.sh installs it"
_SECONDS = 120
"""The first program in a prefix takes a few seconds, each later one about half a second."""


@dataclass(frozen=True)
class Wine:
    """A prefix, which holds drive C: its registry and a home."""

    prefix: Path

    @property
    def system32(self) -> Path:
        """The folder where drivers put their DLLs. Wine's own files there are those of all prefixes: write none."""
        return self.prefix / "drive_c/windows/system32"

    @contextmanager
    def driver(self, *dlls: Path) -> Iterator[None]:
        """Have copies of DLLs in System32, as a driver puts them there."""
        places = [self.system32 / dll.name for dll in dlls]
        assert not any(place.exists() for place in places)
        for dll, place in zip(dlls, places, strict=True):
            shutil.copyfile(dll, place)
        try:
            yield
        finally:
            for place in places:
                place.unlink()

    def run(
        self,
        program: Path,
        *arguments: str,
        stdin: bytes = b"",
        cwd: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program to its end, without a display; its ``PATH`` is that of Windows, with ``WINEPATH`` before it."""
        environment = _environment(self.prefix) | dict(variables or {})
        command = [_WINE, str(program), *arguments]
        # Output goes to files: a pipe would stay open for as long as the server of the prefix runs.
        with tempfile.TemporaryFile() as typed, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            typed.write(stdin)
            typed.seek(0)
            done = subprocess.run(
                command,
                env=environment,
                cwd=cwd,
                stdin=typed,
                stdout=output,
                stderr=errors,
                timeout=_SECONDS,
                check=False,
            )
            output.seek(0)
            errors.seek(0)
            return subprocess.CompletedProcess(command, done.returncode, output.read(), errors.read())

    def interrupt(self, program: Path, *arguments: str, after: str) -> tuple[int, str]:
        """Run a program in a terminal and type Ctrl-C once it has printed ``after``; return exit code and output."""
        leader, follower = pty.openpty()
        process = subprocess.Popen(
            [_WINE, str(program), *arguments],
            env=_environment(self.prefix) | {"TERM": "xterm"},
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 (no thread holds a lock here)
        )
        os.close(follower)
        try:
            return self._talk(process, leader, after)
        finally:
            process.kill()
            os.close(leader)

    def _talk(self, process: subprocess.Popen[bytes], leader: int, after: str) -> tuple[int, str]:
        printed, is_typed = b"", False
        end = time.monotonic() + _SECONDS
        while process.poll() is None and time.monotonic() < end:
            if not select.select([leader], [], [], 0.1)[0]:
                continue
            try:
                printed += os.read(leader, 1 << 16)
            except OSError:
                break  # the last program that had the terminal has ended
            if not is_typed and after in _plain(printed):
                os.write(leader, b"\x03")
                is_typed = True
        return process.wait(_SECONDS), _plain(printed)


@dataclass(frozen=True)
class Compiler:
    """MinGW-w64's C compiler for x86-64."""

    path: str

    def program(self, source: Path, output: Path, *options: str | Path) -> Path:
        """Compile and link a program, or with ``-shared`` a DLL, and return where it is."""
        command = [self.path, "-O2", "-s", "-Wall", "-Wextra", "-Werror", "-Wl,--no-insert-timestamp"]
        output.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([*command, source, "-o", output, *options], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return output


def windows_path(path: Path) -> str:
    r"""Return how Wine calls a path of Linux: all of it is drive ``Z:``."""
    return "Z:" + str(path).replace("/", "\\")


@pytest.fixture(scope="session")
def compile_for_windows() -> Compiler:
    """Return the compiler, skipping where there is none."""
    path = shutil.which(_COMPILER)
    if path is None:
        pytest.skip(f"no {_COMPILER} (Debian package gcc-mingw-w64-x86-64-win32; {_INSTALLS})")
    return Compiler(path)


@pytest.fixture(scope="session")
def wine() -> Iterator[Wine]:
    """Return a prefix of this session's own, whose server is stopped at the end; skip where there is no Wine."""
    if not (Path(_WINE).exists() and Path(_SERVER).exists()):
        pytest.skip(f"no {_WINE} (Debian package wine64; {_INSTALLS})")
    with tempfile.TemporaryDirectory(prefix="rocwheel-wine-") as folder:
        prefix = Path(folder, "prefix")
        shutil.copytree(_template(), prefix, symlinks=True, copy_function=_link)
        try:
            yield Wine(prefix)
        finally:
            _serve(prefix, "-k", "-w")


@cache
def _template() -> Path:
    """Return a fresh prefix to copy: Wine takes seconds to make one, of 700 MB."""
    version = subprocess.run([_WINE, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    template = CACHE / "wine" / version.replace("/", "_").replace(" ", "_")
    if not template.is_dir():
        template.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=template.parent) as folder:
            made = Path(folder, "prefix")
            made.mkdir()
            boot = [_WINE, "wineboot", "--init"]
            subprocess.run(boot, env=_environment(made), check=True, timeout=_SECONDS, capture_output=True)
            _serve(made, "-w")
            _keep(made, template)
    return template


def _keep(made: Path, template: Path) -> None:
    try:
        made.rename(template)
    except OSError:
        # Another session was quicker.
        assert template.is_dir()


def _link(source: str, target: str) -> None:
    """Link the DLLs, which nobody changes, and copy the registry, which Wine writes."""
    if source.endswith((".reg", ".update-timestamp")):
        shutil.copy2(source, target)
        return
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _plain(printed: bytes) -> str:
    """Return what was printed without the codes that move a terminal's cursor."""
    return re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", printed.decode())


def _serve(prefix: Path, *options: str) -> None:
    """Talk to the server of a prefix: ``-k`` stops it, ``-w`` waits until it has ended."""
    for option in options:
        subprocess.run([_SERVER, option], env=_environment(prefix), check=False, timeout=_SECONDS, capture_output=True)


def _environment(prefix: Path) -> dict[str, str]:
    return {
        "HOME": str(prefix),
        # Arguments in any script.
        "LC_ALL": "C.UTF-8",
        "PATH": "/usr/bin:/bin",
        "WINEDEBUG": "-all",
        # No browser engine, no .NET, nothing in the menus of a desktop.
        "WINEDLLOVERRIDES": "mscoree,mshtml=;winemenubuilder.exe=d",
        "WINEPREFIX": str(prefix),
    }
