"""What is to happen on a disk, and what has happened: in memory that its server and the process that tries it share."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import signal
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from trials.faults.shim import Hit

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HIDDEN", "DiskFault", "Manner", "SharedPlan", "is_nameless"]

HIDDEN = ".fuse_hidden"
"""How the name begins that libFUSE gives to a file that is removed while it is open."""

_PATH = 4096
"""Bytes of a path, with the zero at its end: ``PATH_MAX``."""


def is_nameless(path: str) -> bool:
    """Return whether a file was removed while it was open."""
    return f"/{HIDDEN}" in path


class Manner(IntEnum):
    """What becomes of an operation that is chosen."""

    COUNT = 0
    FAIL = 1
    STAY = 2
    """It fails, and so does each of those that `DiskFault.spread` names from there on."""
    DONE = 3
    """It is done, and told as one that has failed, as where the answer of a network disk is lost."""
    DIE = 4
    """The server of the disk dies: nothing on it answers any more."""
    HALF = 5
    """From the first one on, each read gives half of what it is asked for."""
    TURNED = 6
    """From the first one on, folders are listed from behind."""


@dataclass(frozen=True)
class DiskFault:
    """What is to become of an operation of a disk."""

    operation: str
    """Its name, as FUSE has it; a look at a file by its name or its handle is a ``getattr``."""
    at: int
    """Its number among those of this name, from 1."""
    manner: Manner
    error: int = 0
    """An errno, where it fails."""
    spread: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = errno.errorcode.get(self.error, "")
        words = {
            Manner.FAIL: name,
            Manner.STAY: f"{name} from there on",
            Manner.DONE: f"{name} though it was done",
            Manner.DIE: "the disk dies",
        }
        return f"{self.operation} {self.at}: {words.get(self.manner) or self.manner.name.lower()}"


class _Fields(ctypes.Structure):
    _fields_ = (
        ("is_armed", ctypes.c_bool),
        ("operation", ctypes.c_char * 32),
        ("at", ctypes.c_long),
        ("manner", ctypes.c_int),
        ("error", ctypes.c_int),
        ("spread", ctypes.c_char * 256),
        ("seen", ctypes.c_long),
        ("hit", ctypes.c_long),
        ("has_lost_map", ctypes.c_bool),
        ("path", ctypes.c_char * _PATH),
        ("apart", ctypes.c_char * _PATH),
    )


class SharedPlan:
    """What is to happen, in memory that is shared with each process that is forked from here on."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, ctypes.sizeof(_Fields))
        self._fields = _Fields.from_buffer(self._memory)
        self._trace = os.memfd_create("operations")

    def arm(self, fault: DiskFault | None = None, apart: str = "") -> None:
        """Count operations from here on, and have the one fail that is chosen.

        Those on a folder ``apart`` and what is in it don't count, nor those on the one that it is in.
        """
        ctypes.memset(ctypes.byref(self._fields), 0, ctypes.sizeof(_Fields))
        os.ftruncate(self._trace, 0)
        self._fields.apart = os.fsencode(apart)
        if fault:
            self._fields.operation, self._fields.at = fault.operation.encode(), fault.at
            self._fields.manner, self._fields.error = fault.manner, fault.error
            self._fields.spread = " ".join(fault.spread).encode()
        self._fields.is_armed = True

    def disarm(self) -> None:
        """Have nothing fail any more."""
        self._fields.is_armed = False

    @property
    def hit(self) -> Hit | None:
        """The operation that was met, none where it never came."""
        fields = self._fields
        return Hit(fields.hit, fields.operation.decode(), os.fsdecode(fields.path)) if fields.hit else None

    @property
    def has_lost_map(self) -> bool:
        """Whether a nameless file could not be read, which may be one that a process has mapped."""
        return bool(self._fields.has_lost_map)

    def operations(self) -> list[tuple[str, str]]:
        """Return the operations since the plan was armed with no fault, by name and path."""
        size = os.fstat(self._trace).st_size
        lines = os.fsdecode(os.pread(self._trace, size, 0)).split("\0")
        return [(name, path) for name, path in (line.split(" ", 1) for line in lines if line)]

    @property
    def is_half(self) -> bool:
        """Whether reads are to give half of what they are asked for."""
        return bool(self._fields.is_armed and self._fields.manner == Manner.HALF)

    def meet(self, operation: str, path: str) -> Manner:
        """Count an operation, in the server, and return what is to become of it; raise `OSError` where it fails."""
        fields = self._fields
        if not fields.is_armed or self._is_apart(path):
            return Manner.COUNT
        if not fields.operation:
            os.write(self._trace, os.fsencode(f"{operation} {path}\0"))
            return Manner.COUNT
        if fields.hit:
            return self._after(operation, path)
        if operation.encode() == fields.operation:
            fields.seen += 1
            if fields.seen == fields.at:
                fields.hit, fields.path = fields.at, os.fsencode(path)
                return self._strike(operation, path)
        return Manner.COUNT

    def _is_apart(self, path: str) -> bool:
        apart = os.fsdecode(self._fields.apart)
        return bool(apart) and (path == apart.rpartition("/")[0] or f"{path}/".startswith(f"{apart}/"))

    def _strike(self, operation: str, path: str) -> Manner:
        manner = Manner(self._fields.manner)
        if manner in {Manner.FAIL, Manner.STAY}:
            self._fail(operation, path)
        if manner == Manner.DIE:
            os.kill(os.getpid(), signal.SIGKILL)
        return manner

    def _after(self, operation: str, path: str) -> Manner:
        manner = Manner(self._fields.manner)
        if manner == Manner.STAY and operation in self._spread():
            self._fail(operation, path)
        return manner if manner in {Manner.HALF, Manner.TURNED} else Manner.COUNT

    def _spread(self) -> Sequence[str]:
        return str(self._fields.spread.decode()).split()

    def _fail(self, operation: str, path: str) -> None:
        if operation == "read" and is_nameless(path):
            self._fields.has_lost_map = True
        raise OSError(self._fields.error, os.strerror(self._fields.error))
