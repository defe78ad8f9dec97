"""A small root file system with the machine's loader, stub libraries, and whatever is to be asked about."""

from __future__ import annotations

import json
import os
import posixpath
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tests.support.repair_proof import trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.support.repair_proof.stubs import Stubs

__all__ = ["SITE", "Answer", "Chroot", "obstacle"]

SITE = "/venv/lib/python3.11/site-packages"
"""Where packages are installed."""

_SYSTEM = "/usr/lib/x86_64-linux-gnu"
_STUBS = "/stubs"
# What the loader itself has to have, and what every Linux has next to it.
_GLIBC = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1", "libresolv.so.2")
_HOST_FOLDERS = ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64")


class Answer(msgspec.Struct, frozen=True):
    """What the loader told for one file."""

    found: dict[str, str]
    """Where it found each library, by the name that was asked for."""
    missing: frozenset[tuple[str, str]]
    """Who asked in vain, and for which name."""


@cache
def _entrance() -> tuple[str, ...] | None:
    """Return what to put before a command so that it may change its root; None where nothing allows that."""
    code = "import os; os.chroot('/')"
    for before in (), ("unshare", "--map-root-user"):
        known = not before or shutil.which(before[0])
        if (
            known
            and subprocess.run([*before, sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
        ):
            return before
    return None


def obstacle() -> str:
    """Return why no loader can be asked in a chroot here; empty where it can be."""
    if not Path(trace.LOADER).exists():
        return f"needs glibc's loader for x86-64 at {trace.LOADER}"
    if shutil.which("gcc") is None:
        return "needs gcc, to link stub libraries"
    if _entrance() is None:
        return "needs the right to chroot: root's, or user namespaces (unshare --map-root-user)"
    return ""


class Chroot:
    """A root file system in a folder."""

    def __init__(self, folder: Path, stubs: Stubs) -> None:
        self.folder = folder
        self.stubs = stubs
        self._linked: list[Path] = []
        self._tracer: subprocess.Popen[str] | None = None
        self._copy(Path(trace.LOADER), trace.LOADER)
        for name in _GLIBC:
            found = (Path(place, name) for place in _HOST_FOLDERS)
            self._copy(next(path for path in found if path.exists()), f"{_SYSTEM}/{name}")

    def add_system_library(self, soname: str) -> None:
        """Put a stub where the loader looks by itself; what glibc has is there already."""
        path = self.inside(f"{_SYSTEM}/{soname}")
        if not path.exists():
            os.link(self.stubs.path(soname), path)

    def link_stubs(self, place: str, sonames: Iterable[str], *, are_heirs: bool = False) -> None:
        """Have stubs in a folder until `unlink_stubs`, maybe such that inherit; files that are there already stay."""
        folder = self.make_folder(place)
        for soname in sonames:
            link = folder / soname
            # The link's target is inside: from here, it is nowhere.
            if not os.path.lexists(link):
                link.symlink_to(self._stub(soname, are_heirs=are_heirs))
                self._linked.append(link)

    def unlink_stubs(self) -> None:
        """Remove what `link_stubs` made; the folders stay."""
        for path in self._linked:
            path.unlink()
        self._linked.clear()

    def make_folder(self, place: str) -> Path:
        """Make a folder with every folder that its spelling goes through, as for ``/opt/a/../b``; return its path."""
        here = "/"
        for part in place.split("/"):
            here = posixpath.normpath(posixpath.join(here, part))
            self.inside(here).mkdir(exist_ok=True)
        return self.inside(here)

    def inside(self, path: str) -> Path:
        """Return where a path of the chroot is outside of it."""
        return self.folder / path.lstrip("/")

    def ask(self, paths: Sequence[str]) -> dict[str, Answer]:
        """Return what the loader tells for files of the chroot, by their paths."""
        if self._tracer is None:
            command = [*(_entrance() or ()), sys.executable, trace.__file__, str(self.folder)]
            self._tracer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._tracer.stdin is not None
        assert self._tracer.stdout is not None
        self._tracer.stdin.write(json.dumps(list(paths)) + "\n")
        self._tracer.stdin.flush()
        return msgspec.json.decode(self._tracer.stdout.readline(), type=dict[str, Answer])

    def close(self) -> None:
        """End what `ask` started."""
        if self._tracer is not None:
            self._tracer.communicate()

    def _stub(self, soname: str, *, are_heirs: bool) -> str:
        place = f"{_STUBS}/heirs/{soname}" if are_heirs else f"{_STUBS}/{soname}"
        path = self.inside(place)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            os.link(self.stubs.heir(soname) if are_heirs else self.stubs.path(soname), path)
        return place

    def _copy(self, source: Path, target: str) -> None:
        path = self.inside(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, path)
