"""A folder that a FUSE server shows as a disk, in a mount namespace that nobody else sees."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import os
import signal
import subprocess
import time
import traceback
from typing import TYPE_CHECKING

from trials.faults.disks import why_no_disks
from trials.faults.fuse.disk import serve
from trials.faults.fuse.plan import HIDDEN

if TYPE_CHECKING:
    from pathlib import Path

    from trials.faults.fuse.plan import SharedPlan

__all__ = ["Mount", "why_no_fuse"]

_DEATH_SIGNAL = 1
"""``PR_SET_PDEATHSIG``."""
_MOST_SECONDS = 20
_PAUSE = 0.002


def why_no_fuse() -> str:
    """Return why no disk of a FUSE server can be mounted here, empty where one can."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as e:
        return f"/dev/fuse can't be opened ({e.strerror})"
    if not ctypes.util.find_library("fuse3"):
        return "no libfuse (Debian package libfuse3-3)"
    if not importlib.util.find_spec("mfusepy"):
        return "no mfusepy (extra test)"
    return why_no_disks()


class Mount:
    """A disk at ``root`` whose files lie in ``folder``."""

    def __init__(self, folder: Path, root: Path, plan: SharedPlan) -> None:
        self._folder, self._root, self._plan = folder, root, plan
        self._server = 0
        for place in (folder, root):
            place.mkdir(parents=True)

    def begin(self, *, is_late: bool = False) -> None:
        """Mount it; where it is late, what is written reaches the disk after the write has ended well.

        Raises `OSError` where it can't be mounted.
        """
        self._server = os.fork()
        if self._server == 0:
            self._become_server(is_late=is_late)
        end = time.monotonic() + _MOST_SECONDS
        while not os.path.ismount(self._root):
            if time.monotonic() > end or os.waitpid(self._server, os.WNOHANG)[0]:
                raise OSError(1, "the disk could not be mounted", str(self._root))
            time.sleep(_PAUSE)

    def _become_server(self, *, is_late: bool) -> None:
        try:
            ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
            os.environ["FUSE_LIBRARY_NAME"] = "fuse3"
            serve(str(self._folder), str(self._root), self._plan, is_late=is_late)
        except BaseException:  # a process of its own has to show it
            traceback.print_exc()
        finally:
            os._exit(0)

    def end(self) -> None:
        """Take the disk away, also one that is dead, with what libFUSE hid of files that were open."""
        subprocess.run(["umount", "--lazy", self._root], check=True)
        os.kill(self._server, signal.SIGKILL)  # files that are still open would keep it
        os.waitpid(self._server, 0)
        for path in self._folder.rglob(f"{HIDDEN}*"):
            path.unlink()
