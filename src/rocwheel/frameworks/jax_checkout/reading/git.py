"""A checkout as git and the disk have it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec

from rocwheel.foundation.errors import InputError, WorkError, read_error
from rocwheel.foundation.files.regular_files import read_regular
from rocwheel.frameworks.jax_checkout.checkout import Checkout, SourceFile, read_source

__all__ = ["GitCheckout", "disk_file", "read_checkout", "run_git"]

_MOST_BYTES = 1 << 20
"""Larger files are no build files; they are left alone unread."""
_REGULAR = {"100644": False, "100755": True}
_NOT_CHECKOUT = "a git checkout of rocm-jax's kind"


class GitCheckout(msgspec.Struct, frozen=True):
    """The root of a checkout, what is committed there, and the paths that differ from it."""

    root: Path
    committed: Checkout
    dirty: tuple[str, ...]
    """Tracked paths that are changed, staged or missing."""


def run_git(folder: Path, *arguments: str, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, without the caller's own settings of a repository; raise `WorkError` if there is no git."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-C", str(folder), *arguments]
    try:
        return subprocess.run(
            command,
            input=data,
            stdin=None if data is not None else subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env={**variables, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"},
        )
    except OSError as e:
        source, found = "git", f"can't be run ({e.strerror})"
        raise WorkError(source, found, remedy="Install git.") from e


def read_checkout(folder: Path) -> GitCheckout:
    """Read a checkout; raise `InputError` for any other folder."""
    if not folder.is_dir():
        raise InputError(folder, "is no folder", expected=_NOT_CHECKOUT)
    root = Path(os.fsdecode(_ask(folder, folder, "rev-parse", "--show-toplevel")).removesuffix("\n"))
    entries = _ask(folder, root, "ls-tree", "-r", "-z", "HEAD", remedy="Commit its files first.").split(b"\0")
    dirty = _dirty(folder, root)
    files = {}
    for entry in filter(None, entries):
        head, _, name = entry.partition(b"\t")
        path, mode = os.fsdecode(name), head.split(b" ")[0].decode()
        if mode in _REGULAR and (data := _committed(root, path, path in dirty)) is not None:
            files[path] = read_source(data, is_executable=_REGULAR[mode])
    return GitCheckout(root, Checkout(files), dirty)


def _ask(folder: Path, root: Path, *arguments: str, remedy: str = "") -> bytes:
    done = run_git(root, *arguments)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        found = f"is no git checkout with a commit (git says: {said[-1] if said else 'nothing'})"
        raise InputError(folder, found, expected=_NOT_CHECKOUT, remedy=remedy)
    return done.stdout


def _dirty(folder: Path, root: Path) -> tuple[str, ...]:
    arguments = ("status", "--porcelain", "-z", "--untracked-files=no", "--no-renames", "--ignore-submodules=all")
    entries = _ask(folder, root, *arguments).split(b"\0")
    return tuple(os.fsdecode(entry[3:]) for entry in entries if entry)


def _committed(root: Path, path: str, is_dirty: bool) -> bytes | None:
    """Return the committed bytes of a file as they are on disk when it is clean; ``None`` for what is no small text."""
    if is_dirty:
        done = run_git(root, "cat-file", "--filters", f"HEAD:{path}")
        data = done.stdout if done.returncode == 0 else None
    else:
        try:
            data = read_regular(root / path) if (root / path).stat().st_size <= _MOST_BYTES else None
        except OSError as e:
            raise read_error(root / path, e) from e
    return None if data is None or len(data) > _MOST_BYTES or b"\0" in data else data


def disk_file(path: Path) -> SourceFile | None:
    """Return a file as it is on disk, ``None`` if nothing is there; raise `InputError` if it can't be read."""
    if not os.path.lexists(path):
        return None
    try:
        return read_source(read_regular(path), is_executable=os.access(path, os.X_OK))
    except OSError as e:
        raise read_error(path, e) from e
