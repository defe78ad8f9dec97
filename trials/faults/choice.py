"""Which faults a command is to meet: of the calls that it makes, which fail, and with what."""

from __future__ import annotations

import errno
import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trials.faults.shim import Fault, Mode

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Call", "all_faults", "read_calls", "sample", "without_random"]

_RANDOM = re.compile(r"\.[a-z0-9_]{8}\.rocwheel|rocwheel-[a-z0-9_]{8}|#\d+|tmp[a-z0-9_]{8}|\.fuse_hidden[0-9a-f]{16}")
"""What of a path is another in each run."""
_READ, _SPACE, _CHANGE = 1, 4, 8
_BYTES = ("read", "pread", "pread64", "write", "pwrite", "pwrite64", "sendfile", "sendfile64", "copy_file_range")
_ERRORS: dict[str, tuple[int, ...]] = {
    "fsync": (errno.EIO, errno.ENOSPC),
    "fdatasync": (errno.EIO, errno.ENOSPC),
    "mmap": (errno.ENOMEM, errno.ENODEV),
    "mmap64": (errno.ENOMEM, errno.ENODEV),
    "flock": (errno.ENOLCK,),
    "posix_fadvise64": (errno.EINVAL,),
    "posix_fallocate": (errno.ENOSPC, errno.EOPNOTSUPP),
    "posix_fallocate64": (errno.ENOSPC, errno.EOPNOTSUPP),
    "fchmod": (errno.EPERM, errno.EROFS),
    "chmod": (errno.EPERM, errno.EROFS),
    "unlink": (errno.EACCES, errno.EIO, errno.EROFS),
    "unlinkat": (errno.EACCES, errno.EIO, errno.EROFS),
    "rmdir": (errno.EACCES, errno.EIO, errno.EROFS),
}
"""Where these differ from what the needs of a call say."""
_STAYING = (errno.ENOSPC, errno.EROFS, errno.EIO, errno.EMFILE)
"""What does not go away by itself."""


@dataclass(frozen=True)
class Call:
    """A call that a command makes."""

    number: int
    name: str
    needs: int
    path: str
    """Without what is random in it."""


def read_calls(trace: str) -> list[Call]:
    """Return the calls of a list that the shim has written."""
    calls = []
    for line in trace.splitlines():
        number, name, needs, path = line.split("\t", 3)
        calls.append(Call(int(number), name, int(needs), without_random(path)))
    return sorted(calls, key=lambda call: call.number)


def without_random(path: str) -> str:
    """Return a path with a star for what of it is another in each run."""
    return _RANDOM.sub("*", path)


def all_faults(calls: Iterable[Call]) -> list[Fault]:
    """Return every fault: for calls of one name on one path, at the first, the middle and the last of them."""
    groups: dict[tuple[str, str], list[Call]] = {}
    for call in calls:
        groups.setdefault((call.name, call.path), []).append(call)
    chosen = {group[place] for group in groups.values() for place in (0, len(group) // 2, -1)}
    return [fault for call in sorted(chosen, key=lambda call: call.number) for fault in _faults_of(call)]


def _faults_of(call: Call) -> list[Fault]:
    errors = _ERRORS.get(call.name) or _by_needs(call)
    faults = [Fault(call.name, call.number, Mode.FAIL, error) for error in errors]
    faults += [Fault(call.name, call.number, Mode.FAIL_ON, error) for error in errors if error in _STAYING]
    if call.name in _BYTES:
        faults.append(Fault(call.name, call.number, Mode.SHORT))
    if call.needs & _CHANGE:
        faults += [Fault(call.name, call.number, mode) for mode in (Mode.KILL_BEFORE, Mode.KILL_AFTER)]
    return faults


def _by_needs(call: Call) -> tuple[int, ...]:
    is_open = "open" in call.name
    if not call.needs & _CHANGE:
        return (errno.EIO, *((errno.EACCES, errno.EMFILE) if is_open else ()))
    space = (errno.ENOSPC,) if call.needs & _SPACE else ()
    named = () if call.name in {*_BYTES, "writev"} else (errno.EACCES, errno.EROFS)
    return (*space, errno.EIO, *named, *((errno.EMFILE,) if is_open else ()))


def sample(faults: Iterable[Fault], number: int, seed: str) -> list[Fault]:
    """Return so many of the faults, the same for a seed."""
    every = list(faults)
    return sorted(random.Random(seed).sample(every, min(number, len(every))), key=lambda fault: fault.at)
