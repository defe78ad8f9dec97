"""Disks that fill up, or turn read-only, while a command runs; for who may mount in a namespace of his own."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from typing import TYPE_CHECKING

from trials.faults.forked import Running, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trials.faults.forked import Command, Ended

__all__ = ["make_disk", "on_full_disk", "on_read_only_disk", "used", "why_no_disks"]

_SIZE = "size=256m"
_PAUSE = 0.002


def why_no_disks() -> str:
    """Return why no disk can be mounted here, empty where one can."""
    if os.geteuid() or not shutil.which("unshare"):
        return "mounting takes root and unshare (util-linux)"
    return "" if subprocess.call(["unshare", "--mount", "true"]) == 0 else "mounting takes the right to unshare"


def make_disk(root: Path) -> None:
    """Make a disk in memory at a folder. Raises `OSError` where that can't be done."""
    root.mkdir(parents=True)
    if not _mount(_SIZE, "-t", "tmpfs", "rocwheel", str(root)):
        raise OSError(os.strerror(1))


def used(root: Path) -> int:
    """Return how many bytes of a disk are used."""
    facts = os.statvfs(root)
    return (facts.f_blocks - facts.f_bfree) * facts.f_frsize


def on_full_disk(root: Path, room: int) -> Callable[[Command], Ended]:
    """Return what runs a command where so many bytes more can be written than there are."""

    def run_there(command: Command) -> Ended:
        _mount(f"remount,size={used(root) + room}", str(root))
        try:
            return run(command)
        finally:
            _mount(f"remount,{_SIZE}", str(root))

    return run_there


def on_read_only_disk(root: Path, seconds: float) -> Callable[[Command], Ended]:
    """Return what runs a command whose disk turns read-only after so many seconds, or as soon as no file is written."""

    def run_there(command: Command) -> Ended:
        is_over = threading.Event()
        process = Running(command)
        thread = threading.Thread(target=_turn, args=(root, seconds, is_over))
        thread.start()
        try:
            return process.wait()
        finally:
            is_over.set()
            thread.join()
            _mount("remount,rw", str(root))

    return run_there


def _turn(root: Path, seconds: float, is_over: threading.Event) -> None:
    is_over.wait(seconds)
    while not is_over.is_set() and not _mount("remount,ro", str(root)):
        is_over.wait(_PAUSE)


def _mount(options: str, *words: str) -> bool:
    return subprocess.run(["mount", "-o", options, *words], capture_output=True, check=False).returncode == 0
