"""The shim that has calls fail: built from C, loaded by ``LD_PRELOAD``, armed in the process that meets faults."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import mmap
import os
import shutil
import subprocess
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

__all__ = ["Fault", "Hit", "Mode", "Plan", "Watched", "build_shim", "why_not"]

_SOURCE = Path(__file__).with_name("shim.c")
_PATH = 4096
"""Bytes of a path, with the zero at its end: ``PATH_MAX``."""


class Mode(IntEnum):
    """What becomes of the call that is chosen, as in ``shim.c``."""

    COUNT = 0
    FAIL = 1
    FAIL_ON = 2
    """And what needs the same thing fails from there on."""
    SHORT = 3
    """It moves half of the bytes that it is asked for."""
    KILL_BEFORE = 4
    KILL_AFTER = 5


@dataclass(frozen=True)
class Fault:
    """What is to become of a call."""

    call: str
    """Its name."""
    at: int
    """Its number, among all that are counted."""
    mode: Mode
    error: int = 0
    """An errno, where it fails."""

    def __str__(self) -> str:
        name = errno.errorcode.get(self.error, "")
        kinds = {Mode.FAIL: name, Mode.FAIL_ON: f"{name} from there on"}
        return f"call {self.at}: {kinds.get(self.mode) or self.mode.name.lower().replace('_', ' ')}"


class Hit(NamedTuple):
    """The call that was met."""

    number: int
    call: str
    path: str


class _Fields(ctypes.Structure):
    _fields_ = (
        ("wanted", ctypes.c_char * 32),
        ("at", ctypes.c_long),
        ("mode", ctypes.c_int),
        ("error", ctypes.c_int),
        ("trace", ctypes.c_int),
        ("calls", ctypes.c_long),
        ("hit", ctypes.c_long),
        ("path", ctypes.c_char * _PATH),
        ("folder", ctypes.c_char * _PATH),
        ("apart", ctypes.c_char * _PATH),
    )


class Watched(NamedTuple):
    """Where calls are counted: on paths below a folder, but for those below another in it."""

    folder: Path
    apart: Path | None = None


class Plan:
    """What is to happen to a process that is forked, in memory that both share."""

    def __init__(self, place: Watched, fault: Fault | None = None, trace: int = -1) -> None:
        self._memory = mmap.mmap(-1, ctypes.sizeof(_Fields))
        self._fields = _Fields.from_buffer(self._memory)
        self._fields.folder = os.fsencode(place.folder)
        self._fields.apart = os.fsencode(place.apart or "")
        self._fields.trace = trace
        if fault:
            self._fields.wanted = fault.call.encode()
            self._fields.mode, self._fields.at, self._fields.error = fault.mode, fault.at, fault.error

    def arm(self) -> None:
        """Have the calls of this process counted from here on."""
        shim = ctypes.CDLL(None)
        shim.faults_plan_size.restype = ctypes.c_size_t
        assert shim.faults_plan_size() == ctypes.sizeof(_Fields)
        shim.faults_arm(ctypes.byref(self._fields))

    @property
    def calls(self) -> int:
        """How many calls there were."""
        return int(self._fields.calls)

    @property
    def hit(self) -> Hit | None:
        """The call that was met, none where the process ended before."""
        fields = self._fields
        return Hit(fields.hit, fields.wanted.decode(), os.fsdecode(fields.path)) if fields.hit else None


def why_not() -> str:
    """Return why calls can't be made to fail here, empty where they can."""
    if os.uname().sysname != "Linux" or not Path("/proc/self/fd").exists():
        return "the shim is for Linux"
    return "" if shutil.which("gcc") else "no gcc (Debian package gcc)"


def build_shim(folder: Path) -> Path:
    """Compile the shim into a folder, unless it is there, and return its path."""
    source = _SOURCE.read_bytes()
    path = folder / f"shim-{hashlib.sha256(source).hexdigest()[:16]}.so"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}")
        options = ("-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
        subprocess.run(["gcc", *options, "-o", new, _SOURCE, "-ldl"], check=True)
        new.replace(path)
    return path
