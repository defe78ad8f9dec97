"""Which faults of a disk a command is to meet: of the operations that it needs, which fail, and with what."""

from __future__ import annotations

import errno
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trials.faults.choice import without_random
from trials.faults.fuse.plan import DiskFault, Manner

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LACKS", "UNUSUAL", "Unusual", "all_disk_faults", "late_faults", "sample_faults"]

_ROOM = (errno.ENOSPC, errno.EDQUOT)
_NAMES = ("create", "mkdir", "symlink", "link", "rename")
_ERRORS: dict[str, tuple[int, ...]] = {
    "getattr": (errno.EIO, errno.EACCES),
    "readdir": (errno.EIO, errno.ESTALE),
    "readlink": (errno.EIO,),
    "statfs": (errno.EIO,),
    "open": (errno.EIO, errno.EACCES, errno.ENFILE),
    "create": (*_ROOM, errno.EIO, errno.EROFS, errno.EACCES),
    "mkdir": (*_ROOM, errno.EIO, errno.EROFS),
    "symlink": (*_ROOM, errno.EIO),
    "link": (*_ROOM, errno.EIO, errno.EMLINK),
    "rename": (*_ROOM, errno.EIO, errno.EACCES),
    "unlink": (errno.EIO, errno.EACCES, errno.EBUSY),
    "rmdir": (errno.EIO, errno.EACCES, errno.EBUSY),
    "chmod": (errno.EPERM, errno.EIO),
    "utimens": (errno.EPERM, errno.EIO),
    "truncate": (*_ROOM, errno.EIO),
    "read": (errno.EIO, errno.ESTALE),
    "write": (*_ROOM, errno.EIO, errno.ESTALE),
    "flush": (*_ROOM, errno.EIO),
    "fsync": (*_ROOM, errno.EIO, errno.ESTALE),
}
"""What each operation can fail with. A stale handle is where no name is looked up: the system looks again for those."""
_SPREAD: dict[int, tuple[str, ...]] = {
    errno.ENOSPC: (*_NAMES, "write", "truncate"),
    errno.EDQUOT: (*_NAMES, "write", "truncate", "flush", "fsync"),
    errno.EROFS: (*_NAMES, "write", "truncate", "unlink", "rmdir", "chmod", "utimens"),
    errno.EIO: tuple(_ERRORS),
}
"""What fails from there on, where an error stays."""
_DONE = ("mkdir", "symlink", "link", "rename", "unlink", "rmdir")
"""What may have been done though the answer is lost."""
_MAY_DIE = ("write", "read", "rename", "flush", "readdir", "unlink")


@dataclass(frozen=True)
class Unusual:
    """A disk on which something never works, or works otherwise."""

    name: str
    fault: DiskFault
    is_lack: bool = False
    """Whether a command may say that it needs what is lacking."""


def _lack(name: str, operation: str, error: int) -> Unusual:
    fault = DiskFault(operation, 1, Manner.STAY, error, (operation,))
    return Unusual(f"no {name} ({errno.errorcode[error]})", fault, is_lack=True)


LACKS = (
    _lack("hard links", "link", errno.EPERM),
    _lack("hard links", "link", errno.EOPNOTSUPP),
    _lack("hard links", "link", errno.EXDEV),
    _lack("hard links", "link", errno.EMLINK),
    _lack("symlinks", "symlink", errno.EPERM),
    _lack("symlinks", "symlink", errno.EOPNOTSUPP),
    _lack("modes", "chmod", errno.EPERM),
    _lack("modes", "chmod", errno.EOPNOTSUPP),
    _lack("times", "utimens", errno.EPERM),
    _lack("sync", "fsync", errno.EINVAL),
    _lack("room to tell", "statfs", errno.ENOSYS),
)
"""Disks as vFAT, exFAT, SMB and some of FUSE are, or with a quota for each folder."""
UNUSUAL = (
    Unusual("half of what is asked for", DiskFault("read", 1, Manner.HALF)),
    Unusual("folders from behind", DiskFault("readdir", 1, Manner.TURNED)),
)
"""Disks on which a command has to end well, and make the same."""


def all_disk_faults(operations: Iterable[tuple[str, str]], *, may_die: bool = True) -> list[DiskFault]:
    """Return every fault: for operations of one name on one path, at the first, the middle and the last of them."""
    return [fault for operation, at in _chosen(operations) for fault in _faults_of(operation, at, may_die=may_die)]


def late_faults(operations: Iterable[tuple[str, str]]) -> list[DiskFault]:
    """Return the faults of writes, which a late disk meets after the command was told that they had ended well."""
    numbers = [at for operation, at in _chosen(operations) if operation == "write"]
    ways = [(manner, error) for manner in (Manner.FAIL, Manner.STAY) for error in _ERRORS["write"]]
    return [DiskFault("write", at, manner, error, ("write",)) for at in numbers for manner, error in ways]


def _chosen(operations: Iterable[tuple[str, str]]) -> list[tuple[str, int]]:
    groups: dict[tuple[str, str], list[int]] = {}
    counts: dict[str, int] = {}
    for operation, path in operations:
        counts[operation] = counts.get(operation, 0) + 1
        if _is_hasty(operation, path):
            continue
        groups.setdefault((operation, without_random(path)), []).append(counts[operation])
    chosen = {(key[0], group[place]) for key, group in groups.items() for place in (0, len(group) // 2, -1)}
    return sorted(chosen)


def _is_hasty(operation: str, path: str) -> bool:
    """Return whether a nameless temporary file still has the name that Python gives it here, and takes away at once.

    Where that fails in between, nobody removes it; other disks make files without a name.
    """
    return operation != "create" and path.rpartition("/")[2].startswith("rocwheel-")


def _faults_of(operation: str, at: int, *, may_die: bool) -> list[DiskFault]:
    errors = _ERRORS.get(operation, ())
    if operation == "read":  # the system reads again where a page can't be read ahead
        faults = [DiskFault(operation, at, Manner.STAY, error, (operation,)) for error in errors]
    else:
        faults = [DiskFault(operation, at, Manner.FAIL, error) for error in errors]
    faults += [DiskFault(operation, at, Manner.STAY, error, _SPREAD[error]) for error in errors if error in _SPREAD]
    if operation in _DONE:
        faults.append(DiskFault(operation, at, Manner.DONE, errno.EIO))
    if may_die and operation in _MAY_DIE:
        faults.append(DiskFault(operation, at, Manner.DIE))
    return faults


def sample_faults(faults: Iterable[DiskFault], number: int, seed: str) -> list[DiskFault]:
    """Return so many of the faults, the same for a seed: of each kind of operation and manner in turn."""
    choice = random.Random(seed)
    kinds: dict[tuple[str, int], list[DiskFault]] = {}
    for fault in faults:
        kinds.setdefault((fault.operation, fault.manner), []).append(fault)
    left = [choice.sample(kind, len(kind)) for kind in choice.sample(list(kinds.values()), len(kinds))]
    found: list[DiskFault] = []
    while len(found) < number and any(left):
        found += [kind.pop() for kind in left if kind][: number - len(found)]
    return found
